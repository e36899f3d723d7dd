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
it: on the CPU by counts of supporters (cores_cpu.py), on a device in rounds (`core.cuda.settle`).

Requires a simple view whose rows of others are empty, C-contiguous, and estimates of at least 1 for
rows of others that occur in it, as vertices with a neighbour have: 0 would not be peeled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import any_of, array_module, to_host

from ...arrays import Array, by_device
from ...views.directed import transpose_of
from ...views.simple import View
from ..runtime.state import ShardState
from ..runtime.types import Steps
from . import cores_cpu
from .oriented import degrees_around
from .views import changes, halo, simple_rows

FEW = 4  # a share of 1/FEW of entries naming changed rows, up to which rows are not peeled anew


def cores(state: ShardState) -> Steps:
    """int32: the core number of each owned row."""
    degree = yield from degrees_around(state)
    view = yield from simple_rows(state)
    across = yield from halo(state, "simple", view)
    estimate = degree.astype(np.int32)
    refiner = Refiner(view, _holders(state, view), estimate)
    came: list[Any] = []
    while True:
        before = estimate.copy()
        refiner.refine(came)
        changed = (estimate != before) & state.is_owned
        came, said = yield from changes(state, across, estimate, changed, any_of(changed))
        if not any(said):
            return to_host(estimate[state.owned])


def _holders(state: ShardState, view: View) -> View:
    """Of any row, the own rows that hold it: the transpose of the view."""
    if "holders" not in state.cache:
        is_whole = state.shards == 1  # then the view is its own transpose
        state.cache["holders"] = view if is_whole else transpose_of(view)
    holders: View = state.cache["holders"]
    return holders


class Refiner:
    """Refines the estimates of own rows, int32[n], at first their degrees, in place."""

    def __init__(self, view: View, holders: View, estimate: Array) -> None:
        self._view, self._holders, self._estimate = view, holders, estimate
        self._is_peeled = False
        self.follower: Any = None  # once changes were few

    def refine(self, came: list[Any]) -> None:
        """Take over estimates of others' rows, [(rows, estimates)], none the first time, and refine
        until no own estimate changes."""
        if self.follower is None and self._is_peeled and not self._is_much(came):
            self.follower = self._program().Follower(self._view, self._holders, self._estimate)
        if self.follower is not None:
            self.follower.follow(came)
            return
        for rows, values in came:
            self._estimate[rows] = values
        self._peel()

    def _is_much(self, came: list[Any]) -> bool:
        """Whether so many entries name changed rows that peeling is cheaper."""
        starts = self._holders.indptr
        touched = sum(int((starts[1:][rows] - starts[rows]).sum()) for rows, _ in came)
        return FEW * touched > len(self._view.indices)

    def _peel(self) -> None:
        """Find the estimates of own rows from those of others."""
        holders, estimate = self._holders, self._estimate
        xp, lengths = array_module(estimate), array_module(estimate).diff(self._view.indptr)
        own = xp.flatnonzero(lengths)
        estimate[own] = lengths[own]
        peeled = by_device(estimate, "algorithms.core").peeled
        estimate[:] = peeled(holders.indptr, holders.indices, estimate.copy())
        self._is_peeled = True

    def _program(self) -> Any:
        if self._view.on_device:
            from . import cuda

            return cuda
        return cores_cpu
