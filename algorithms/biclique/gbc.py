"""(p, q)-bicliques counted by enumerating subsets of one layer: GBC, and past it.

Source: Qiu, Li, Ke, Chen and Gao, "Accelerating biclique counting on GPU", arXiv 2403.07858; the
basic model is that of Yang, Peng and Zhang, "(p, q)-biclique counting and enumeration for large
sparse bipartite graphs", PVLDB 15(2), 2021.

Idea: every p-subset of the anchor layer with c common neighbours is in C(c, q) bicliques. A subset
grows vertex by vertex from its root, and what grows beside it is its set of common neighbours.

*Exact counts.* The search adds no binomials: it counts the subsets that have c common neighbours,
for every c, in 64 bits, and the sum of counts times C(c, q) is taken in Python's integers. Subsets
are looked at one by one, so that no count can reach 2^64. One histogram answers for every q, from
the least it was made for on.

*Rows.* Three forms of neighbourhoods, `Switches.rows`:
    compact   ours: a root's candidates have bitmaps over the root's neighbours, and every level
              below packs them again to the bits and candidates that are left (`_compact_cpu`).
    htb       the paper's hierarchical truncated bitmaps (`truncated`, `_truncated_cpu`).
    csr       the paper's baseline: binary search in sorted rows.
The paper's programs are GBC and GBL below.

*Memory.* `memory_limit` bounds what a search holds: the part of the graph that is counted
(`partition`), its tables of two-hop neighbours, candidates, bitmaps, workspaces. It does not bound
what is there for the whole graph, whose size follows from the graph's and cannot be parted: a copy
in the order of ranks, 4 bytes a vertex and thread for finding two-hop neighbours, and at most 100
bytes a vertex for choosing the layer and the parts. On a device the copy lies there, too, while the
parts are chosen on the host.

Requires p, q >= 1. The graph should be trimmed to its (q, p)-core beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import device_of, on_device, to_host

from . import checks, partition, search_cpu
from .anchored import Anchored, Anchoring, anchored, two_hop
from .bipartite import Bipartite
from .paper import border

Array = npt.NDArray[Any]  # or cupy.ndarray

ROWS = ("compact", "htb", "csr")


@dataclass(frozen=True)
class Switches:
    """GBC's parts, each of which can be turned off."""

    rows: str = "compact"
    anchor: bool = True  # choose the layer; else anchor on the left one
    priority: bool = True  # number vertices by their two-hop neighbours; else by id
    common: bool = True  # of two-hop neighbours those that share enough; else all
    border: bool = False  # reorder the other layer: matters to "htb" alone
    hybrid: bool = True  # all children of a node at once; else one after the other
    edges: bool = True  # tasks are a root and its first candidate; else roots
    stealing: bool = True  # tasks are taken as workers come free; else dealt out beforehand

    def __post_init__(self) -> None:
        if self.rows not in ROWS:
            raise ValueError(f"rows={self.rows!r}: give one of {', '.join(ROWS)}")


GBC = Switches(rows="htb", border=True)
GBL = Switches(rows="csr", hybrid=False, edges=False, stealing=False)


def count(
    b: Bipartite,
    p: int,
    q: int,
    switches: Switches | None = None,
    memory_limit: int | None = None,
    devices: Sequence[int] | None = None,
) -> int:
    """How many (p, q)-bicliques there are, p vertices on the left: a Python int, exact.

    memory_limit: bytes, of what is said above. devices: numbers of the CUDA devices to count on,
    for a graph on one of them; it is dealt out to them in parts. Raises ValueError on p or q below
    1, on devices for a graph on the host, and on a memory_limit that is no number of bytes or is
    too small for one root, saying what that needs."""
    switches = switches or Switches()
    p, q = checks.sizes(p, q)
    memory_limit = checks.memory(memory_limit)
    if devices is not None and not b.on_device:
        raise ValueError("devices: the graph lies on the host; bring it to a CUDA device first")
    with device_of(b.left_indptr):
        if switches.border:
            b = border.reordered(b)
        chosen = anchored(
            b, p, q, choose=switches.anchor, priority=switches.priority, common=switches.common
        )
        return of_search(chosen, switches, memory_limit, devices)


def of_search(
    search: Anchoring,
    switches: Switches | None = None,
    memory_limit: int | None = None,
    devices: Sequence[int] | None = None,
) -> int:
    """As `count`, on the layer of a graph that was chosen beforehand."""
    return total(subsets_of(search, switches, memory_limit, devices), search.least)


def subsets_of(
    search: Anchoring,
    switches: Switches | None = None,
    memory_limit: int | None = None,
    devices: Sequence[int] | None = None,
) -> Array:
    """The histogram of such a layer: uint64, how many subsets have c common neighbours, for every
    c >= least, on the host. Its `total` for any q >= least is a number of bicliques."""
    return histogram(
        search.graph, search.depth, search.least, switches or Switches(), memory_limit, devices
    )


def total(found: Array, least: int) -> int:
    """Bicliques of a histogram: the sum of found[c] · C(c, least)."""
    return sum(int(found[c]) * comb(c, least) for c in np.flatnonzero(found).tolist() if c >= least)


def histogram(
    graph: Anchored,
    depth: int,
    least: int,
    switches: Switches,
    memory_limit: int | None = None,
    devices: Sequence[int] | None = None,
) -> Array:
    """uint64[largest degree + 1], on the host: how many subsets of `depth` anchors have c common
    neighbours, for every c >= least; below it, no matter what."""
    degrees = graph.indptr[1:] - graph.indptr[:-1]
    bins = int(degrees.max()) + 1 if len(degrees) else 1
    if depth == 1:
        of_vertices: Array = np.bincount(to_host(degrees), minlength=bins)
        return of_vertices.astype(np.uint64)
    engine = _engine(graph)
    if memory_limit is None and devices is None:
        later = two_hop(graph.indptr).candidates(graph, least if switches.common else 1)
        return engine.search(graph, later, depth, least, bins, switches, None)
    return partition.search(engine, graph, depth, least, bins, switches, memory_limit, devices)


def _engine(graph: Anchored) -> ModuleType:
    if not on_device(graph.indptr):
        return search_cpu
    from . import search_cuda

    return search_cuda
