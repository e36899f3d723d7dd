"""What a file is: by its content, where that says so, else by its name."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

from .edge_dicts import LINE
from .kinds import DIMACS, HEAD_BYTES, MARKUP, format_of_name, is_whole_graph
from .metis import is_metis
from .unpacking import TOP_BYTES, head_of, packing_of

_GML = re.compile(rb"(\s*(#.*|(creator|version|comment)\b.*)?\n)*\s*graph\s*\[", re.IGNORECASE)
_PAJEK = re.compile(rb"\s*(%.*\n\s*)*\*(vertices|network)\b", re.IGNORECASE)


def format_of(path: Path) -> str:
    """The one of FORMATS that a file's content says, or else its name."""
    if packing_of(path) == "zip" and _is_npz(path):
        return "npz"
    head = head_of(path, TOP_BYTES)
    said = format_of_name(path)
    return _by_content(head, said) or said


def _is_npz(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        return path.suffix.lower() == ".npz"
    return bool(names) and all(name.endswith(".npy") for name in names)


def _by_content(head: bytes, said: str) -> str | None:
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1"):
        return "arrow"
    text = head.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n").lstrip()
    lowered = text[:HEAD_BYTES].lower()
    if lowered.startswith(b"%%matrixmarket"):
        return "mtx"
    if MARKUP.match(text):
        return next((name for name in ("graphml", "gexf") if f"<{name}".encode() in lowered), None)
    if _GML.match(text):
        return "gml"
    if _PAJEK.match(text):
        return "pajek"
    if (match := DIMACS.match(text)) and match[3].lower() in (b"edge", b"col", b"sp"):
        return "dimacs"
    first = text.partition(b"\n")[0]
    if first.startswith(b"{") and (_is_object(first) or said == "jsonl"):
        return "jsonl"
    lines = [line for line in text.split(b"\n")[:100] if line.strip()]
    lines = [line for line in lines if not line.startswith((b"#", b"%"))]
    if len(text) >= TOP_BYTES and len(lines) > 1:
        lines.pop()
    if lines and sum(LINE.fullmatch(line) is not None for line in lines) > 0.5 * len(lines):
        return "edgelist"
    return "metis" if said == "text" and is_metis(text, len(head) < TOP_BYTES) else None


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict) and not is_whole_graph(line)
    except (ValueError, RecursionError):
        return False
