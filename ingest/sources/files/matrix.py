"""Matrix Market files: a head, then `row column [value]` a line, from 1; "%" is a comment.

Each row of a square matrix is a vertex, with or without entries, as for `lpma.from_scipy`. If it is
symmetric, its graph is undirected. In one that is not square, rows and columns are two kinds of
vertices, rows first, and those alone are vertices that an entry names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from lpma.batch.columns import MAX_VERTEX

from ...errors import SourceError
from .comments import emptied
from .opening import Block, read_blocks
from .pieces import Piece, Vertices, as_promised
from .reading import Asked, Reading, reading_of_indices
from .text import read_text


def open_matrix(
    path: Path, asked: Asked, mirror: bool
) -> tuple[Reading, Iterator[Piece], Vertices]:
    """How the file is read, its pieces, and its vertices. mirror: whether a symmetric entry gives
    both edges. Raises SourceError, OSError."""
    blocks = read_blocks(path)
    first = _up_to_sizes(blocks)
    line, _, _ = first.data.partition(b"\n")
    head = line.decode(errors="replace").lower().split()
    if len(head) != 5 or head[:3] != ["%%matrixmarket", "matrix", "coordinate"]:
        raise SourceError(f"{path}: expected '%%MatrixMarket matrix coordinate …' in line 1")
    field, symmetry = head[3:]
    if field not in ("pattern", "integer", "real") or symmetry not in ("general", "symmetric"):
        raise SourceError(f"{path}: {field} {symmetry} matrices cannot be read as a graph")
    data = emptied(first, None).data
    sizes = data.lstrip().partition(b"\n")[0].split()
    if len(sizes) != 3 or not all(number.isdigit() for number in sizes):
        raise SourceError(f"{path}: expected 'rows columns entries' after the comments")
    rows, columns, entries = map(int, sizes)
    names = ("row", "column", "value")[: 2 if field == "pattern" else 3]
    reading = reading_of_indices(
        path, "mtx", names, max(rows, columns), asked, mirror=mirror and symmetry == "symmetric",
        directed=False if symmetry == "symmetric" else None,
        bipartite=rows != columns if asked.bipartite is None else asked.bipartite, left=rows,
    )  # fmt: skip
    if reading.bipartite:
        reading = replace(
            reading, limit=min(MAX_VERTEX, rows - 1), right_limit=min(MAX_VERTEX, columns - 1)
        )
    size = min(rows, MAX_VERTEX + 1) if rows == columns else 0
    start = len(data) - len(data.lstrip())
    end = (data.find(b"\n", start) + 1) or len(data)
    body = Block(b"\n" * data.count(b"\n", 0, end) + data[end:], first.line)
    more = (emptied(block, None) for block in blocks)
    pieces = read_text(chain([body], more), replace(reading, named=False))
    return reading, as_promised(path, pieces, entries, "entries"), lambda: np.arange(size)


def _up_to_sizes(blocks: Iterator[Block]) -> Block:
    """The first blocks as one, up to the one that has a line which is no comment."""
    first = next(blocks, Block(b"", 1))
    while not emptied(first, None).data.strip() and (more := next(blocks, None)):
        first = replace(first, data=first.data + more.data)
    return first
