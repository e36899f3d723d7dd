"""Core numbers over shards, by h-indices.

Source: Montresor, De Pellegrini and Miorandi, "Distributed k-core decomposition", PODC 2011. An
estimate, at first the degree, becomes the h-index of the neighbours' estimates: the largest h such
that h of them are h or more. Estimates never rise, and never fall below the core number, so it does
not matter in what order they are refined, nor how old a neighbour's is. So a shard refines its own
until none changes, and only then exchanges: the changes, with their places, to the shards that look
at them. It ends when no shard changed any.

A shard finds the end of its first refinings by peeling, which reads each row once (refining.py).
When changes have become few a vertex is refined only when a neighbour that supported its estimate
falls below it: on the CPU from counts of supporters (cores_cpu.py), on a device by h_index.cu,
round by round (cuda.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import any_of, to_host

from ..views.simple import View
from . import cores_cpu
from .held import Held
from .types import Array, Steps
from .upper import degrees_around
from .views import border, changes, simple_rows, transposed


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


def _refiner(held: Held, view: View, estimate: Array) -> Any:
    if "holders" not in held.kept:
        is_whole = held.shards == 1  # then the view is its own transpose
        held.kept["holders"] = view if is_whole else View(*transposed(view.indptr, view.indices))
    holders = held.kept["holders"]
    if view.on_device:
        from . import cuda

        return cuda.Refiner(view, holders, held.is_owned, estimate)
    return cores_cpu.Refiner(view, holders, estimate)
