"""What `compare` measures in each of its processes, using only public names of the three packages.

A process gets a case, a device and a size, makes what the case needs, and then does what it is told
on its standard input, a line at a time, with a line of JSON for each: "where" (the path of the
`lpma` that it measures), "prepare" and "run" (a round; the latter answers with seconds of wall
clock and of processor time) and "answer" (a value that must be the same for both trees).
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .stopwatch import on_device, on_host

Array = npt.NDArray[Any]

SEED = 20230101
RMAT = (0.57, 0.19, 0.19)
LOADED = 2_000_000  # edges there before the first insertion
RECORDS = 1_000_000


@dataclass(frozen=True)
class Task:
    """What a case is to be measured on."""

    device: str
    quick: bool
    rounds: int

    def scale(self, of_cpu: int, of_cuda: int) -> int:
        """The RMAT scale of a graph."""
        return 10 if self.quick else of_cuda if self.device == "cuda" else of_cpu


@dataclass(frozen=True)
class Work:
    """A round is `run(prepare())`, of which `run` is timed; `answer()` is the result of all
    rounds."""

    prepare: Callable[[], Any]
    run: Callable[[Any], Any]
    answer: Callable[[], Any]


@dataclass(frozen=True)
class Case:
    make: Callable[[Task], Work]
    rounds: int  # after one to warm up, in each process


def rmat(scale: int, count: int) -> tuple[Array, Array]:
    """Graph500's recursive matrix, without shuffled ids: all that matters is that both trees get
    the same."""
    rng = np.random.default_rng(SEED)
    a, b, c = RMAT
    src: Array = np.zeros(count, np.uint32)
    dst: Array = np.zeros(count, np.uint32)
    for _ in range(scale):
        drawn = rng.random(count, np.float32)
        src = src << 1 | (drawn >= a + b)
        dst = dst << 1 | ((drawn >= a) & (drawn < a + b) | (drawn >= a + b + c))
    return src, dst


def checksum(*columns: Any) -> int:
    """A digest of arrays on either device, by their values and places."""
    total = 0
    for column in columns:
        host = np.asarray(column.get() if hasattr(column, "get") else column).astype(np.int64)
        total = 31 * total + int((host * (np.arange(len(host)) % 1021 + 1)).sum())
    return total


def _updates(
    size: int, apply: Callable[[Any, Array, Array], Any], of_loaded: bool = False
) -> Callable[[Task], Work]:
    """Batches for a graph of LOADED edges: of new edges, or (of_loaded) of edges it has."""

    def make(task: Task) -> Work:
        import lpma

        loaded = LOADED // 100 if task.quick else LOADED
        src, dst = rmat(task.scale(18, 20), loaded + (1 + task.rounds) * size)
        graph = lpma.Graph(device=task.device)
        graph.insert(src[:loaded], dst[:loaded])
        starts = iter(range(0 if of_loaded else loaded, len(src), size))

        def batch() -> tuple[Array, Array]:
            start = next(starts)
            return src[start : start + size], dst[start : start + size]

        def answer() -> int:
            snapshot = graph.snapshot()
            return checksum(snapshot.indptr, snapshot.indices, snapshot.weights)

        return Work(batch, lambda columns: apply(graph, *columns), answer)

    return make


def _insert(graph: Any, src: Array, dst: Array) -> None:
    graph.insert(src, dst)


def _delete(graph: Any, src: Array, dst: Array) -> None:
    graph.delete(src, dst)


def _mixed(graph: Any, src: Array, dst: Array) -> None:
    """One operation of 33 asks for an edge, one of 8 deletes, the others insert."""
    import lpma

    place = np.arange(len(src))
    kind = np.where(place % 8 == 3, lpma.Kind.DELETE, 0).astype(np.uint8)
    kind[place % 33 == 5] = lpma.Kind.EDGE
    graph.apply(lpma.Batch.from_columns(kind, src, dst))


def _after_batches(start: Callable[[Any], Callable[[], Array]]) -> Callable[[Task], Work]:
    """What `start` of a graph gives, called after each of some batches of 1,000 edges."""

    def make(task: Task) -> Work:
        import lpma

        size, scale = 1000, task.scale(15, 18)
        loaded = 8 << scale
        src, dst = rmat(scale, loaded + (1 + task.rounds) * size)
        graph = lpma.Graph(device=task.device, directed=False)
        graph.insert(src[:loaded], dst[:loaded])
        look, last = start(graph), None
        starts = iter(range(loaded, len(src), size))

        def change() -> None:
            start = next(starts)
            graph.insert(src[start : start + size], dst[start : start + size])

        def timed(_: None) -> None:
            nonlocal last
            last = look()

        return Work(change, timed, lambda: checksum(last))

    return make


def _tracker(graph: Any) -> Callable[[], Array]:
    import algorithms

    tracker = algorithms.Tracker(graph, ["core", "triangles", "components"])

    def look() -> Array:
        tracker.update()
        return tracker.core_numbers

    return look


def _algorithm(
    run: Callable[[Any], Any], answer: Callable[[Any], Any], of_cpu: int, of_cuda: int,
    bipartite: bool = False,
) -> Callable[[Task], Work]:  # fmt: skip
    """An algorithm on a snapshot that has no view yet, of an undirected graph."""

    def make(task: Task) -> Work:
        import lpma

        scale = task.scale(of_cpu, of_cuda)
        src, dst = rmat(scale, 16 << scale)
        known = inspect.signature(lpma.Graph).parameters
        word = "weight_dtype" if "weight_dtype" in known else "weight"  # in an older tree
        none: dict[str, Any] = {word: None}
        graph = lpma.Graph(device=task.device, directed=False, times=False, **none)
        ends = (src, dst + np.uint32(1 << scale)) if bipartite else (src, dst)
        apart = ends[0] != ends[1]
        graph.insert(ends[0][apart], ends[1][apart])
        there, last = False, None

        def fresh() -> Any:
            """A new version each time: one edge comes and goes."""
            nonlocal there
            there = not there
            (graph.insert if there else graph.delete)([0], [2 << scale])
            return graph.snapshot()

        def timed(snapshot: Any) -> None:
            nonlocal last
            last = run(snapshot)

        return Work(fresh, timed, lambda: answer(last))

    return make


def _reading(
    run: Callable[[Any], Any], answer: Callable[[Any], int], far_apart: bool = False
) -> Callable[[Task], Work]:
    """A question to a graph that a batch has just changed. The vertex 0 has the longest row, and
    2^31 has edges into it alone. far_apart: ids are spread over all that there are."""

    def make(task: Task) -> Work:
        import lpma

        scale = task.scale(20, 22)
        src, dst = rmat(scale, 16 << scale)
        if far_apart:
            src, dst = (ids * np.uint32(2654435761) & np.uint32(2**31 - 1) for ids in (src, dst))
        graph = lpma.Graph(device=task.device, times=False)
        graph.insert(src, dst)
        graph.insert(0, [2**31, 5])
        last = None

        def changed() -> Any:
            graph.insert(0, 5)
            return graph

        def timed(graph: Any) -> None:
            nonlocal last
            last = run(graph)

        return Work(changed, timed, lambda: answer(last))

    return make


def _hops_within_a_batch(graph: Any) -> Any:
    """The answers of 32 queries, in a batch with updates."""
    import lpma

    batch = lpma.Batch()
    batch.insert(0, 7)
    for u in range(32):
        batch.hops(u, 2)
    batch.insert(0, 9)
    answers = graph.apply(batch)
    return np.concatenate([np.asarray(_host(answers[i].ids)) for i in range(32)])


def _host(column: Any) -> Any:
    return column.get() if hasattr(column, "get") else column


def _load(task: Task) -> Work:
    """A file that is read from the system's memory."""
    import lpma

    scale = task.scale(20, 20)
    graph = lpma.Graph(device=task.device, directed=False)
    graph.insert(*rmat(scale, 16 << scale))
    folder = tempfile.TemporaryDirectory()  # until the process ends
    path = Path(folder.name) / "graph"
    graph.save(path)
    del graph
    last: list[Any] = []

    def timed(_: None) -> None:
        assert folder
        last.append(lpma.Graph.load(path, device=task.device))

    return Work(last.clear, timed, lambda: int(last[0].num_edges))


