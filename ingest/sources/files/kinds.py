"""What a file is, by its name and its first bytes, and what to do if it is not an edge list."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

FORMATS = ("text", "csv", "tsv", "jsonl", "mtx", "parquet", "npz")
_FORMATS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".json": "jsonl", ".mtx": "mtx", ".npz": "npz", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
_PACKED_NAMES = (".gz", ".zst", ".zstd")

_TEXT = "write its edges as lines of text, 'src dst' or a .csv"
_PACKED = "compressed: unpack it first; of what is compressed, gzip and zstd are read"
_PICTURE = f"a picture, not edges: {_TEXT}"

_WORKBOOK = (
    "a spreadsheet: save its sheet as .csv, or give lpma.from_dataframe what pandas.read_excel "
    "returns"
)
_MAGIC = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _WORKBOOK),
    (b"PAR1", "a Parquet file: unpack it first, and let its name end with .parquet"),
    (b"\x89LPMA\r\n\x1a", "a saved store: `lpma run`, `query` and `info` take it as it is"),
    (b"SQLite format 3\0", "an embedded log or another SQLite file: `lpma ingest` reads a log"),
    (b"\x1f\x8b", "compressed twice: unpack it once"),
    (b"BZh", _PACKED),
    (b"\xfd7zXZ\0", _PACKED),
    (b"\x28\xb5\x2f\xfd", "compressed twice: unpack it once"),
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


def format_of(path: Path) -> str:
    """The one of FORMATS that the name says, or Parquet's first bytes."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _PACKED_NAMES:
        suffixes.pop()
    with open(path, "rb") as file:
        if file.read(4) == b"PAR1":
            return "parquet"
    return _FORMATS.get(suffixes[-1] if suffixes else "", "text")


def no_edge_list(head: bytes, path: Path | None = None) -> str | None:
    """What a file with these first bytes is, if it cannot be lines of edges. path: where it is, if
    it may be looked into further."""
    if head.startswith(b"PK\3\4") and _is_workbook(head, path):
        return _WORKBOOK
    for magic, what in _MAGIC:
        if head.startswith(magic):
            return what
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _MARKUP.match(text):
        picture = _SVG.search(text)
        return f"{'an SVG picture' if picture else 'XML or HTML'}, not edges: {_TEXT}"
    if text.startswith(b"["):
        return "an array of JSON: write an object a line, with the fields of an edge, as .jsonl"
    if text.startswith(b"{"):
        return (
            "JSON: if each line is an object with the fields of an edge, let its name end with "
            ".jsonl (--source and --target say which they are)"
        )
    if sum(len(line) for line in head.split(b"\n") if _is_strange(line)) > len(head) // 2:
        return f"binary data, not edges: {_TEXT}"
    return None


def _is_workbook(head: bytes, path: Path | None) -> bool:
    """Whether a zip archive is a spreadsheet: of Excel, or of OpenDocument."""
    if b"xl/" in head or b"opendocument.spreadsheet" in head:
        return True
    try:
        names = zipfile.ZipFile(path).namelist() if path is not None else []
    except (zipfile.BadZipFile, OSError):
        return b"[Content_Types].xml" in head
    return any(name.startswith("xl/") for name in names)


def _is_strange(line: bytes) -> bool:
    """Whether this is not text, not even in another encoding."""
    controls = sum(line.count(byte) for byte in range(32) if byte not in (9, 10, 12, 13))
    wrong = line.decode(errors="replace").count("\ufffd")
    return b"\0" in line or 3 * (controls + wrong) > len(line)
