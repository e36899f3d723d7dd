"""Memory for a store's next expansion, taken before it is needed.

Idea: a part of a column, or an array of the tree, takes the driver 50 us on one host and half a
millisecond on another, and an expansion needs up to six; and there are the bounds of the larger
store's windows. So each of the batches before it takes a step or two, while the device is at work
on it, and the last one takes all that are left. A part of a column is two steps: to have memory,
and to map it where it will be (virtual_memory.py).

What a level more consists of is kept here until `Shapes.expand` asks for it. Memory runs out
silently: then what was kept is given back, and whoever expands the store tries for itself. It also
takes what would have brought a store that grows part by part above the bytes an edge that are
promised of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import cupy
import numpy as np

from ....pma.density import window_bounds
from ....pma.layout import NOTHING, PARTS, Size, level_slots
from . import virtual_memory
from .segments import Segments

Array = Any  # cupy.ndarray

MOST_MEMORY = 1.55  # of a store that grows part by part, to what its edges take: 31 B to 20


class Step(NamedTuple):
    """Towards an expansion, and the bytes of memory that it takes."""

    take: Callable[[], Any]
    nbytes: int
    left: int = 1  # with those that follow on it


class Preallocated:
    """Of one store. REQUIRES, of every call: its context."""

    def __init__(self) -> None:
        self._size = NOTHING  # which the store may expand to
        self._last_at = 0  # where the store's last level is
        self._held: dict[str, Any] = {}  # what was taken
        self._left = 0  # steps

    @property
    def nbytes(self) -> int:
        return sum(virtual_memory.held_bytes(a) for a in self._held.values() if is_array(a))

    def look(
        self, segments: Segments, size: Size, batches: int, steps: int,
        bring_bounds: Callable[..., object], held_bytes: Callable[[], int],
    ) -> None:  # fmt: skip
        """Take so many steps if it is time, all if it is high time. See Better.foresee.
        bring_bounds: has the bounds of a size on the device; held_bytes: of all that the store
        has."""
        bring = partial(bring_bounds, size, segments.segment_size)
        last_at = segments.keys[-1].data.ptr
        if size != self._size or last_at != self._last_at:  # it was rebuilt
            self._size, self._last_at, self._held = size, last_at, {}
            self._left = _number_of(self._missing(segments, size, bring))
        if steps * (batches - 1) > self._left or not self._left:  # a batch may be on its way
            return
        spare = self._spare(segments, size, held_bytes)
        try:
            for _ in range(self._left if batches < 2 else steps):
                missing = self._missing(segments, size, bring)
                fitting = (name for name, step in missing.items() if step.nbytes <= spare)
                if (name := next(fitting, None)) is None:
                    break
                spare -= missing[name].nbytes
                self._held[name] = missing[name].take()
                self._left = _number_of(missing) - 1
        except MemoryError:
            self._held, self._left = {}, 0  # it gives up

    def _spare(self, segments: Segments, size: Size, held_bytes: Callable[[], int]) -> float:
        """The bytes that may be taken ahead."""
        if size.m > segments.m and size.parts == PARTS:  # it doubles
            return float("inf")
        edge_bytes = sum(levels[0].itemsize for levels in segments.columns.values())
        return MOST_MEMORY * edge_bytes * segments.num_slots - held_bytes()

    def _missing(
        self, segments: Segments, size: Size, bring_bounds: Callable[[], object]
    ) -> dict[str, Step]:
        """The next step to each thing that is not there yet."""
        # What `window_bounds` returns is kept: to bring it then takes half as long.
        compute = partial(window_bounds, size, segments.segment_size)
        steps = {"bounds": Step(compute, 0), "bounds there": Step(bring_bounds, 0)}
        columns = {name: levels[-1] for name, levels in segments.columns.items()}
        if size.m > segments.m:
            slots = level_slots(size.m, segments.segment_size)
            for name, last in columns.items():
                column = slots, last.dtype, size.parts
                nbytes = virtual_memory.taken_at_once(*column)
                take = partial(virtual_memory.addresses, *column)
                steps[name] = Step(take, nbytes, 1 if nbytes else 1 + 2 * size.parts)
            tree = tree_shapes(size.m)
            # The plan's marks are made anew with the tree (work.py), of what this gives back then.
            for name, (entries, dtype) in {**tree, "marks": tree["counts"]}.items():
                nbytes = entries * np.dtype(dtype).itemsize
                steps[name] = Step(partial(cupy.empty, entries, dtype), nbytes)
            columns = {name: self._held[name] for name in columns if name in self._held}
        missing = {name: step for name, step in steps.items() if name not in self._held}
        for name, column in columns.items():
            if left := virtual_memory.steps(column, size.parts):
                nbytes = 0 if left % 2 else column.nbytes // PARTS
                take = partial(virtual_memory.advance, column, size.parts)
                missing[f"memory of {name}"] = Step(take, nbytes, left)
        return missing

    def taken(self, size: Size) -> dict[str, Array]:
        """The arrays held for a store of this size, which are the caller's from now on. Some may
        not have all of their memory."""
        held, self._held = self._held, {}
        return held if size == self._size else {}

    def give_back(self) -> None:
        """The store is to be another one."""
        self._size, self._held = NOTHING, {}


def _number_of(missing: dict[str, Step]) -> int:
    return sum([step.left for step in missing.values()])


def is_array(held: object) -> bool:
    return isinstance(held, cupy.ndarray)


def tree_shapes(m: int) -> dict[str, tuple[int, Any]]:
    """(entries, type) of each array of a tree of m levels."""
    return {"fences": (1 << m, cupy.uint64), "counts": (2 << m, cupy.uint32)}
