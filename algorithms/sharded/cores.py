"""Core numbers over shards, by h-indices.

Source: Montresor, De Pellegrini and Miorandi, "Distributed k-core decomposition", PODC 2011. An
estimate, at first the degree, becomes the h-index of the neighbours' estimates: the largest h such
that h of them are h or more. Estimates never rise, and never fall below the core number, so it does
not matter in what order they are refined, nor how old a neighbour's is. So a shard refines its own
until none changes, and only then exchanges: the changes, with their places, to the shards that look
at them. It ends when no shard changed any.

On the CPU a shard finds the end of its refining at once, by peeling (`core.cpu.peeled`), which
reads each row once: the rows of others are peeled at their estimates, whatever becomes of their
neighbours here. The level at which an own row is peeled is the largest estimate that the h-indices
could settle at. On a device the one-device kernels of h_index.cu refine, others' rows masked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import any_of, to_host

from ..core.cpu import peeled
from ..views.simple import View
from .held import Held
from .types import Array, Steps
from .upper import degrees_around
from .views import border, changes, simple_rows


def cores(held: Held) -> Steps:
    """int32: the core number of each owned row."""
    degree = yield from degrees_around(held)
    view = yield from simple_rows(held)
    across = yield from border(held, "simple", view)
    estimate = degree.astype(np.int32)
    refiner = _refiner(held, view, estimate)
    came: list[Any] = []
    while True:
        before = estimate.copy()
        refiner.refine(came)
        changed = (estimate != before) & held.is_owned
        came, said = yield from changes(held, across, estimate, changed, any_of(changed))
        if not any(said):
            return to_host(estimate[held.owned])


class Refiner:
    """Refines the estimates of own rows in place, on the CPU. estimate: int32[n], at first the
    degrees. holders: of any row, the own rows that hold it."""

    def __init__(self, holders: View, is_owned: Array, estimate: Array) -> None:
        self._holders, self._is_owned, self._estimate = holders, is_owned, estimate
        self._degree = estimate.copy()
        self._is_refined = False

    def refine(self, came: list[Any]) -> None:
        """Take over estimates of others' rows, [(rows, estimates)], and refine until no own
        estimate changes."""
        if self._is_refined and not came:
            return
        estimate = self._estimate
        for rows, values in came:
            estimate[rows] = values
        np.copyto(estimate, self._degree, where=self._is_owned)
        peeled(self._holders.indptr, self._holders.indices, estimate)
        self._is_refined = True


def _refiner(held: Held, view: View, estimate: Array) -> Any:
    if view.on_device:
        from .cuda import Refiner as OnDevice

        return OnDevice(view, held.is_owned, estimate)
    from ..views.transpose_cpu import transpose

    if "holders" not in held.kept:
        is_whole = held.shards == 1  # then the view is its own transpose
        holders = view if is_whole else View(*transpose(view.indptr, view.indices))
        held.kept["holders"] = holders
    return Refiner(held.kept["holders"], held.is_owned, estimate)
