"""A search in parts, within a budget of memory.

The graph is divided into parts that can be counted independently of one another (`bcpar_cpu`). The
budget bounds the graph of a part together with the search of it, by the engine's `prices`. The
whole graph stays on the host, in the order of ranks, with some numbers for each vertex.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from lpma.arrays import array_module, to_host

from ...arrays import Array
from .. import progress
from . import two_hop_cpu
from .bcpar_cpu import bcpar
from .types import Anchored, Search


def search(engine: ModuleType, whole: Search, bins: int, memory_limit: int) -> Array:
    """The histogram of a search, as by `gbc.histogram`, summed over its parts."""
    xp, depth, least = array_module(whole.graph.indptr), whole.depth, whole.least
    host = Anchored(*map(to_host, whole.graph.rows))
    num_candidates = two_hop_cpu.num_candidates(host, least)
    num_candidates[num_candidates < depth - 1] = 0
    prices = engine.prices(depth, bins)
    total = np.zeros(bins, np.uint64)
    counted, candidates = 0, int(num_candidates.sum())
    for part in bcpar(host, num_candidates, least, prices, engine.WORD, memory_limit):
        of_part = int(part.num_candidates.sum())
        graph = Anchored(*map(xp.asarray, part.graph.rows))
        with progress.part(counted, counted + of_part, of=candidates):
            found = Search(graph, depth, least), part.num_candidates, bins, memory_limit
            total += engine.search(*found)
        counted += of_part
    return total
