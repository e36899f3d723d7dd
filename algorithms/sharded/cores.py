"""Core numbers over shards, by h-indices.

Source: Montresor, De Pellegrini and Miorandi, "Distributed k-core decomposition", PODC 2011. An
estimate, at first the degree, becomes the h-index of the neighbours' estimates: the largest h such
that h of them are h or more. Estimates never rise, and never fall below the core number, so it does
not matter in what order they are refined, nor how old a neighbour's is. So a shard refines its own
until none changes, and only then exchanges: the changes, with their places, to the shards that look
at them. It ends when no shard changed any.

On the CPU a vertex also counts the neighbours that support its estimate, those whose estimates are
no smaller, and is refined only when too few are left (Wen, Qin, Zhang, Lin and Yu, "I/O efficient
core graph decomposition at web scale", ICDE 2016, SemiCore*): see cores_cpu.py. On a device the
one-device kernels of h_index.cu refine, rows of others being masked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import to_host

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
        came, said = yield from changes(held, across, estimate, changed, _any(changed))
        if not any(said):
            return to_host(estimate[held.owned])


def _any(mask: Array) -> bool:
    from lpma.arrays import any_of

    return any_of(mask)


def _refiner(held: Held, view: View, estimate: Array) -> Any:
    if view.on_device:
        from .cuda import Refiner as OnDevice

        return OnDevice(view, held.is_owned, estimate)
    from .cores_cpu import Refiner

    return Refiner(view, held.is_owned, estimate)
