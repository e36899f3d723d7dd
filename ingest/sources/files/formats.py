"""What a file is: by its content, where that says so, else by its name; and what to do if it is
nothing that is read here."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

from ...errors import SourceError
from .edge_dicts import LINE
from .metis import is_metis
from .unpacking import TOP_BYTES, WORKBOOK, head_of, name_inside, packing_of

_HEAD_BYTES = 1 << 13  # read to detect what is no text

LISTS = ("text", "csv", "tsv")  # an edge a line
BY_NETWORKX = ("graphml", "gexf", "gml", "pajek")
CALLED = {
    "text": "text", "csv": "csv", "tsv": "tsv", "jsonl": "JSON lines", "mtx": "Matrix Market",
    "metis": "METIS", "dimacs": "DIMACS", "edgelist": "an edge list of NetworkX",
    "graphml": "GraphML", "gexf": "GEXF", "gml": "GML", "pajek": "Pajek", "parquet": "Parquet",
    "arrow": "an Arrow file", "npz": "NumPy's arrays",
}  # fmt: skip
FORMATS = tuple(CALLED)
_SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".json": "jsonl", ".mtx": "mtx", ".npz": "npz", ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip

_TEXT = "write its edges as lines of text, 'src dst' or a .csv"
_PACKED = "compressed: unpack it first; of what is compressed, gzip, zstd, bzip2 and zip are read"
_TWICE = "compressed twice: unpack it once"
_PICTURE = f"a picture, not edges: {_TEXT}"

_MAGIC = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", WORKBOOK),
    (b"PAR1", "a Parquet file: unpack it first"),
    (b"\x89LPMA\r\n\x1a", "a saved store: `lpma run`, `query` and `info` take it as it is"),
    (b"SQLite format 3\0", "an embedded log or another SQLite file: `lpma ingest` reads a log"),
    (b"\x1f\x8b", _TWICE),
    (b"BZh", _TWICE),
    (b"PK\3\4", _TWICE),
    (b"\x28\xb5\x2f\xfd", _TWICE),
    (b"\xfd7zXZ\0", _PACKED),
    (b"\x04\x22\x4d\x18", _PACKED),
    (b"7z\xbc\xaf\x27\x1c", _PACKED),
    (b"\x93NUMPY", "one array of NumPy: save src and dst with np.savez, as .npz"),
    (b"\x89HDF\r\n\x1a\n", f"an HDF5 file: {_TEXT}"),
    (b"ARROW1", "an Arrow file: unpack it first"),
    (b"\x80\x04\x95", f"a pickle, which is not opened: {_TEXT}"),
    (b"\x80\x05\x95", f"a pickle, which is not opened: {_TEXT}"),
    (b"%PDF", f"a PDF, not edges: {_TEXT}"),
    (b"\x89PNG", _PICTURE),
    (b"\xff\xd8\xff", _PICTURE),
    (b"GIF8", _PICTURE),
    (b"\xff\xfe", "text in UTF-16: write it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16: write it as UTF-8"),
)
_SVG = re.compile(rb"<svg[\s>]")
_MARKUP = re.compile(rb"<(\?xml|!doctype|!--|html|svg|rdf:RDF|gxl|graphml|gexf)", re.IGNORECASE)
_DIMACS = re.compile(rb"(c(\s.*)?\n|[ \t]*\n)*p\s+(\w+)\s+\d+\s+\d+", re.IGNORECASE)
_BY_HEAD = [
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), format)
    for pattern, format in (
        (rb"%%matrixmarket", "mtx"),
        (rb"(?=<[?!g]).{,8000}?<graphml\b", "graphml"),
        (rb"(?=<[?!g]).{,8000}?<gexf\b", "gexf"),
        (rb"([ \t]*((#|(creator|version|comment)\b)[^\n]*)?\n)*\s*graph\s*\[", "gml"),
        (rb"\s*(%[^\n]*\n\s*)*\*(vertices|network)\b", "pajek"),
        (rb"(c(\s[^\n]*)?\n|[ \t]*\n)*p\s+(edge|col|sp)\s+\d+\s+\d+", "dimacs"),
    )
]

# Graphs that are written otherwise than by an edge a line, by how their first line that is no
# comment begins; and how each can be had as something that is read.
_NETWORKX = "read it in Python and give lpma.from_networkx the graph: "
_OTHERS = (
    (
        rb"(strict\s+)?(di)?graph\s*(\"[^\"]*\"|[\w.]+)?\s*\{",
        "a graph in DOT: " + _NETWORKX + "networkx.nx_pydot.read_dot does",
    ),
    (rb"DGS00\d", "a DGS stream of GraphStream: save it there as an edge list"),
    (
        rb"dl[\s,]+(n|nr|nc|nm|format)\s*=?\s*\S",
        f"a DL file of UCINET: export it there as Pajek, which is read, or {_TEXT}",
    ),
    (rb"nodedef\s*>", "a GDF file: export it from Gephi as GraphML or GEXF, which are read"),
    (rb"\*node\s+(data|properties)\b", f"a VNA file of NetDraw: export it as Pajek, or {_TEXT}"),
    (rb"LEDA\.GRAPH", "a LEDA graph: " + _NETWORKX + "networkx.read_leda does"),
    (rb">>(graph6|sparse6|digraph6)<<",
     "graph6 or sparse6: " + _NETWORKX + "networkx.read_graph6 and read_sparse6 do"),
    (rb"\(tlp\s", "a graph of Tulip: export it there as GML, which is read"),
    (rb"(insert\s+into|create\s+table)\s", f"statements of SQL: {_TEXT}"),
    (rb".*\|.*\n\s*\|?\s*:?-{3,}:?\s*\|", f"a table of Markdown: {_TEXT}"),
    (rb"@(prefix|base)\s|prefix\s+\w*:\s*<", f"Turtle: of each triple, {_TEXT}"),
    (rb"(<[^<>\s]*>|_:\S+)\s+<[^<>\s]*>\s+(<[^<>\s]*>|_:\S+|\").*\.\s*$",
     "N-Triples: an edge needs two of the three; write subject and object as a .csv with the "
     "header source,target"),
)  # fmt: skip
_OTHERS_BY_HEAD = [(re.compile(pattern, re.IGNORECASE), what) for pattern, what in _OTHERS]
_TOP_COMMENT = re.compile(rb"\s*(#|//|/\*|%(?!%)).*")
_BOM = b"\xef\xbb\xbf"


def format_of(path: Path, said: str | None = None) -> str:
    """The one of FORMATS that the caller says, or else a file's content, or else its name. Raises
    SourceError for what is none, with what to do."""
    if said not in (None, *FORMATS):
        raise SourceError(f"format {said!r}: expected one of {', '.join(FORMATS)}")
    if packing_of(path) == "zip" and _is_npz(path):
        return said or "npz"
    head = head_of(path, TOP_BYTES)
    named = format_of_name(path)
    format = said or _by_content(head, named) or named
    if format == "npz":
        raise SourceError(f"{path}: not an .npz: {_no_edges(head, format) or 'it is text'}")
    if format in (*LISTS, "edgelist", "jsonl", "mtx") and (what := _no_edges(head, format)):
        raise SourceError(f"{path}: {what}")
    return format


def format_of_name(path: Path) -> str:
    """The one of FORMATS that a file's name says."""
    return _SUFFIXES.get(Path(name_inside(path)).suffix.lower(), "text")


