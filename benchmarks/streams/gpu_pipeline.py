"""A stream into a store on the GPU, end to end: operations per second, and seconds by stage.

Columnar records of 4096 edges, from memory and from the embedded log, without queries and with one
operation in a thousand a query, without a directory and with a journal and checkpoints in one. The
CPU's store gets the same records in the same run, and both must end with the same graph. A second
report has the steps at ten million edges: the median, and the longest that takes a checkpoint.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lpma
from ingest import Pipeline, SqliteLog, encode_query
from ingest.datasets import generators
from ingest.formats.replies import encode_reply
from ingest.sources import Source

from ..keys import Array
from ..report import Report, Setting
from ..stopwatch import Figure, WrongAnswer, median, on_device, on_host
from .checkpoint import ON_CUDA, measured
from .memory_source import RECORD, MemorySource, encoded, refuse

ROUNDS = 3  # of `memory_s`, after one to warm up
DEVICES = ("cuda", "cpu")
SEED = 20230101
QUERIES = 4  # behind each record: a thousandth
KINDS = (lpma.Kind.EDGE, lpma.Kind.SUCCESSORS, lpma.Kind.DEGREE, lpma.Kind.VERTEX)
LOG_BYTES = 64 << 20  # that one poll of the log may return: a batch of a million


@dataclass(frozen=True)
class Cell:
    source: str  # "memory" or "log"
    batch: int  # operations
    queries: bool
    checkpoints: bool


def gpu_pipeline(setting: Setting) -> list[Report]:
    streamed, sizes = (120_000, (10_000, 40_000)) if setting.quick else (4_000_000, (10**5, 10**6))
    small, large = sizes
    cells = [
        Cell("memory", small, queries=False, checkpoints=False),
        Cell("memory", large, queries=False, checkpoints=False),
        Cell("memory", small, queries=True, checkpoints=True),
        Cell("memory", large, queries=True, checkpoints=True),
        Cell("memory", small, queries=False, checkpoints=True),
        Cell("memory", small, queries=True, checkpoints=False),
        Cell("log", small, queries=True, checkpoints=True),
        Cell("log", large, queries=False, checkpoints=True),
    ]
    report = Report("gpu-pipeline", "operations a second through a pipeline; seconds by stage")
    late = []
    src, dst = generators.rmat(16 if setting.quick else 20, streamed, seed=SEED)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        streams = _Streams(directory, src, dst)
        _warm_up(setting, streams, sizes)
        for cell in cells:
            if setting.out_of_time():
                late.append(f"{cell.source} {cell.batch:,}")
                continue
            graphs = [_add(report, name, cell, streams) for name in DEVICES if setting.wants(name)]
            _check_same(graphs)
    if late:
        report.notes.append(f"out of time, left out: {', '.join(late)}")
    report.notes.append(
        "No checkpoints: no journal either. With them: one for every quarter of the stream, beside "
        "it; the first, of nothing, before the clock. Batches close by size alone, with queries "
        "too; replies are encoded, and written where there is a log. Until the device is idle."
    )
    return [report, measured("gpu-pipeline-checkpoint", setting, ON_CUDA)]


class _Streams:
    """The records with and without queries, and a log of each, made when first read."""

    def __init__(self, directory: Path, src: Array, dst: Array) -> None:
        self.directory = directory
        self.edges = len(src)
        plain = encoded(src, dst)
        self.records = {False: plain, True: list(_with_queries(plain, src, dst))}

    def open(self, cell: Cell) -> Source:
        records = self.records[cell.queries]
        if cell.source == "memory":
            return MemorySource(records)
        path = self.directory / f"log-{cell.queries}"
        new = not path.exists()
        log = SqliteLog(path, topics=("updates",), max_bytes=LOG_BYTES)
        if new:
            log.produce_many("updates", records)
        return log

    def operations(self, queries: bool) -> int:
        records = self.records
        return self.edges + (len(records[True]) - len(records[False]) if queries else 0)


def _with_queries(records: list[bytes], src: Array, dst: Array) -> Iterator[bytes]:
    rng = np.random.default_rng(SEED)
    for i, record in enumerate(records):
        yield record
        for n in range(QUERIES):
            edge = int(rng.integers(0, min(len(src), (i + 1) * RECORD)))
            v = int(dst[edge]) if KINDS[n] is lpma.Kind.EDGE else None
            yield encode_query(f"{i}-{n}", KINDS[n], int(src[edge]), v)


def _warm_up(setting: Setting, streams: _Streams, sizes: tuple[int, int]) -> None:
    """Compile what the cells call, on both devices."""
    for name in filter(setting.wants, DEVICES):
        for size in sizes:
            for queries in (False, True):
                records = streams.records[queries][: 2 * sizes[1] // RECORD + 1]
                _through(name, Cell("memory", size, queries, True), MemorySource(records), size)


def _add(report: Report, name: str, cell: Cell, streams: _Streams) -> lpma.Graph:
    operations = streams.operations(cell.queries)
    source = streams.open(cell)
    pipeline, seconds = _through(name, cell, source, operations // 4)
    if isinstance(source, SqliteLog):
        source.close()
    if pipeline.stats.operations != operations:
        raise WrongAnswer(f"{pipeline.stats.operations} operations of {operations}")
    stages = pipeline.stats.stages.seconds()
    report.add({
        "device": name, "source": cell.source, "batch": cell.batch,
        "queries": "0.1 %" if cell.queries else "none",
        "checkpoints": pipeline.stats.stages.checkpoint.passages - 1 if cell.checkpoints else None,
        "M ops/s": operations / seconds / 1e6, "seconds": seconds, **stages,
        "between": seconds - sum(stages.values()),
    })  # fmt: skip
    assert isinstance(pipeline.graph, lpma.Graph)
    return pipeline.graph


def _through(
    name: str, cell: Cell, source: Source, checkpoint_operations: int
) -> tuple[Pipeline, float]:
    """Bring everything in `source` into a new graph on the device. Returns the seconds until it is
    idle."""
    graph = lpma.Graph(device=name)
    replies: dict[str, Any] = {} if isinstance(source, SqliteLog) else {"replies": encode_reply}
    with tempfile.TemporaryDirectory() as directory:
        pipeline = Pipeline(
            source, graph, Path(directory) / "checkpoint" if cell.checkpoints else None,
            batch_size=cell.batch, batch_interval=10.0, query_interval=10.0,
            poll_records=max(1, cell.batch // RECORD), dead_letters=refuse,
            checkpoint_operations=checkpoint_operations, checkpoint_interval=1e9, **replies,
        )  # fmt: skip
        pipeline.stats.stages.checkpoint.seconds = 0.0  # the first: of nothing
        clock = on_device if name == "cuda" else on_host
        seconds, _ = clock(lambda: pipeline.run(until="end"))
        pipeline.close(checkpoint=False)
    return pipeline, seconds


def memory_s(name: str, operations: int) -> Figure:
    """The median seconds of so many operations in columns, from memory, in batches of 10^5."""
    records = encoded(*generators.rmat(20, operations, seed=SEED))
    cell, found = Cell("memory", 10**5, queries=False, checkpoints=False), []
    for _ in range(1 + ROUNDS):
        pipeline, seconds = _through(name, cell, MemorySource(records), operations)
        if pipeline.stats.operations != operations:
            raise WrongAnswer(f"{pipeline.stats.operations} operations of {operations}")
        found.append(seconds)
    return median(found[1:])


def _check_same(graphs: list[lpma.Graph]) -> None:
    """The edges and weights; times are left out, since they are the clock's."""
    first, *others = (graph.snapshot() for graph in graphs)
    for column in ("indptr", "indices", "weights"):
        expected = _host(getattr(first, column))
        for other in others:
            if not np.array_equal(_host(getattr(other, column)), expected):
                raise WrongAnswer(f"{column}: the devices end with different graphs")


def _host(array: Any) -> Array:
    return array.get() if hasattr(array, "get") else array
