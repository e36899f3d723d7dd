"""Structural diversity: how many social contexts surround each vertex, and which vertices have the
most.

Source: Huang, Huang, Xu, Choi and Peng, "GPU-accelerated structural diversity search in graphs".
The *ego network* of a vertex, its owner, is the subgraph that the owner's neighbours induce; the
owner's score is the number of contexts in it (`model`).

method=     runs                                  "auto" takes it on the CPU   on a device
"listing"   the edges of all ego networks from    except for                   except for
            one listing of triangles (ours)
"extract"   ego networks built in CSR and         core and truss, where hubs   small graphs, whose
            peeled (the paper's)                  have few edges among their   largest ego networks
                                                  neighbours                   would delay listing

model.py      ego networks, contexts, and the interface of a method: `Scorer`
methods.py    the methods by name, the rule of "auto", a scorer for each worker
listing/      "listing"
extract/      "extract"
schedule.py   scoring on several workers, the exact search for the best
network.py    a single ego network

Oracle: NetworkX on each ego network, by the definitions (tests/algorithms/test_diversity.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from lpma.arrays import to_host
from lpma.snapshot.snapshot import Snapshot
from lpma.snapshot.vertices import OfRows

from .. import arguments
from ..arrays import Array
from ..options import Limits, algorithm
from ..views.directed import present
from ..views.given import Distributed
from ..views.simple import simple
from . import schedule
from .methods import METHODS, workers
from .model import LARGEST_K, MODELS, Scorer

Model = Annotated[str, Limits(choices=MODELS)]
Size = Annotated[int, Limits(ge=1, le=LARGEST_K)]
Method = Annotated[str, Limits(choices=tuple(METHODS))]


class _Diverse(NamedTuple):
    vertex: Any
    score: int
    contexts: list[Array]


class Diverse(OfRows, _Diverse):
    """A vertex; its score, how many contexts it has; and these, where the graph lies, each uint32,
    of ascending vertices, in the order of their smallest vertices. In a Snapshot with names these
    are names, on the host, in the order of the rows.

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 2, 3], device="cpu")
    >>> (best,) = algorithms.top_diversity(graph.snapshot(), "component", 1, t=1)
    >>> best.vertex, best.score, len(best.contexts)
    (2, 2, 2)
    """

    row_fields = ("vertex", "contexts")


@algorithm
def diversity(s: Any, model: Model, k: Size, method: Method = "auto") -> Array:
    """The number of social contexts in the ego network of every vertex.

    s: a Snapshot or ShardedSnapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as a
    simple undirected graph.
    model: what a social context is. "component" (connected components of at least k vertices),
    "core" (those of the k-core) or "truss" (those of the k-truss, joined by edges; up to k = 2 all
    edges count).
    k: the least size or density of a context. 1 or more.
    method: how scores are found. "listing", "extract" (the paper's) or "auto"; all give the same.

    Returns int32[n], where s lies: 0 for a row that is not a vertex. Raises `lpma.BatchError` on
    any other model, method or k, and if s is not a graph or has 2^31 edges or more.

    A triangle, and a fourth vertex joined with one of its corners, vertex 2:

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 2, 3], device="cpu")
    >>> algorithms.diversity(graph.snapshot(), "component", 1)
    array([1, 1, 2, 1], dtype=int32)
    """
    if isinstance(s, Distributed):
        found: Array = s.dispatch("diversity", model=model, k=k, method=method)
        return found
    s = _read_once(s)
    owners = np.arange(simple(s).num_rows, dtype=np.uint32)
    return scores(workers(method, s, model, k), owners)


@algorithm
def top_diversity(
    s: Any,
    model: Model,
    k: Size,
    t: int,
    devices: Sequence[int] | None = None,
    method: Method = "auto",
) -> list[Diverse]:
    """The t vertices with the most social contexts, or all if there are fewer, from the best down;
    among equal scores the smaller vertex comes first.

    t: how many vertices at most.
    devices: the numbers of the CUDA devices to share the work; None: the one where s lies, or the
    CPU; over shards None alone. Contexts lie on the first. For the other arguments see `diversity`.

    Raises as `diversity` does, and `lpma.BatchError` on a t that is negative or not an integer, and
    on no devices or one given twice, and `lpma.DeviceError` on a device that cannot be used.

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 2, 3], device="cpu")
    >>> best = algorithms.top_diversity(graph.snapshot(), "component", 1, t=1)
    >>> [(v, score, [c.tolist() for c in contexts]) for v, score, contexts in best]
    [(2, 2, [[0, 1], [3]])]
    """
    if isinstance(s, Distributed):
        given = {"model": model, "k": k, "t": t, "devices": devices, "method": method}
        found: list[Diverse] = s.dispatch("top_diversity", **given)
        return found
    numbers = arguments.devices(devices)
    scorers = workers(method, _read_once(s), model, k, numbers)
    return by_name(s, search(scorers, t, vertices=present(s)))


def scores(scorers: Sequence[Scorer], owners: Array) -> Array:
    """int32[q]: the score of each of `owners`, uint32[q], by the workers' scorers of one graph."""
    if len(scorers) == 1:
        return scorers[0].scores(owners)
    return schedule.scores(scorers, owners, scorers[0].costs(owners))


def search(
    scorers: Sequence[Scorer], t: int, stealing: str = "global", vertices: Array | None = None
) -> list[Diverse]:
    """The t best by the workers' scorers of one graph. vertices: bool[n], which rows are vertices;
    None: all. stealing: see `schedule.scores`."""
    first = scorers[0]
    bounds = first.bounds()
    owners = np.arange(len(bounds), dtype=np.uint32)
    if vertices is not None:
        owners = owners[to_host(vertices)]
        bounds = bounds[owners]
    costs = first.costs(owners) if len(scorers) > 1 else np.ones(len(owners))
    best = schedule.top(scorers, owners, bounds, costs, t, stealing, first.at_once)
    contexts = first.contexts(np.array([vertex for vertex, _ in best], np.uint32))
    return [Diverse(*pair, its) for pair, its in zip(best, contexts, strict=True)]


def by_name(s: Any, best: list[Diverse]) -> list[Diverse]:
    """What was found in a graph, with names in place of rows if it has names."""
    found = [one.of(s) for one in best]
    return found if getattr(s, "names", None) is None else [one.vertices for one in found]


def _read_once(s: Any) -> Any:
    """A Snapshot, which keeps its views, as it is; of any other graph the simple view."""
    return s if isinstance(s, Snapshot) else simple(s)
