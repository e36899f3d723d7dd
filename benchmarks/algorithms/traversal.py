"""Components, BFS and PageRank on one undirected snapshot; and on a directed one, from the store.

On the CPU beside other libraries (libraries.py says how each is run); on a CUDA device beside the
time of one pass over the graph. BFS starts from the vertex of the highest degree. PageRank ends
when ranks change by less than 1e-6 in all, in each library that has a tolerance to set. Every
answer is compared with SciPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import algorithms
import lpma
from algorithms.views.directed import transposed
from algorithms.views.simple import simple
from ingest.datasets import generators
from lpma import Snapshot
from lpma.arrays import to_host
from lpma.cpu.threads import THREADS

from ..keys import Array
from ..report import Report, Setting, beside
from ..stopwatch import WrongAnswer, measure, on_device, plain, race
from . import libraries
from .graphs import SEED, bare, on_host, snapshots

ALGORITHMS = ("components", "bfs", "pagerank")
PEERS = ("scipy", "networkit", "graphblas", "igraph")
REAL = ("ego-twitter", "road-NY", "uk-2007-05-100k")
ROUNDS, BUDGET_S = 7, 20.0
GPU_ROUNDS, GPU_WARMUP = 9, 2
STORE_SCALES, STORE_DRAWS = (20, 22, 24), 18
BANDWIDTH = 4.2e12  # bytes per second of an H200, read and written


def traversal(setting: Setting) -> Report:
    report = Report("traversal", "seconds, median")
    for name, s in graphs(setting.quick, "cpu"):
        source = int(np.diff(s.indptr).argmax())
        peers = libraries.traversals(s, source, THREADS)
        for algorithm in ALGORITHMS:
            runs = {"lpma": ours(algorithm, s, source)}
            runs |= {peer: can[algorithm] for peer, can in peers.items() if algorithm in can}
            timings = race(
                {peer: run for peer, run in runs.items() if setting.wants(peer)},
                _check(algorithm, standard(algorithm, s, source)),
                rounds=ROUNDS, budget_s=BUDGET_S,
            )  # fmt: skip
            row: dict[str, Any] = {"graph": name, "edges": s.num_edges, "algorithm": algorithm}
            report.add(row | beside(timings, PEERS))
    report.notes.append("ratio: the fastest of the others to lpma. igraph has no tolerance to set.")
    return report


def graphs(quick: bool, device: str) -> Iterator[tuple[str, Snapshot]]:
    found = snapshots(device, (12,), ()) if quick else snapshots(device, (18, 20), REAL)
    for name, s in found:
        yield name, s._with(added=None)  # every row is a vertex, as in the other libraries


def ours(algorithm: str, s: Snapshot, source: int) -> libraries.Run:
    if algorithm == "components":
        return lambda: algorithms.connected_components(s)
    if algorithm == "bfs":
        return lambda: algorithms.bfs(s, source)
    return lambda: algorithms.pagerank(s, libraries.DAMPING, libraries.TOLERANCE)


def standard(algorithm: str, s: Snapshot, source: int) -> Array:
    """SciPy's answer, and for PageRank its formula with SciPy's product, on the host."""
    if algorithm != "pagerank":
        return np.asarray(libraries.of_scipy(s, source)[algorithm]())
    n, damping, matrix = s.num_rows, libraries.DAMPING, s.to_scipy().astype(float)
    degree = np.diff(matrix.indptr)
    ranks = np.full(n, 1 / n)
    for _ in range(libraries.ROUNDS):
        shares = np.divide(ranks, degree, out=np.zeros(n), where=degree > 0)
        lost = ranks[degree == 0].sum()
        ranks = (1 - damping + damping * lost) / n + damping * (matrix.T @ shares)
    return ranks


def _check(algorithm: str, expected: Array) -> Any:
    return lambda name, answer: check(name, algorithm, np.asarray(to_host(answer)), expected)


def check(name: str, algorithm: str, answer: Array, expected: Array) -> None:
    """Raise WrongAnswer if an answer differs from the standard's."""
    if algorithm == "pagerank":
        right = float(abs(answer / answer.sum() - expected).sum()) < 1e-4
    elif algorithm == "components":  # the same parts, whatever they are called
        pairs = np.unique(np.column_stack((answer, expected)), axis=0)
        right = len(pairs) == len(np.unique(answer)) == len(np.unique(expected))
    else:  # an unreached vertex has −1, infinity, or as good as infinity
        far = len(answer)
        answer, expected = (np.where((x < 0) | (x > far), far, x) for x in (answer, expected))
        right = bool((answer == expected).all())
    if not right:
        raise WrongAnswer(f"{name}: {algorithm} is wrong")


