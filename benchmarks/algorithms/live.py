"""Algorithms from a live store, as after each batch of a stream, beside other libraries.

A round applies a small batch, untimed, and then takes a snapshot of the store and runs the
algorithm on it (*live*): what is derived from rows is made anew, or follows that of the snapshot
before. *views there* is a further call on one snapshot, which does all but make views.
The others have their graph ready made (`peers`), of the state after the last batch, and only their
algorithm's own run is timed, not what it takes to read its results; they are verified in all.

The store has float32 weights and int64 times, and is directed unless the graph is not. Core
numbers, triangles and components are of the simple undirected graph; BFS and PageRank follow the
directions. BFS starts, of the vertices that most edges leave, from the one that reaches most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import algorithms
import lpma
from algorithms.components.grown import LABELS
from algorithms.views.simple import as_snapshot, simple
from ingest import datasets
from ingest.datasets import generators
from lpma import Snapshot
from lpma.cpu.threads import THREADS
from lpma.snapshot.row_versions import lineage_of

from ..keys import Array
from ..report import Report, Setting
from ..stopwatch import NAN, Kernel, WrongAnswer, measure, plain
from . import libraries
from .graphs import DRAWS, SEED
from .peers import peers
from .traversal import check, standard

LIBRARIES = ("networkit", "igraph", "scipy")
DIRECTED = ("sx-mathoverflow", "uk-2007-05-100k")
UNDIRECTED = ("ca-HepTh", "facebook-combined", "email-Enron", "dblp-2010", "ego-twitter")
ROUNDS, BATCH, BUDGET_S = 15, 100, 20.0
CANDIDATES = 10
OURS: dict[str, Callable[[Snapshot], Any]] = {
    "core": algorithms.core_numbers,
    "triangles": algorithms.triangle_count,
    "components": algorithms.connected_components,
    "pagerank": lambda s: algorithms.pagerank(s, libraries.DAMPING, libraries.TOLERANCE),
}


def live(setting: Setting) -> Report:
    report = Report("live", "milliseconds, median")
    for stream in _streams(setting.quick):
        if setting.wants(stream.name):
            for algorithm in ("core", "triangles", "components", "bfs", "pagerank"):
                report.add(_row(stream, algorithm))
    report.notes.append("ratios: the fastest of the others to live, and to views there.")
    return report


@dataclass(frozen=True)
class _Stream:
    """Edges without repeats, in a random order: the last of them arrive in batches. Every id up to
    the largest has an edge."""

    name: str
    src: Array
    dst: Array
    directed: bool

    def without_last(self, edges: int) -> lpma.Graph:
        graph = lpma.Graph(directed=self.directed, device="cpu")
        count = len(self.src) - edges
        graph.insert(self.src[:count], self.dst[:count])
        return graph


def _streams(quick: bool) -> Iterator[_Stream]:
    for name in () if quick else (*DIRECTED, *UNDIRECTED):
        if datasets.find(name) is not None:
            edges = datasets.load(name)
            yield _stream(name, edges.src, edges.dst, name in DIRECTED)
    scale = 14 if quick else 18
    yield _stream(f"RMAT {scale}", *generators.rmat(scale, DRAWS << scale, seed=SEED), True)


def _stream(name: str, src: Array, dst: Array, directed: bool) -> _Stream:
    if not directed:  # a loop is one entry to us, and two to igraph
        apart = src != dst
        src, dst = np.minimum(src, dst)[apart], np.maximum(src, dst)[apart]
    ids, ends = np.unique(np.concatenate((src, dst)), return_inverse=True)
    src, dst = np.split(ends, 2)
    keys = np.random.default_rng(SEED).permutation(np.unique(src * len(ids) + dst))
    return _Stream(name, keys // len(ids), keys % len(ids), directed)


def _row(stream: _Stream, algorithm: str) -> dict[str, Any]:
    batches = (1 + ROUNDS) * BATCH
    graph = stream.without_last(batches)
    final = stream.without_last(0).snapshot()
    source = _source(final)
    run = OURS.get(algorithm, lambda s: algorithms.bfs(s, source))

    def apply(i: int) -> None:
        first = len(stream.src) - batches + i * BATCH
        graph.insert(stream.src[first : first + BATCH], stream.dst[first : first + BATCH])

    kernels = {
        "live": Kernel(apply, lambda _: run(graph.snapshot())),
        "views there": plain(lambda: run(_without_answer(final))),
    }
    follows = algorithm in ("bfs", "pagerank")
    others = peers(algorithm, final if follows else _simple(final), source, THREADS)
    kernels |= {name: plain(runs) for name, (runs, _) in others.items()}
    correct = _check(algorithm, final, source)

    def verify(name: str, _: int, answer: Any) -> None:
        correct(name, others[name][1](answer) if name in others else answer)

    timings = measure(kernels, verify, rounds=ROUNDS, budget_s=BUDGET_S)
    ms = {name: timing.median * 1e3 for name, timing in timings.items()}
    fastest = min((ms[name] for name in others), default=NAN)
    return {
        "graph": stream.name, "edges": final.num_edges, "algorithm": algorithm,
        **{name: ms.get(name) for name in ("live", "views there", *LIBRARIES)},
        "ratio": fastest / ms["live"], "ratio, views there": fastest / ms["views there"],
    }  # fmt: skip


def _source(s: Snapshot) -> int:
    candidates = np.argsort(-np.diff(s.indptr), kind="stable")[:CANDIDATES].tolist()
    return max(candidates, key=lambda u: int((algorithms.bfs(s, u) >= 0).sum()))


def _without_answer(s: Snapshot) -> Snapshot:
    """s without the components that were kept of an earlier call."""
    link = lineage_of(s)
    if link is not None:
        link.state.views.pop(LABELS, None)
    return s


def _simple(s: Snapshot) -> Snapshot:
    """The simple undirected graph, without views."""
    return as_snapshot(simple(s._with()), s)


def _check(algorithm: str, s: Snapshot, source: int) -> Any:
    """What compares an answer with SciPy's, or with that of our slower programs."""
    if algorithm in ("core", "triangles"):
        slow: dict[str, Callable[[], Any]] = {
            "core": lambda: algorithms.core_numbers(_simple(s), "bz"),
            "triangles": lambda: int(algorithms.triangles(_simple(s)).sum()) // 3,
        }
        right = slow[algorithm]()

        def same(name: str, answer: Any) -> None:
            if not (np.asarray(answer) == right).all():
                raise WrongAnswer(f"{name}: {algorithm} is wrong")

        return same
    expected = standard(algorithm, s, source)
    return lambda name, answer: check(name, algorithm, np.asarray(answer), expected)
