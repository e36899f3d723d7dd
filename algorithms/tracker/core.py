"""Core numbers, brought up to date by letting h-indices fall and then rise from level to level.

Sources: Montresor, De Pellegrini and Miorandi, "Distributed k-core decomposition", PODC 2011 (the
fall); Sariyüce, Gedik, Jacques-Silva, Wu and Çatalyürek, "Streaming algorithms for k-core
decomposition", PVLDB 6, 2013 (the traversal, and its pruning by mcd); for batches, the argument
below.

Numbers c are *supported* in a graph where every v has at least c(v) neighbours w with
c(w) ≥ c(v). For supported numbers, {v: c(v) ≥ k} has degrees of k and more, so c is nowhere above
the core numbers, which are the largest numbers supported. Both steps work on the graph after the
batch, all its insertions and deletions in it.

*Fall.* The old numbers lose support where edges were deleted. A vertex short of it falls to the
h-index of its neighbours' numbers; who counted on it is looked at again. What remains, f, is the
largest supported function below the old numbers: a lower bound of the new ones.

*Rise*, in rounds. A round begins at roots: first the ends u of inserted edges (u, v) with
f(u) ≤ f(v), later the vertices that rose in the round before. From them it goes along edges
between vertices of equal number k, as long as they have more than k neighbours of number k or more
(mcd); of those reached, the ones with at most k such neighbours are evicted, which takes one from
the counts of their neighbours at level k, and so on. Who stays rises by one. The round's result
is supported, so never above the core numbers. The last round is the one in which nobody rises.

*Then the numbers are exact.* Suppose that they are not, after round t, with c the numbers before it
and r the core numbers. Let k be the least c(v) of all v with c(v) < r(v), D all such v with
c(v) = k, and C a connected part of D. A v of C has k + 1 neighbours w with r(w) ≥ k + 1, and each
has c(w) ≥ k + 1 or, k being least, is in C; so C ∪ {c > k} supports k + 1 for C, mcd is above k all
over C, and a round that reaches one of C reaches C and lets it rise. It did not, so no root was in
C. No v of C rose in round t − 1 then, and the round t − 1 did not reach C either, or C would have
risen then: what rose from k beside C was reached, at level k, and would have led to C. Hence C had
the same support in that round, and in all before, back to the first: C ∪ {f > k} supports k + 1
for C, and no edge inserted in C's support starts at C (its end in C would be a root). If a v of C
stood above k before the fall, so that all of C did, f + 1 on C would be supported and below
the old numbers, but f was the largest such. Else let C' be those of C whose old number was k: their
support consists of edges that were there before, to vertices of old numbers above k or in C', so
that C' was in the old (k + 1)-core. A contradiction.

A round's levels do not touch each other, so all rise at once, and there are as many rounds as the
largest rise, plus one. Rule: when the rows read hold more entries than SHARE of all rows, and
a round of the queue counted as WAVE entries, the numbers are peeled anew.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from lpma.arrays import array_module

from .._views import Array, View
from ..core import core_numbers
from .figure import Change

SHARE = {"cpu": 1.0, "cuda": 1.0}
LEAST = 1 << 16  # entries that may be read in any case


class CoreNumbers:
    """See the module, and `figure.Figure`. `value` is int32[n]."""

    def __init__(self) -> None:
        self.value: Array = np.empty(0, np.int32)

    def recompute(self, rows: View) -> None:
        self.value = core_numbers((rows.indptr, rows.indices))

    def update(self, change: Change) -> bool:
        rows = change.after
        place = "cuda" if rows.on_device else "cpu"
        budget = max(LEAST, int(SHARE[place] * len(rows.indices)))
        n, known = rows.num_vertices, len(self.value)
        xp = array_module(self.value)
        numbers = xp.zeros(max(n, known), np.int32)  # of those that went too: the fall asks them
        numbers[:known] = self.value
        if not _tools(rows).follow(change, numbers, budget):
            return False
        self.value = numbers if len(numbers) == n else numbers[:n].copy()
        return True


def _tools(rows: View) -> ModuleType:
    if rows.on_device:
        from ..cuda import tracker_core as on_device

        return on_device
    from . import _core_cpu

    return _core_cpu
