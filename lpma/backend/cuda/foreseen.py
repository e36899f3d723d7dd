"""Memory for a store's next expansion, taken before it is needed.

Idea: a part of a column, or an array of the tree, takes the driver 50 us on one host and half a
millisecond on another, and an expansion needs up to six. So the batches before it take one each,
and the last of them what is still missing.

A part of a level that is there already is mapped where it will be (reserved.py). What a level more
consists of is kept here until `Shapes.expand` asks for it. Memory runs out silently: then what was
kept is given back, and the batch that expands tries for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import cupy

from ..layout import NOTHING, Size, level_slots
from . import reserved
from .segments import Segments

Array = Any  # cupy.ndarray


class Foreseen:
    """Of one store. REQUIRES, of every call: its context."""

    def __init__(self) -> None:
        self._size = NOTHING  # which the store may expand to
        self._held: dict[str, Array] = {}  # of a level more
        self._gives_up = False

    @property
    def nbytes(self) -> int:
        return sum(map(reserved.held_bytes, self._held.values()))

    def look(self, segments: Segments, size: Size, batches: int) -> None:
        """Take a piece if it is time, all if it is high time. See Shaping.foresee."""
        if size != self._size:
            self._size, self._held, self._gives_up = size, {}, False
        missing = {} if self._gives_up else self._missing(segments, size)
        if batches > len(missing):
            return
        try:
            for name in list(missing)[: None if batches < 2 else 1]:
                made = missing[name]()
                if made is not None:
                    self._held[name] = made
        except MemoryError:
            self._held, self._gives_up = {}, True

    def _missing(self, segments: Segments, size: Size) -> dict[str, Callable[[], Array | None]]:
        """What takes each piece that is not there yet."""
        columns = {"keys": segments.keys, "weights": segments.weights, "times": segments.times}
        there = {name: levels for name, levels in columns.items() if levels is not None}
        if size.m == segments.m:
            return {
                name: partial(reserved.back, levels[-1], size.parts)
                for name, levels in there.items()
                if not reserved.is_backed(levels[-1], size.parts)
            }
        slots = level_slots(size.m, segments.segment_size)
        pieces = {
            name: partial(reserved.level_column, slots, levels[0].dtype, size.parts)
            for name, levels in there.items()
        } | {name: partial(cupy.empty, *shape) for name, shape in tree_shapes(size.m).items()}
        # These go back to the pool when the plan's marks are made anew, with the tree (work.py).
        pieces["marks"] = partial(cupy.empty, *tree_shapes(size.m)["counts"])
        return {name: take for name, take in pieces.items() if name not in self._held}

    def taken(self, size: Size) -> dict[str, Array]:
        """What is held for a store of this size, which is the caller's from now on."""
        held, self._held = self._held, {}
        return held if size == self._size else {}


def tree_shapes(m: int) -> dict[str, tuple[int, Any]]:
    """(entries, type) of each array of a tree of m levels."""
    return {"fences": (1 << m, cupy.uint64), "counts": (2 << m, cupy.uint32)}
