"""METIS's files of graphs: a line `vertices edges [format [constraints]]`, then a line a vertex
that lists its neighbours, from 1; "%" begins a comment, and an empty line is a vertex without any.

Each edge stands in the lines of both its ends. That tells such a file from a list of edges, where
every line may have two numbers, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...errors import SourceError
from ...types import Rejected
from .opening import read_blocks
from .pieces import Piece, Vertices, piece_of
from .reading import Asked, Reading, reading_of_indices

CHECKED_LINES = 2000  # in which each edge must stand at both its ends
PIECE_LINES = 1 << 16


class _Head(NamedTuple):
    """What the first line says. skipped: numbers of a line before its neighbours; step: 2 if each
    neighbour is followed by a weight."""

    vertices: int
    edges: int
    skipped: int
    step: int


def is_metis(text: bytes, whole: bool) -> bool:
    """Whether this is how such a file begins, or, if `whole`, all of it."""
    lines = [line for line in text.split(b"\n") if not line.lstrip().startswith(b"%")]
    head = _head(lines[0])
    if head is None or not head.edges:
        return False
    body = lines[1 : head.vertices + 1] if whole else lines[1:-1]
    if whole and (len(body) < head.vertices or b"".join(lines[head.vertices + 1 :]).strip()):
        return False
    rows = []
    for row, line in enumerate(body):
        ends, _ = _neighbors(line, head) or ([row], [])
        rows.append(set(ends))
        if row in ends or len(rows[-1]) < len(ends):
            return False
    if whole and sum(map(len, rows)) != 2 * head.edges:
        return False
    top = rows[:CHECKED_LINES]
    pairs = [(u, v) for u, ends in enumerate(top) for v in ends if v < len(top)]
    uneven = len({len(line.split()) for line in body}) > 1
    return all(u in top[v] for u, v in pairs) and bool(pairs or uneven)


def _head(line: bytes) -> _Head | None:
    fields = line.split()
    if not 2 <= len(fields) <= 4 or not all(field.isdigit() for field in fields):
        return None
    vertices, edges, *more = map(int, fields)
    form = fields[2].zfill(3) if more else b"000"
    if len(form) > 3 or form.strip(b"01"):
        return None
    constraints = (more[1] if len(more) > 1 else 1) if form[1:2] == b"1" else 0
    return _Head(vertices, edges, (form[:1] == b"1") + constraints, 1 + (form[2:] == b"1"))


def _neighbors(line: bytes, head: _Head) -> tuple[list[int], list[float]] | None:
    """The neighbours that a line lists, from 0, and their weights; None if it is not such a
    line."""
    fields = line.split()[head.skipped :]
    try:
        ends = [int(field) - 1 for field in fields[:: head.step]]
        weights = [float(field) for field in fields[1::2]] if head.step == 2 else [1.0] * len(ends)
    except ValueError:
        return None
    fit = len(weights) == len(ends) and all(0 <= end < head.vertices for end in ends)
    return (ends, weights) if fit else None


def open_metis(path: Path, asked: Asked, mirror: bool) -> tuple[Reading, Iterator[Piece], Vertices]:
    """How the file is read, its pieces, and its vertices. mirror: whether an edge gives both.
    Raises SourceError, OSError."""
    lines = _lines(path)
    number, first = next(lines, (1, b""))
    head = _head(first)
    if head is None:
        raise SourceError(f"{path}: expected 'vertices edges' in line {number}")
    columns = ("line", "neighbour", "weight")[: 1 + head.step]
    reading = reading_of_indices(
        path, "metis", columns, head.vertices, asked, mirror=mirror, directed=False
    )
    return reading, _pieces(path, reading, head, lines), lambda: np.arange(head.vertices)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are no comments, each with its number."""
    for block in read_blocks(path):
        for number, line in enumerate(block.data[:-1].split(b"\n"), block.line):
            if not line.lstrip().startswith(b"%"):
                yield number, line


def _pieces(
    path: Path, reading: Reading, head: _Head, lines: Iterator[tuple[int, bytes]]
) -> Iterator[Piece]:
    """The edges, each from the line of its smaller end. Raises SourceError."""
    vertex = listed = 0
    while part := list(islice(lines, PIECE_LINES)):
        src: list[int] = []
        dst: list[int] = []
        weight: list[float] = []
        for number, line in part:
            found = _neighbors(line, head)
            if vertex >= head.vertices:
                if line.strip():
                    raise SourceError(f"{path}: line {number}: {head.vertices} vertices promised")
                continue
            if found is None:
                raise SourceError(
                    f"{path}: line {number}: expected neighbours from 1 to {head.vertices}"
                    + (", each with a weight" if head.step == 2 else "")
                )
            listed += len(found[0])
            for end, value in zip(*found, strict=True):
                if end >= vertex:
                    src.append(vertex)
                    dst.append(end)
                    weight.append(value)
            vertex += 1
        table = {"src": np.array(src, np.int64) + 1, "dst": np.array(dst, np.int64) + 1}
        if "weight" in reading.places:
            table["weight"] = np.array(weight)
        yield piece_of(table, replace(reading, named=False), {}, _no_row)
    if vertex != head.vertices or listed != 2 * head.edges:
        raise SourceError(
            f"{path}: {vertex} vertices with {listed} neighbours, but {head.vertices} with "
            f"{2 * head.edges} promised: cut short or damaged"
        )


def _no_row(row: int) -> Rejected:
    """A line is whole, or the file is not read."""
    raise SourceError(f"edge {row + 1}: outside the limits of an update")
