"""What a file is, by its first bytes, if it is not an edge list, and what to do with it."""

from __future__ import annotations

import re

_TEXT = "write its edges as lines of text, 'src dst' or a .csv"
_PARQUET = (
    "a Parquet file: write it as .csv first, as with pandas: "
    "read_parquet(PATH).to_csv('edges.csv', index=False)"
)
_PACKED = "compressed: unpack it first; of what is compressed, gzip is read, by a name in .gz"
_PICTURE = f"a picture, not edges: {_TEXT}"

_MAGIC = (
    (b"PAR1", _PARQUET),
    (b"\x89LPMA\r\n\x1a", "a saved store: `lpma run`, `query` and `info` take it as it is"),
    (b"SQLite format 3\0", "an embedded log or another SQLite file: `lpma ingest` reads a log"),
    (b"\x1f\x8b", "compressed with gzip: let its name end with .gz"),
    (b"BZh", _PACKED),
    (b"\xfd7zXZ\0", _PACKED),
    (b"\x28\xb5\x2f\xfd", _PACKED),
    (b"7z\xbc\xaf\x27\x1c", _PACKED),
    (b"PK\3\4", "a zip archive: unpack it, or if NumPy wrote it, let its name end with .npz"),
    (b"\x93NUMPY", "one array of NumPy: save src and dst with np.savez, as .npz"),
    (b"\x89HDF\r\n\x1a\n", f"an HDF5 file: {_TEXT}"),
    (b"ARROW1", f"an Arrow file: {_TEXT}"),
    (b"%PDF", f"a PDF, not edges: {_TEXT}"),
    (b"\x89PNG", _PICTURE),
    (b"\xff\xd8\xff", _PICTURE),
    (b"GIF8", _PICTURE),
    (b"\xff\xfe", "text in UTF-16: write it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16: write it as UTF-8"),
)
_SVG = re.compile(rb"<svg[\s>]")
_MARKUP = re.compile(rb"<(\?xml|!doctype|!--|html|svg|graphml|gexf)", re.IGNORECASE)


def no_edge_list(head: bytes) -> str | None:
    """What a file with these first bytes is, if it cannot be lines of edges."""
    for magic, what in _MAGIC:
        if head.startswith(magic):
            return what
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _MARKUP.match(text):
        picture = _SVG.search(text)
        return f"{'an SVG picture' if picture else 'XML or HTML'}, not edges: {_TEXT}"
    if text[:1] in (b"{", b"["):
        return (
            "JSON: if each line is an object with the fields of an edge, let its name end with "
            ".jsonl (--src-field and --dst-field say which they are)"
        )
    if sum(len(line) for line in head.split(b"\n") if _is_strange(line)) > len(head) // 2:
        return f"binary data, not edges: {_TEXT}"
    return None


def _is_strange(line: bytes) -> bool:
    """Whether this is not text, not even in another encoding."""
    controls = sum(line.count(byte) for byte in range(32) if byte not in (9, 10, 12, 13))
    wrong = line.decode(errors="replace").count("\ufffd")
    return b"\0" in line or 3 * (controls + wrong) > len(line)
