"""Refining the estimates of core numbers of one shard: what both devices have in common.

At first the estimates are found by peeling (`core.cpu.peeled`): the rows of others are peeled at
their estimates, whatever becomes of their neighbours here. The level at which an own row is peeled
is where the h-indices would settle. That reads each row once, however far estimates fall. So it is
done anew, from the degrees, until a superstep brings changes to few entries. From then on the
changes are followed, by a device's own way.

Requires a simple view whose rows of others are empty, C-contiguous; and estimates of 1 or more of
the others' rows that are named, as vertices with a neighbour have: 0 would not be peeled.
"""

from __future__ import annotations

from typing import Any

from lpma.arrays import array_module

from ..views.simple import View
from .types import Array

FEW = 4  # rows with one entry in so many that name a row that fell are refined, not peeled anew


class Refiner:
    """Refines the estimates of own rows in place. estimate: int32[n], at first the degrees.
    holders: of any row, the own rows that hold it: the transpose of the view."""

    def __init__(self, view: View, holders: View, estimate: Array) -> None:
        xp = array_module(estimate)
        self._view, self._holders, self._estimate = view, holders, estimate
        self._lengths = xp.diff(view.indptr)
        self._own = xp.flatnonzero(self._lengths)
        self._is_peeled = self._follows = False

    def refine(self, came: list[Any]) -> None:
        """Take over estimates of others' rows, [(rows, estimates)], and refine until no own
        estimate changes. The first time nothing comes."""
        self._follows = self._follows or (self._is_peeled and not self._is_much(came))
        if self._follows:
            self._follow(came)
            return
        estimate, own = self._estimate, self._own
        for rows, values in came:
            estimate[rows] = values
        estimate[own] = self._lengths[own]
        self._peel()
        self._is_peeled = True

    def _is_much(self, came: list[Any]) -> bool:
        """Whether so many entries name rows that fell that peeling is cheaper."""
        starts = self._holders.indptr
        touched = sum(int((starts[1:][rows] - starts[rows]).sum()) for rows, _ in came)
        return FEW * touched > len(self._view.indices)

    def _peel(self) -> None:
        """Find the estimates of own rows, which are their degrees, from those of others."""
        raise NotImplementedError

    def _follow(self, came: list[Any]) -> None:
        """Take over what came, and refine whatever it concerns."""
        raise NotImplementedError
