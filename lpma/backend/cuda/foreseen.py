"""Memory for a store's next expansion, taken before it is needed.

Idea: a part of a column, or an array of the tree, takes the driver 50 us on one host and half a
millisecond on another, and an expansion needs up to six; and there are the bounds of the larger
store's windows. So the batches before it take two pieces each, while the device is at work on
them, and the last one what is still missing.

A part of a level that is there already is mapped where it will be (reserved.py). What a level more
consists of is kept here until `Shapes.expand` asks for it. Memory runs out silently: then what was
kept is given back, and the batch that expands tries for itself. It also takes what would have
brought a store that grows part by part above the bytes an edge that are promised of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import cupy
import numpy as np

from ..layout import NOTHING, PARTS, Size, level_slots
from . import reserved
from .segments import Segments

Array = Any  # cupy.ndarray

A_BATCH = 2  # pieces: one each would make every other batch a slow one
MOST_MEMORY = 1.55  # of a store that grows part by part, to what its edges take: 31 B to 20


class Piece(NamedTuple):
    """What an expansion needs, and the bytes of memory that it takes."""

    take: Callable[[], Any]
    nbytes: int


class Foreseen:
    """Of one store. REQUIRES, of every call: its context."""

    def __init__(self) -> None:
        self._size = NOTHING  # which the store may expand to
        self._held: dict[str, Any] = {}  # each piece that was taken
        self._gives_up = False

    @property
    def nbytes(self) -> int:
        return sum(reserved.held_bytes(a) for a in self._held.values() if is_array(a))

    def look(
        self, segments: Segments, size: Size, batches: int, bring_bounds: Callable[..., object],
        held_bytes: int,
    ) -> None:  # fmt: skip
        """Take pieces if it is time, all if it is high time. See Foreseeing.foresee. bring_bounds:
        has the bounds of a size on the device; held_bytes: of all that the store has."""
        if size != self._size:
            self._size, self._held, self._gives_up = size, {}, False
        if self._gives_up:
            return
        bounds = Piece(partial(bring_bounds, size, segments.segment_size), 0)
        missing = list(self._missing(segments, size, {"bounds": bounds}))
        if batches > -(-len(missing) // A_BATCH):
            return
        spare = self._spare(segments, size, held_bytes)
        try:
            for name, piece in missing if batches < 2 else missing[:A_BATCH]:
                if piece.nbytes <= spare:
                    self._held[name] = piece.take()
                    spare -= piece.nbytes
        except MemoryError:
            self._held, self._gives_up = {}, True

    def _spare(self, segments: Segments, size: Size, held_bytes: int) -> float:
        """The bytes that may be taken ahead."""
        if size.m > segments.m and size.parts == PARTS:  # it doubles
            return float("inf")
        edge_bytes = sum(levels[0].itemsize for levels in segments.columns.values())
        return MOST_MEMORY * edge_bytes * segments.num_slots - held_bytes

    def _missing(
        self, segments: Segments, size: Size, pieces: dict[str, Piece]
    ) -> Iterator[tuple[str, Piece]]:
        """What takes each piece that is not there yet: of `pieces`, and of memory."""
        if size.m > segments.m:
            slots = level_slots(size.m, segments.segment_size)
            for name, levels in segments.columns.items():
                column = slots, levels[0].dtype, size.parts
                take = partial(reserved.level_column, *column)
                pieces[name] = Piece(take, reserved.level_bytes(*column))
            tree = tree_shapes(size.m)
            # The plan's marks are made anew with the tree (work.py), of what this gives back then.
            for name, (entries, dtype) in {**tree, "marks": tree["counts"]}.items():
                nbytes = entries * np.dtype(dtype).itemsize
                pieces[name] = Piece(partial(cupy.empty, entries, dtype), nbytes)
        yield from ((name, piece) for name, piece in pieces.items() if name not in self._held)
        if size.m == segments.m:
            for name, levels in segments.columns.items():
                if not reserved.is_backed(levels[-1], size.parts):
                    nbytes = levels[-1].nbytes // PARTS
                    yield name, Piece(partial(reserved.back, levels[-1], size.parts), nbytes)

    def taken(self, size: Size) -> dict[str, Array]:
        """The arrays held for a store of this size, which are the caller's from now on."""
        held, self._held = self._held, {}
        return held if size == self._size else {}

    def give_back(self) -> None:
        """The store is to be smaller."""
        self._size, self._held = NOTHING, {}


def is_array(held: object) -> bool:
    return isinstance(held, cupy.ndarray)


def tree_shapes(m: int) -> dict[str, tuple[int, Any]]:
    """(entries, type) of each array of a tree of m levels."""
    return {"fences": (1 << m, cupy.uint64), "counts": (2 << m, cupy.uint32)}
