"""NetworkX's lists of edges: `u v {'weight': 2}`, an edge a line with its data as a dictionary.

Idea: each line becomes one between tabs, with a column for each key of the first lines, so that it
is read as any other text. An edge without a weight has 1, as NetworkX has it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ...errors import SourceError
from .guess import SAMPLE_ROWS, guess_rows
from .opening import Block, read_blocks
from .pieces import Piece
from .reading import Asked, Reading
from .text import read_text

LINE = re.compile(rb"\s*(\S+?)[ \t,;|]+(\S+?)[ \t,;|]+(\{.*\})\s*")


def open_edge_dicts(path: Path, asked: Asked, mirror: bool) -> tuple[Reading, Iterator[Piece]]:
    """How the file is read, and its pieces. mirror: of no use, as the file does not say whether its
    graph is directed. Raises SourceError, OSError."""
    first = next(read_blocks(path), Block(b"", 1))
    matches = [LINE.fullmatch(line) for line in first.data.split(b"\n", SAMPLE_ROWS)[:SAMPLE_ROWS]]
    found = [_data(match[3]) for match in matches if match is not None]
    if not found:
        raise SourceError(f"{path}: nothing was loaded: no line of the first is 'u v {{…}}'")
    keys = list(dict.fromkeys(key for data in found for key in data))
    names = ["source", "target", *keys]
    rows = [_row(match, keys).decode("utf-8", "replace").split("\t") for match in matches if match]
    told = replace(asked, header=True, separator=None)
    reading = guess_rows(path, "edgelist", [names, *rows], told, "\t", "")
    reading = replace(reading, header=None)
    return reading, read_text(_blocks(path, keys), reading)


def _blocks(path: Path, keys: list[str]) -> Iterator[Block]:
    for block in read_blocks(path):
        lines = []
        for line in block.data.split(b"\n"):
            match = None if line.startswith(b"#") else LINE.fullmatch(line)
            lines.append(b"" if line.startswith(b"#") else _row(match, keys) if match else line)
        yield block.holding(b"\n".join(lines), "\t")


def _row(match: re.Match[bytes], keys: list[str]) -> bytes:
    data = _data(match[3])
    values = [str(data.get(key, 1 if key == "weight" else "")).encode() for key in keys]
    return b"\t".join([match[1], match[2], *(value.replace(b"\t", b" ") for value in values)])


def _data(text: bytes) -> dict[str, object]:
    """The dictionary that this is in Python; empty if it is none."""
    try:
        found = ast.literal_eval(text.decode())
    except (ValueError, SyntaxError):
        return {}
    return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}
