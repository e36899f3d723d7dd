"""DIMACS's files of graphs: `p edge vertices edges` and a line `e u v` an edge, or `p sp vertices
arcs` and a line `a u v weight` an arc; vertices are numbers from 1, and "c" begins a comment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...errors import SourceError
from .opening import Block, read_blocks
from .pieces import Piece, Vertices, as_promised
from .reading import Asked, Reading, reading_of_indices
from .text import read_text
from .unpacking import TOP_BYTES, head_of

_PROBLEM = re.compile(rb"^p\s+(\w+)\s+(\d+)\s+(\d+)", re.MULTILINE | re.IGNORECASE)
_EDGE = re.compile(rb"^([ea])\s+(.*)", re.MULTILINE)
_OTHER_LINE = re.compile(rb"^[cpndvx]\b[^\n]*", re.MULTILINE | re.IGNORECASE)


def open_dimacs(
    path: Path, asked: Asked, mirror: bool
) -> tuple[Reading, Iterator[Piece], Vertices]:
    """How the file is read, its pieces, and its vertices. mirror: whether an edge, which is not an
    arc, gives both. Raises SourceError, OSError."""
    head = head_of(path, TOP_BYTES).replace(b"\r", b"\n")
    problem, first = _PROBLEM.search(head), _EDGE.search(head)
    if problem is None:
        raise SourceError(f"{path}: expected 'p edge vertices edges' or 'p sp vertices arcs'")
    vertices, promised = int(problem[2]), int(problem[3])
    weighted = first is not None and len(first[2].split()) > 2
    columns = ("line", "from", "to", "weight")[: 3 + weighted]
    arcs = problem[1].lower() == b"sp"
    reading = reading_of_indices(
        path, "dimacs", columns, vertices, asked, 1, mirror=mirror and not arcs, directed=arcs
    )
    pieces = read_text(_edges(path), replace(reading, named=False))
    pieces = as_promised(path, pieces, promised, "edges", or_more=True)
    return reading, pieces, lambda: np.arange(vertices)


def _edges(path: Path) -> Iterator[Block]:
    """The file's blocks, all lines but the edges' made empty."""
    for block in read_blocks(path):
        yield block.holding(_OTHER_LINE.sub(b"", block.data))
