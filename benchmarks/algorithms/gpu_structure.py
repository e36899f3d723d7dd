"""Strong components, Jaccard of pairs, and the vertices most like a hub, on a CUDA device beside
the CPU of the same machine.

Directed graphs in a store on the device, those without directions with arcs both ways. Pairs are
PAIRS that have a neighbour in common, as candidates for links have, and are given in arrays beside
the graph. The hub is the vertex of the highest degree.

*whole* is from a snapshot without views: the transpose, or the simple undirected view, is made
anew. *views there* is the algorithm alone. *cpu 1* and *cpu N* are whole as well, by one thread and
by all of N; on the CPU a view is timed by itself, once for each number of threads, and its time
added. Strong components take one thread there, and no view; with more than ALONE_MOST entries a
graph is viewed by all threads only. Answers are compared, bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np

import algorithms
import lpma
from algorithms.views.directed import transposed
from algorithms.views.simple import simple
from ingest import datasets
from ingest.datasets import generators
from lpma import Snapshot
from lpma.arrays import array_module, to_host
from lpma.cpu import pieces, threads

from ..keys import Array
from ..report import Report, Setting
from ..stopwatch import WrongAnswer, measure, on_device, on_host, plain
from . import graphs
from .graphs import SEED, bare
from .structure import pairs_of

REAL = ("road-NY", "uk-2007-05-100k")
RMAT = {20: 18_000_000, 22: 60_000_000}  # draws by scale
PAIRS, MOST = 1_000_000, 100  # pairs; vertices like the hub
GPU_ROUNDS, GPU_WARMUP = 9, 2
ALONE_MOST = 10_000_000

Run = Callable[[Snapshot], Any]


def gpu_structure(setting: Setting) -> Report:
    report = Report("gpu-structure", "milliseconds, median")
    _compile()
    for name, s in _graphs(setting.quick):
        if not setting.out_of_time():
            for row in _rows(s, 1000 if setting.quick else PAIRS):
                report.add({"graph": name, "edges": s.num_edges} | row)
    report.notes.append(f"N is {threads.THREADS}. ratio: the fastest of the CPU to `whole`.")
    return report


def _graphs(quick: bool) -> Iterator[tuple[str, Snapshot]]:
    for name in () if quick else REAL:
        if datasets.find(name) is not None:
            edges = datasets.load(name)
            graph = lpma.Graph(weight_dtype=None, times=False, device="cuda")
            graph.insert(edges.src, edges.dst)
            if not edges.directed:
                graph.insert(edges.dst, edges.src)
            yield name, graph.snapshot()
    for scale, draws in ({12: 1 << 16} if quick else RMAT).items():
        yield f"RMAT {scale}", graphs.streamed(scale, draws)[1]


def _compile() -> None:
    """Have what the CPU runs compiled, for small graphs and for large ones."""
    graph = lpma.Graph(weight_dtype=None, times=False, device="cpu")
    graph.insert(*generators.rmat(12, 1 << 16, seed=SEED))
    s = graph.snapshot()
    for few in (pieces.FEW, 0):
        with patch.object(pieces, "FEW", few):
            algorithms.strongly_connected_components(s)
            algorithms.jaccard(bare(s), [0], [1])
            algorithms.similar(bare(s), int(s.indices[0]), 1)


def _rows(s: Snapshot, count: int) -> Iterator[dict[str, Any]]:
    host = graphs.on_host(s)
    hub = int(np.diff(simple(host).indptr).argmax())
    pairs = pairs_of(host, np.random.default_rng(SEED), count)
    beside = array_module(s.indptr).asarray(pairs)
    asked: dict[str, tuple[Run, Run]] = {  # on the device, and on the host
        "strong components": (algorithms.strongly_connected_components,) * 2,
        f"Jaccard of {len(pairs[0]):,} pairs": (
            lambda s: algorithms.jaccard(s, *beside), lambda s: algorithms.jaccard(s, *pairs)
        ),
        f"{MOST} most like the hub": (lambda s: algorithms.similar(s, hub, MOST),) * 2,
    }  # fmt: skip
    counts = {1, threads.THREADS} if len(host.indices) <= ALONE_MOST else {threads.THREADS}
    views = {n: _on_cpu(lambda: simple(bare(host)), n)[0] for n in counts}
    simple(host)
    for name, (on_cuda, on_cpu) in asked.items():
        without_view = name == "strong components"
        cpu, answers = {}, []
        for n in {1} if without_view else views:
            seconds, answer = _on_cpu(lambda: on_cpu(host), n)  # noqa: B023  # called at once
            cpu[n] = (seconds + (0 if without_view else views[n])) * 1e3
            answers.append(answer)
        yield {"asked": name} | _row(s, on_cuda, answers[0], cpu)


def _on_cpu(action: Callable[[], Any], count: int) -> tuple[float, Any]:
    """Seconds of a call by so many threads, and what it returns."""
    with patch.object(threads, "THREADS", count):
        return on_host(action)


def _row(s: Snapshot, run: Run, expected: Any, cpu: dict[int, float]) -> dict[str, Any]:
    kept = bare(s)
    transposed(kept)
    simple(kept)
    ways = {"whole": plain(lambda: run(bare(s))), "views there": plain(lambda: run(kept))}

    def same(way: str, _: int, answer: Any) -> None:
        if not all(map(np.array_equal, map(to_host, _parts(answer)), _parts(expected))):
            raise WrongAnswer(f"{way}: not as on the CPU")

    timings = measure(ways, same, rounds=GPU_ROUNDS, warmup=GPU_WARMUP, clock=on_device)
    ms = {way: timing.median * 1e3 for way, timing in timings.items()}
    columns = {"cpu 1": cpu.get(1), "cpu N": cpu.get(threads.THREADS)}
    return ms | columns | {"ratio": min(cpu.values()) / float(ms["whole"])}


def _parts(answer: Any) -> tuple[Array, ...]:
    return answer if isinstance(answer, tuple) else (answer,)