def _called(name: str) -> Callable[[Any], Any]:
    """That function of `algorithms`, imported when it is called."""
    return lambda s: getattr(importlib.import_module("algorithms"), name)(s)


def _ranked(ranks: Any) -> int:
    """The vertex of the highest rank."""
    return int(_host(ranks).argmax())


def _diversity(s: Any) -> Any:
    import algorithms

    return [(best.vertex, best.score) for best in algorithms.top_diversity(s, "truss", 4, 100)]


def _bicliques(s: Any) -> Any:
    import algorithms

    return algorithms.count_bicliques(s, 3, 3, left=(s.num_rows - 1) // 2)


def _pipeline(columns: bool) -> Callable[[Task], Work]:
    """RECORDS operations through a pipeline into a new graph: in columns of 4,096 per record, or
    one per record."""

    def make(task: Task) -> Work:
        import ingest
        import lpma

        from .streams.memory_source import RECORD, MemorySource, encoded, refuse

        src, dst = rmat(task.scale(18, 20), RECORDS // 100 if task.quick else RECORDS)
        pairs = zip(src.tolist(), dst.tolist(), strict=True)
        records = encoded(src, dst) if columns else [ingest.encode_row(u, v, 1.0) for u, v in pairs]
        graph: Any = None

        def begin() -> Any:
            nonlocal graph
            graph = lpma.Graph(device=task.device)
            return ingest.Pipeline(
                MemorySource(records), graph, None, batch_size=100_000, batch_interval=10.0,
                poll_records=100_000 // RECORD if columns else 10_000, dead_letters=refuse,
            )  # fmt: skip

        def answer() -> int:
            snapshot = graph.snapshot()
            return checksum(snapshot.indptr, snapshot.indices, snapshot.weights)

        return Work(begin, lambda pipeline: pipeline.run(until="end"), answer)

    return make


CASES = {
    "insert-1": Case(_updates(1, _insert), 200),
    "insert-10": Case(_updates(10, _insert), 200),
    "insert-1000": Case(_updates(10**3, _insert), 60),
    "insert-10000": Case(_updates(10**4, _insert), 30),
    "insert-100000": Case(_updates(10**5, _insert), 12),
    "insert-1000000": Case(_updates(10**6, _insert), 4),
    "delete-10000": Case(_updates(10**4, _delete, of_loaded=True), 30),
    "mixed-10000": Case(_updates(10**4, _mixed), 12),
    "snapshot": Case(_after_batches(lambda g: lambda: g.snapshot().indices), 12),
    "degree": Case(_reading(lambda g: g.degree([0] * 1000), checksum), 5),
    "has-vertices": Case(_reading(lambda g: g.has_vertices([2**31, 2**31 + 1]), checksum), 9),
    "in": Case(_reading(lambda g: 2**31 in g, int), 9),
    "hops": Case(_reading(lambda g: g.hops(0, 2).ids, checksum), 3),
    "hops-in-a-batch": Case(_reading(_hops_within_a_batch, checksum), 2),
    "compact": Case(_reading(lambda g: g.snapshot(compact=True).indices, checksum, True), 3),
    "load": Case(_load, 5),
    "k-core": Case(_algorithm(_called("core_numbers"), checksum, 18, 20), 7),
    "truss": Case(
        _algorithm(_called("truss_numbers"), lambda found: checksum(found.truss), 14, 18), 5
    ),
    "triangles": Case(_algorithm(_called("triangle_count"), int, 17, 20), 7),
    "diversity": Case(_algorithm(_diversity, list, 13, 17), 5),
    "pagerank": Case(_algorithm(_called("pagerank"), _ranked, 17, 20), 5),
    "tracker": Case(_after_batches(_tracker), 12),
    "bicliques": Case(_algorithm(_bicliques, int, 10, 13, bipartite=True), 5),
    "pipeline-columns": Case(_pipeline(columns=True), 5),
    "pipeline-rows": Case(_pipeline(columns=False), 3),
}


def main(name: str, device: str, size: str) -> None:
    """Serve one case until standard input ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not a reply
    import lpma

    case, clock = CASES[name], on_device if device == "cuda" else on_host
    work = case.make(Task(device, size == "quick", case.rounds))
    prepared: Any = None
    for line in sys.stdin:
        question = line.strip()
        reply: Any = None
        if question == "where":
            reply = lpma.__file__
        elif question == "prepare":
            prepared = work.prepare()
        elif question == "run":
            before = time.process_time()
            seconds, _ = clock(lambda: work.run(prepared))  # noqa: B023  # called at once
            reply = seconds, time.process_time() - before
        elif question == "answer":
            reply = work.answer()
        print(json.dumps(reply), file=replies, flush=True)
