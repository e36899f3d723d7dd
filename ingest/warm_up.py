"""Compiling beforehand what a stream calls, so that a latency measured after this is the store's
own, on the first run after an installation too.

On the CPU all cores compile the kernels of streams, and go on with those of the algorithms behind
what comes next. On a GPU kernels are compiled where they are called: everything is called once, on
a small stream.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import algorithms
import lpma
from lpma.backend import is_cuda
from lpma.batch import Columns
from lpma.cpu import compiling, ready

from .datasets import generators
from .formats.encode import encode_row, encode_updates
from .formats.fast_rows import MIN_RUN, with_runs
from .formats.records import decode
from .types import Partition, Polled

OPERATIONS = 24_000
BATCHES = (20, 300, 3_000, 12_000)  # small ones are sorted and merged differently from large ones


def warm_up(
    progress: Callable[[str, int, int | None], None] | None = None, device: str = "auto"
) -> None:
    """Compile, or read from the cache, what ingesting, querying, saving and analysing call."""
    if not is_cuda(device):
        compiling.compile_all(
            ("lpma", "ingest"),
            None if progress is None else lambda done: progress("compile", round(100 * done), 100),
        )
        ready.note_compiled()
        ready.compile_behind()
        return
    # Segments of 2 make a small stream fill windows as large as a long one would.
    steps: list[tuple[str, str, int]] = [
        ("hybrid", "auto", 32), ("bottom-up", "never", 2), ("top-down", "never", 2)
    ]  # fmt: skip
    graph = lpma.Graph(predecessors=True, device=device)
    for step, (strategy, global_merge, segment_size) in enumerate(steps):
        if progress is not None:
            progress("get ready", step, len(steps) + 1)
        graph = lpma.Graph(
            predecessors=True,
            strategy=strategy,
            global_merge=global_merge,
            # Kernels on a GPU are compiled for a size of segments, not for what windows they meet.
            segment_size=segment_size if graph.device == "cpu" else 32,
            device=device,
        )
        _stream_into(graph)
    if progress is not None:
        progress("get ready", len(steps), len(steps) + 1)
    _queries(graph)
    _use(graph)
    if progress is not None:
        progress("get ready", len(steps) + 1, len(steps) + 1)


def _stream_into(graph: lpma.Graph) -> None:
    made = generators.interactions(3000, OPERATIONS, deletions=0.1, mean_gap_ms=0)
    stream = decode(encode_updates(made.src, made.dst, made.weight, made.time, made.kind))
    with_runs([Polled(Partition("", 0), n, encode_row(n, n)) for n in range(MIN_RUN)])
    first = 0
    while first < len(stream):
        for size in BATCHES:
            graph.apply(stream.rows(first, min(first + size, len(stream))))
            first += size
    bare = decode(encode_updates(made.src, made.dst, None, made.time))
    graph.apply(bare.rows(0, BATCHES[-1]))
    graph.delete(made.src, made.dst)  # and shrink


def _queries(graph: lpma.Graph) -> None:
    batch = lpma.Batch()
    for u in range(100):
        batch.append(u, u + 1)
        batch.edge(0, 1)
        batch.delete(0, 1)
        batch.successors(1)
        batch.predecessors(1)
        batch.hops(1, 2)
        batch.degree(1)
        batch.vertex(1)
    columns = batch.columns()
    graph.apply(columns)
    for column in (columns.kind, columns.src, columns.dst):
        column.flags.writeable = False
    graph.apply(Columns(columns.kind, columns.src, columns.dst, None, None))


def _use(graph: lpma.Graph) -> None:
    s = graph.snapshot()
    algorithms.core_numbers(s)
    algorithms.triangle_count(s)
    algorithms.truss_numbers(s)
    others = np.nonzero(~np.eye(10, dtype=bool))[1]  # the rows of a clique: s has no context
    algorithms.top_diversity((np.arange(0, 91, 9), others), "truss", 4, 1)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "graph"
        graph.save(path)
        lpma.Graph.load(path, graph.device).check()