def gpu_traversal(setting: Setting) -> list[Report]:
    """On a device: beside the time of one pass, and from the store."""
    return [_beside_a_pass(setting), _from_the_store(setting)]


def _beside_a_pass(setting: Setting) -> Report:
    """*bytes* is what one pass over the graph must read at least: row starts and targets once, and
    one value per vertex, read and written; *floor* is the time for that at the device's bandwidth.
    PageRank makes one pass per round."""
    report = Report("gpu-traversal", "milliseconds, median")
    for name, s in graphs(setting.quick, "cuda"):
        for algorithm in ALGORITHMS:
            if not setting.out_of_time():
                report.add(_device_row(name, s, algorithm))
    return report


def _device_row(name: str, s: Snapshot, algorithm: str) -> dict[str, Any]:
    source = int(np.diff(to_host(s.indptr)).argmax())
    run = ours(algorithm, s, source)
    correct = _check(algorithm, standard(algorithm, s, source))
    timing = measure(
        {"lpma": plain(run)},
        lambda name, _, answer: correct(name, answer),
        rounds=GPU_ROUNDS, warmup=GPU_WARMUP, clock=on_device,
    )["lpma"]  # fmt: skip
    passed = 8 * s.num_rows + 4 * len(s.indices) + 16 * s.num_rows
    return {
        "graph": name, "edges": s.num_edges, "algorithm": algorithm,
        "ms": timing.median * 1e3, "slowest": timing.slowest * 1e3,
        "bytes": passed, "floor": passed / BANDWIDTH * 1e3,
    }  # fmt: skip


def _from_the_store(setting: Setting) -> Report:
    """A directed graph in a store on the device. *snapshot* is one alone; *from the store* is one,
    the views that the algorithm needs, and the algorithm; *views there* is the algorithm alone once
    the transpose and the simple view have been made. Answers are compared with those on the CPU."""
    report = Report("gpu-traversal-store", "milliseconds, median")
    for scale in (12,) if setting.quick else STORE_SCALES:
        graph = lpma.Graph(weight_dtype=None, times=False, device="cuda")
        graph.insert(*generators.rmat(scale, STORE_DRAWS << scale, seed=SEED))
        host = on_host(graph.snapshot())
        source = int(np.diff(host.indptr).argmax())
        for algorithm, run in _runs(source).items():
            if not setting.out_of_time():
                row = _store_row(graph, run, run(host))
                edges = len(host.indices)
                report.add({"graph": f"RMAT {scale}", "edges": edges, "algorithm": algorithm} | row)
    return report


def _runs(source: int) -> dict[str, Callable[[Snapshot], Array]]:
    return {
        "bfs": lambda s: algorithms.bfs(s, source),
        "components": algorithms.connected_components,
        "core": algorithms.core_numbers,
    }


def _store_row(
    graph: lpma.Graph, run: Callable[[Snapshot], Array], expected: Array
) -> dict[str, Any]:
    kept = graph.snapshot()
    transposed(kept)
    simple(kept)
    ways = {
        "snapshot": plain(lambda: graph.snapshot().indptr),
        "from the store": plain(lambda: run(bare(graph.snapshot()))),
        "views there": plain(lambda: run(kept)),
    }

    def same(name: str, _: int, answer: Any) -> None:
        if name != "snapshot" and not np.array_equal(to_host(answer), expected):
            raise WrongAnswer(f"{name}: not as on the CPU")

    timings = measure(ways, same, rounds=GPU_ROUNDS, warmup=GPU_WARMUP, clock=on_device)
    return {name: timing.median * 1e3 for name, timing in timings.items()}