def _is_npz(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        return path.suffix.lower() == ".npz"
    return bool(names) and all(name.endswith(".npy") for name in names)


def _by_content(head: bytes, named: str) -> str | None:
    for magic, format in ((b"PAR1", "parquet"), (b"ARROW1", "arrow")):
        if head.startswith(magic):
            return format
    text = head.removeprefix(_BOM).replace(b"\r\n", b"\n").replace(b"\r", b"\n").lstrip()
    for pattern, format in _BY_HEAD:
        if pattern.match(text):
            return format
    first = text.partition(b"\n")[0]
    if first.startswith(b"{") and (_is_object(first) or named == "jsonl"):
        return "jsonl"
    lines = [line for line in text.split(b"\n")[:100] if line.strip()]
    lines = [line for line in lines if not line.startswith((b"#", b"%"))]
    if len(text) >= TOP_BYTES and len(lines) > 1:
        lines.pop()
    if lines and sum(LINE.fullmatch(line) is not None for line in lines) > 0.5 * len(lines):
        return "edgelist"
    return "metis" if named == "text" and is_metis(text, len(head) < TOP_BYTES) else None


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict) and not _is_whole_graph(line)
    except (ValueError, RecursionError):
        return False


def _is_whole_graph(text: bytes) -> bool:
    """Whether this begins as a graph in one object of JSON, as of NetworkX's node_link_data."""
    return bool(re.search(rb'"(nodes|links|adjacency|elements|vertices)"\s*:\s*[\[{]', text))


