"""Core numbers over shards, by h-indices.

Source: Montresor, De Pellegrini and Miorandi, "Distributed k-core decomposition", PODC 2011. An
estimate, at first the degree, becomes the h-index of the neighbours' estimates: the largest h such
that h of them are h or more. Estimates never rise, and never fall below the core number, whatever
the order of refinement and the age of a neighbour's estimate. So a shard refines its own until none
changes, and only then sends the changes, with their places, to the shards that read them. It ends
when no shard has changed any.

At first a shard finds where its h-indices settle by peeling (`core.cpu.peeled`): rows of others are
peeled at their estimates, own rows at the level where they would settle. That reads each row once,
however far estimates fall, so it is repeated, from the degrees, until a superstep brings changes to
few entries. Then a vertex is refined only when a neighbour that supported its estimate falls below
it: on the CPU by counts of supporters (cores_cpu.py), on a device in rounds (h_index.cu, cuda.py).

Requires a simple view whose rows of others are empty, C-contiguous, and estimates of at least 1 for
rows of others that occur in it, as vertices with a neighbour have: 0 would not be peeled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import any_of, to_host

from ...arrays import Array
from ...views.directed import transpose_of
from ...views.simple import View
from ..runtime.state import ShardState
from ..runtime.types import Steps
from . import cores_cpu
from .oriented import degrees_around
from .views import changes, halo, simple_rows


def cores(state: ShardState) -> Steps:
    """int32: the core number of each owned row."""
    degree = yield from degrees_around(state)
    view = yield from simple_rows(state)
    across = yield from halo(state, "simple", view)
    estimate = degree.astype(np.int32)
    refiner = _refiner(state, view, estimate)
    came: list[Any] = []
    while True:
        before = estimate.copy()
        refiner.refine(came)
        changed = (estimate != before) & state.is_owned
        came, said = yield from changes(state, across, estimate, changed, any_of(changed))
        if not any(said):
            return to_host(estimate[state.owned])


def _refiner(state: ShardState, view: View, estimate: Array) -> Any:
    if "holders" not in state.cache:
        is_whole = state.shards == 1  # then the view is its own transpose
        state.cache["holders"] = view if is_whole else transpose_of(view)
    holders = state.cache["holders"]
    if view.on_device:
        from . import cuda

        return cuda.Refiner(view, holders, estimate)
    return cores_cpu.Refiner(view, holders, estimate)
