"""Two kinds of vertices: sources on the left, targets on the right, and none is both.

By number, the left side's ids stay as they are, and the right side's follow the largest of them. By
name, the left side's come first; where a name of one side is also one of the other, the column's
name is put before all names of the right side. So the file is read once before, unless it says how
many the left side has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpma.batch.columns import MAX_VERTEX, Columns

from ...errors import SourceError
from .pieces import Piece
from .reading import Reading


@dataclass(frozen=True)
class Sides:
    """left: how many ids, or names, the left side has. names: of both sides, in the order they
    come, if vertices go by names. before: what is put before those of the right side. shifted:
    whether the right side's ids follow the left's already, as in an export."""

    left: int
    names: tuple[list[Any], list[Any]] = ([], [])
    before: str = ""
    shifted: bool = False

    def note(self) -> str:
        """What to say of it; "" if there is nothing."""
        if not self.before:
            return ""
        return (
            f"some names of targets are names of sources, too: all targets are called {self.before}"
            f"NAME, as {self.names[1][0]!r}"
        )

    def apart(self, columns: Columns) -> Columns:
        """The rows with ends of two kinds."""
        if self.shifted:
            return columns
        dst: Any = columns.dst
        if self.names != ([], []):
            if not self.before:
                return columns
            names = [f"{self.before}{name}" for name in dst.tolist()]
            return columns.replace(dst=np.array(names, object))
        return columns.replace(dst=dst + np.uint32(self.left))


def sides_of(pieces: Iterable[Piece], reading: Reading) -> Sides:
    """The two sides of a file that these pieces are all of. Raises SourceError."""
    if reading.named:
        found: tuple[dict[Any, None], dict[Any, None]] = ({}, {})
        for piece in pieces:
            for names, end in zip(found, (piece.columns.src, piece.columns.dst), strict=True):
                names.update(dict.fromkeys(_distinct(end)))
        left, right = map(list, found)
        if found[0].keys().isdisjoint(found[1]):
            return Sides(len(left), (left, right))
        before = f"{reading.columns[reading.places['dst']]}:"
        return Sides(len(left), (left, [f"{before}{name}" for name in right]), before)
    most = [-1, -1]
    for piece in pieces:
        if len(piece.columns):
            ends = (piece.columns.src, piece.columns.dst)
            most = [max(most[i], int(end.max())) for i, end in enumerate(ends)]
    if sum(most) + 1 > MAX_VERTEX:
        raise SourceError(
            f"{reading.path}: {most[0] + 1} ids of one kind and {most[1] + 1} of the other are "
            f"more than {MAX_VERTEX + 1}: with --names (names=True) vertices go by names"
        )
    return Sides(most[0] + 1)


def _distinct(end: Any) -> list[Any]:
    """The names in a column, in the order they come."""
    if not isinstance(end, np.ndarray):
        names: list[Any] = end.unique().to_pylist()
        return names
    return list(dict.fromkeys(end.tolist()))
