"""Compiling beforehand what a stream calls, so that a latency measured after this is the store's
own, on the first run after an installation too.

On the CPU all cores compile, in processes of their own, while this one does something else between
`begin` and `wait`. On a GPU kernels are compiled where they are called, in `begin`. In the end
everything is called once, on a small stream: what is compiled still has to be loaded.
"""

from __future__ import annotations

import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np

import algorithms
import lpma
from lpma.backend import is_cuda
from lpma.batch.columns import Columns
from lpma.cpu import compiling, ready
from lpma.cpu.jit import telling
from lpma.errors import LpmaError

from ..datasets import generators
from ..formats.encode import encode_row, encode_updates
from ..formats.records import decode
from ..formats.row_reader import RowReader
from ..types import Values
from .stream import Progress, Tell

STREAM = ("lpma", "ingest")  # packages of which everything is compiled
ALGORITHMS = ("components", "core", "ego", "triangles", "truss", "views")  # those that are used
OPERATIONS = 24_000
BATCHES = (20, 300, 3_000, 12_000)  # small ones are sorted and merged differently from large ones


class WarmUp:
    """Compiling, and calling everything once."""

    def __init__(self, progress: Progress, tell: Tell, device: str) -> None:
        self._progress = progress
        self._tell = tell
        self._device = device
        self._ending = threading.Event()
        self._failure: Exception | None = None
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Compile: for a GPU now, for the CPU while the program goes on."""
        if is_cuda(self._device):
            _call_all(self._progress, self._device)
        elif compiling.is_compiled(STREAM):
            ready.note_compiled()
        else:
            self._tell(
                "compiling for this machine, once, on all cores, while the stream comes in: until "
                "that is done, NumPy alone keeps the graph"
            )
            self._thread = threading.Thread(target=self._compile, daemon=True, name="lpma-warm-up")
            self._thread.start()

    def wait(self) -> None:
        """Wait until everything is compiled, and call it once. Raises CompileError."""
        if is_cuda(self._device):
            return
        if self._thread is not None:
            self._thread.join()
            if self._failure is not None:
                raise self._failure
            ready.note_compiled()
        silent, telling.silent = telling.silent, True  # the bar says it
        try:
            _call_all(self._progress, self._device)
        finally:
            telling.silent = silent

    def stop(self) -> None:
        """Leave uncompiled what is not compiled yet."""
        if self._thread is not None and self._thread.is_alive():
            self._ending.set()
            compiling.end_workers()
            self._thread.join()

    def _note(self, what: str, done: float) -> None:
        self._progress(what, round(100 * done), 100)

    def _compile(self) -> None:
        started = time.perf_counter()
        try:
            # The store's first: whoever keeps a graph waits for these.
            compiling.compile_all(
                STREAM, partial(self._note, "compile"), compiling.BEHIND, self._ending
            )
            compiling.compile_all(
                ("algorithms",), partial(self._note, "compile algorithms"), compiling.BEHIND,
                self._ending, wanted=lambda entry: entry.module.split(".")[1] in ALGORITHMS,
            )  # fmt: skip
            self._tell(f"compiled, in {time.perf_counter() - started:.0f} s")
        except (LpmaError, OSError) as error:
            self._failure = error


def _call_all(progress: Progress, device: str) -> None:
    """Call what ingesting, querying, saving and analysing call."""
    # Segments of 2 make a small stream fill windows as large as a long one would.
    steps: list[tuple[str, str, int]] = [
        ("hybrid", "auto", 32), ("bottom-up", "never", 2), ("top-down", "never", 2)
    ]  # fmt: skip
    graph = lpma.Graph(predecessors=True, device=device)
    for step, (strategy, global_merge, segment_size) in enumerate(steps):
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
    progress("get ready", len(steps), len(steps) + 1)
    _queries(graph)
    _use(graph)
    named = lpma.Graph(names=True, device=device)
    for text in ("a", "b"):
        named.insert([text, *map(str, range(OPERATIONS))], [text, *range(OPERATIONS)])
    names = named.snapshot().names
    assert names is not None
    names.of(np.arange(len(names)))
    progress("get ready", len(steps) + 1, len(steps) + 1)


def _stream_into(graph: lpma.Graph) -> None:
    made = generators.interactions(3000, OPERATIONS, deletions=0.1, mean_gap_ms=0)
    stream = decode(encode_updates(made.src, made.dst, made.weight, made.time, made.kind))
    list(RowReader(None, False).stretches(Values.of([encode_row(1, 2)])))
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
        batch.insert(u, u + 1)
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