def _no_edges(head: bytes, format: str) -> str | None:
    """What a file with these first bytes is, if it cannot be of this format, and what to do."""
    head = head[:_HEAD_BYTES]
    text = head.removeprefix(_BOM).lstrip()
    first = text.partition(b"\n")[0]
    is_json = first.startswith(b"{") and first.strip() != b"{" and not _is_whole_graph(first)
    if (format == "mtx" and text.startswith(b"%%")) or (format == "jsonl" and is_json):
        return None
    for magic, what in _MAGIC:
        if head.startswith(magic):
            return what
    if _MARKUP.match(text):
        picture = _SVG.search(text)
        return f"{'an SVG picture' if picture else 'XML or HTML'}, not edges: {_TEXT}"
    if text.startswith(b"["):
        return "an array of JSON: write an object a line, with the fields of an edge, as .jsonl"
    if text.startswith(b"{"):
        if _is_whole_graph(text):
            return (
                "a whole graph in one object of JSON: " + _NETWORKX + "networkx.node_link_graph "
                "does of NetworkX's and D3's"
            )
        return "JSON, but not an object a line: write it so, with the fields of an edge, as .jsonl"
    if other := _other_graph(text):
        return other if _TEXT in other else f"{other} ({_TEXT})"
    if sum(len(line) for line in head.split(b"\n") if _is_strange(line)) > len(head) // 2:
        return f"binary data, not edges: {_TEXT}"
    return None


def _other_graph(text: bytes) -> str | None:
    """What a graph is called that is written in another way than an edge a line, and what to do."""
    lines = [line for line in text.replace(b"\r", b"\n").split(b"\n") if line.strip()]
    if len(lines) > 1 and not text.endswith((b"\n", b"\r")):
        lines.pop()  # it may be cut
    rest = [line for line in lines if not _TOP_COMMENT.fullmatch(line)]
    top = b"\n".join(rest).lstrip()
    for pattern, what in _OTHERS_BY_HEAD:
        if (match := pattern.match(top)) or (match := pattern.match(rest[0] if rest else b"")):
            return what
    if (match := _DIMACS.match(text)) is not None:
        return f"DIMACS of the problem {match[3].decode()!r}: p edge, p col and p sp are read"
    if (
        rest[1:]
        and all(re.fullmatch(rb"\S+\s+(\d+|(\{.*\}))\s*", r) for r in rest[:20])
        and any(b"{" in line for line in rest[:20])
    ):
        return "a multiline adjacency list: " + _NETWORKX + "networkx.read_multiline_adjlist does"
    if _is_tgf(lines):
        return "Trivial Graph Format, vertices above '#' and edges below: keep the lines below"
    if _is_lgl(lines):
        return "an LGL file: igraph.Graph.Read_Lgl reads it"
    return None


def _is_tgf(lines: list[bytes]) -> bool:
    middle = next((number for number, line in enumerate(lines) if line.strip() == b"#"), 0)
    vertices = {line.split()[0] for line in lines[:middle]}
    edges = [line.split() for line in lines[middle + 1 : middle + 20]]
    return (
        len(vertices) == middle > 0
        and edges != []
        and all(vertices.issuperset(edge[:2]) for edge in edges)
    )


def _is_lgl(lines: list[bytes]) -> bool:
    heads = [number for number, line in enumerate(lines) if line.startswith(b"#")]
    rows = [line.split() for line in lines if not line.startswith(b"#")]
    return (
        heads[:1] == [0]
        and heads[-1] > len(heads) - 1
        and all(re.fullmatch(rb"#\s*\S+\s*", lines[number]) for number in heads)
        and all(re.fullmatch(rb"[^\s,;|]+(\s+[\d.]+)?\s*", b" ".join(row)) for row in rows)
        and not all(field.isdigit() for row in rows for field in row)
    )


def _is_strange(line: bytes) -> bool:
    """Whether this is not text, not even in another encoding."""
    controls = sum(line.count(byte) for byte in range(32) if byte not in (9, 10, 12, 13))
    wrong = line.decode(errors="replace").count("\ufffd")
    return b"\0" in line or 3 * (controls + wrong) > len(line)
