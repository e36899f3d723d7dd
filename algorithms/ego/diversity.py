"""Structural diversity: how many social contexts surround each vertex, and whom the most.

Source: Huang, Huang, Xu, Choi and Peng, "GPU-accelerated structural diversity search in graphs".
`model` says what ego networks and contexts are, `listing` and `extract` are two methods of finding
them, and `schedule` searches for the best, on several devices too.

"auto" takes listing, which neither builds nor numbers ego networks, but extraction

on a device  for a graph of fewer than FEW_EDGES edges whose ego networks have fewer than
             FEW_EGO_EDGES together: the largest ones keep listing waiting, where extraction fills
             the device with all edges of all of them
on the CPU   in the models core and truss, where the matrices of listing have more than
             WORDS_PER_EGO_EDGE words for each edge of an ego network: hubs whose neighbours hardly
             know each other

Ego networks have three edges for each triangle. On the CPU triangles are listed once, whatever is
taken; a word costs some 5 ns, and an ego edge of extraction from 50 ns, in sparse ego networks, to
500, in the truss model in dense ones: the multiple lies between, where neither errs by much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpma.arrays import to_host
from lpma.backend import no_cuda
from lpma.errors import BatchError, DeviceError
from lpma.snapshot import Snapshot

from ..triangles import listed
from ..views.directed import present
from ..views.simple import simple
from . import cost, extract, listing, listing_cpu, schedule
from .model import Scorer, check_model, is_integer

Array = npt.NDArray[Any]  # or cupy.ndarray

FEW_EDGES, FEW_EGO_EDGES = 1 << 19, 1 << 23
WORDS_PER_EGO_EDGE = 32

METHODS: Mapping[str, Callable[[Any, str, int], Scorer]] = {
    "listing": listing.Scorer,
    "extract": extract.Scorer,
}


class Diverse(NamedTuple):
    """A vertex, how many contexts it has, and which: uint32 arrays of rising vertices, in the order
    of their smallest."""

    vertex: int
    score: int
    contexts: list[Array]


def diversity(s: Any, model: str, k: int, method: str = "auto") -> Array:
    """The number of social contexts in the ego network of every vertex: int32[n]; 0 for a row that
    is no vertex.

    s: a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as a simple undirected
    graph; the result lies where s does. model: "component" (connected components of at least k
    vertices), "core" (of the k-core) or "truss" (of the k-truss, by edges; up to k = 2 all edges
    count). k: 1 or more. method: "listing", "extract" or "auto". Raises ValueError on another model
    or method, and `lpma.BatchError` on another k, an s that is no graph, or one of 2^31 edges."""
    make = _method(method)
    check_model(model, k)
    s = _read_once(s)
    scorers = workers(make, s, model, int(k), None)
    owners = np.arange(simple(s).num_vertices, dtype=np.uint32)
    if len(scorers) == 1:
        return scorers[0].scores(owners)
    return schedule.scores(scorers, owners, cost.estimate(scorers[0], owners, len(scorers)))


def top_diversity(
    s: Any,
    model: str,
    k: int,
    t: int,
    devices: Sequence[int] | None = None,
    method: str = "auto",
) -> list[Diverse]:
    """The t vertices of the most contexts, or all where they are fewer, from the best down; of
    equal ones those of the smaller ids.

    devices: the numbers of the CUDA devices to share the work; None: the one where s lies, or the
    CPU. Contexts lie on the first. Else see `diversity`; raises BatchError also on a t that
    is no integer or negative, ValueError on no devices or one given twice, and `lpma.DeviceError`
    on one that cannot be used."""
    make = _method(method)
    check_model(model, k)
    if not is_integer(t) or t < 0:
        raise BatchError(f"t = {t!r}: an integer is needed, of 0 vertices or more")
    return search(workers(make, _read_once(s), model, int(k), devices), int(t), vertices=present(s))


def search(
    scorers: Sequence[Scorer], t: int, stealing: str = "global", vertices: Array | None = None
) -> list[Diverse]:
    """The t best by workers' scorers of one graph; for stealing see `schedule.scores`. vertices:
    bool[n], which rows are; None: all."""
    first = scorers[0]
    bounds = first.bounds()
    owners = np.arange(len(bounds), dtype=np.uint32)
    if vertices is not None:
        owners = owners[to_host(vertices)]
        bounds = bounds[owners]
    worth = np.flatnonzero(bounds)
    costs = np.ones(len(owners))
    costs[worth] = cost.estimate(first, owners[worth], len(scorers))
    best = schedule.top(scorers, owners, bounds, costs, t, stealing, first.at_once)
    contexts = first.contexts(np.array([vertex for vertex, _ in best], np.uint32))
    return [Diverse(*pair, its) for pair, its in zip(best, contexts, strict=True)]


def _read_once(s: Any) -> Any:
    """A Snapshot, which keeps its views; of any other graph the simple view."""
    return s if isinstance(s, Snapshot) else simple(s)


def _method(name: str) -> Callable[[Any, str, int], Scorer]:
    if name == "auto":
        return _faster
    if name not in METHODS:
        raise ValueError(f"method {name!r}: choose one of auto, {', '.join(METHODS)}")
    return METHODS[name]


def _faster(s: Any, model: str, k: int) -> Scorer:
    """A scorer by the method that "auto" takes."""
    return (_faster_there if simple(s).on_device else _faster_here)(s, model, k)


def _faster_there(s: Any, model: str, k: int) -> Scorer:
    if len(simple(s).indices) < 2 * FEW_EDGES:
        scorer = extract.Scorer(s, model, k)
        if int(scorer.egos.edges.sum()) < FEW_EGO_EDGES:
            return scorer
    return listing.Scorer(s, model, k)


def _faster_here(s: Any, model: str, k: int) -> Scorer:
    if model == "component":
        return listing.Scorer(s, model, k)
    found = listed(s)
    scorer = listing.Scorer(found, model, k)
    ego_edges = int(found.support.sum(dtype=np.int64))
    if listing_cpu.words(scorer.egos) > WORDS_PER_EGO_EDGE * ego_edges:
        return extract.Scorer(found, model, k)
    return scorer


def workers(
    make: Callable[[Any, str, int], Scorer],
    s: Any,
    model: str,
    k: int,
    devices: Sequence[int] | None,
) -> list[Scorer]:
    """A scorer a worker: on each device, which are prepared side by side, or for each thread."""
    if devices is None:
        scorer = make(s, model, k)
        return [scorer] * scorer.threads
    if not devices or len(set(devices)) < len(devices):
        raise ValueError(f"devices {devices!r}: give the number of one device or more, each once")
    for number in devices:
        why = no_cuda(number) if is_integer(number) else "devices are given by their numbers"
        if why is not None:
            raise DeviceError(f"device {number!r}: {why}")
    views = schedule.spread(simple(s), devices)
    with ThreadPoolExecutor(len(views)) as pool:
        return list(pool.map(lambda view: make(view, model, k), views))
