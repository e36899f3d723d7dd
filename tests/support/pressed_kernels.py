"""Ctrl-C while compiled code runs, at a call that is chosen by its number.

    python -m tests.support.pressed_kernels GROUP...

does what programs do (`GROUPS`), over and over, and presses Ctrl-C within another call of a kernel
each time: a signal comes while the kernel runs, and Python cannot handle it before the kernel has
returned. Prints a line of JSON for each action: its name, at how many calls a signal came, what was
raised how often, and whether the action came to the same when it was done again.

Trick: `raise` of the C library and the kernel are called one after the other by C code (a list of
what `map` yields), so that no instruction of Python's lies between the two.
"""

from __future__ import annotations

import ctypes
import json
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numba import _dispatcher
from numba.core.dispatcher import Dispatcher

import algorithms
import ingest
import lpma
from algorithms.sharded import split
from ingest.datasets import generators
from ingest.formats.encode import encode_row, encode_updates
from ingest.formats.row_reader import RowReader
from ingest.types import Values
from lpma.cpu import jit, ready

MOST = 40  # calls of an action at which a signal comes, spread evenly if there are more
_PRESS = getattr(ctypes.CDLL(None), "raise")
_call: Any = _dispatcher.Dispatcher.__call__

Action = Callable[[], Any]


class Calls:
    """Counts the calls of kernels, from any thread, and presses Ctrl-C within one of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count, self.chosen = 0, -1

    def __call__(self, kernel: Any, *arguments: Any) -> Any:
        with self._lock:
            number, self.count = self.count, self.count + 1
        if number != self.chosen:
            return _call(kernel, *arguments)
        both = partial(_PRESS, signal.SIGINT), partial(_call, kernel, *arguments)
        return list(map(partial.__call__, both))[1]

    def during(self, action: Action, chosen: int = -1) -> Any:
        """What the action returns, with Ctrl-C pressed within that call."""
        self.count, self.chosen = 0, chosen
        return action()


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    jit.telling.silent = True
    ready.note_compiled()
    calls = Calls()
    setattr(Dispatcher, "__call__", lambda kernel, *arguments: calls(kernel, *arguments))  # noqa: B010
    for group in sys.argv[1:]:
        for name, action in GROUPS[group]():
            print(json.dumps([name, *pressed(calls, action)]), flush=True)


def pressed(calls: Calls, action: Action) -> tuple[int, dict[str, int], bool]:
    """At how many calls a signal came, what was raised how often, and whether the action came to
    the same afterwards."""
    action()  # compiles
    expected = plain(calls.during(action))
    chosen = np.unique(np.linspace(0, calls.count - 1, min(calls.count, MOST)).astype(int))
    raised: Counter[str] = Counter()
    is_same = True
    for number in chosen.tolist():
        try:
            calls.during(action, number)
            _rest()
            raised["nothing"] += 1
        except BaseException as error:  # noqa: BLE001 - it is what is asked for
            raised[type(error).__name__] += 1
        is_same = is_same and plain(calls.during(action)) == expected
    return len(chosen), dict(raised), is_same


def _rest() -> None:
    """Until a signal comes that arrived while a finalizer ran, where Python ignores errors."""
    for _ in range(30_000):
        time.sleep(0.001)


def plain(value: Any) -> Any:
    """A result in values that can be compared."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, lpma.Snapshot):
        return value.indptr.tolist(), value.indices.tolist()
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    return value


# -- what is done ---------------------------------------------------------------------------------


def _rows(directed: bool = True) -> lpma.Snapshot:
    """A graph whose snapshot has seen no algorithm yet."""
    src, dst = generators.rmat(8, 2_000, seed=1)
    g = lpma.Graph(directed, device="cpu")
    g.insert(src, dst)
    return g.snapshot()


def _two_sided() -> lpma.Snapshot:
    rng = np.random.default_rng(2)
    g = lpma.Graph(directed=False, device="cpu")
    g.insert(rng.integers(0, 90, 900), 90 + rng.integers(0, 70, 900))
    return g.snapshot()


def of_algorithms() -> Iterator[tuple[str, Action]]:
    """Every public function of `algorithms`, on a snapshot of its own each time."""
    bicliques = {"count_bicliques": (3, 3), "count_all_bicliques": (3, 3)}
    arguments: dict[str, tuple[Any, ...]] = {
        "bfs": (1,), "common_neighbors": ([1, 2], [3, 4]), "diversity": ("truss", 2),
        "jaccard": ([1, 2], [3, 4]), "k_core": (2,), "k_truss": (3,), "shortest_path_tree": (1,),
        "shortest_paths": (1,), "similar": (1, 3), "top_diversity": ("core", 2, 3), **bicliques,
    }  # fmt: skip
    for name in algorithms.__all__:
        function = getattr(algorithms, name)
        if isinstance(function, type) or name == "list_bicliques":
            continue
        make = _two_sided if name in bicliques else _rows
        given = arguments.get(name, ())
        yield name, lambda f=function, make=make, given=given: f(make(), *given)  # type: ignore[misc]
    yield "list_bicliques", lambda: list(algorithms.list_bicliques(_two_sided(), 2, 2, limit=5))
    yield "pagerank, weighted", lambda: algorithms.pagerank(_rows(), weighted=True).round(9)
    yield "Tracker", _track
    yield (
        "ShardedSnapshot",
        lambda: algorithms.core_numbers(algorithms.ShardedSnapshot.of(split(_rows(), 2))),
    )


def _track() -> Any:
    g = lpma.Graph(device="cpu")
    src, dst = generators.rmat(7, 600, seed=1)
    g.insert(src, dst)
    tracker = algorithms.Tracker(g, ["core", "triangles", "components", "pagerank"])
    g.delete(src[:50], dst[:50])
    tracker.update()
    return tracker.core_numbers, tracker.triangle_count, tracker.components, tracker.ranks.round(9)


def of_the_store() -> Iterator[tuple[str, Action]]:
    """Batches, queries, snapshots, files and names."""
    src, dst = generators.rmat(8, 3_000, seed=1)

    def filled() -> lpma.Graph:
        g = lpma.Graph(device="cpu", predecessors=True, segment_size=4)
        g.insert(src, dst, time=np.arange(len(src)))
        return g

    def changed() -> Any:
        g = filled()
        g.insert(3, 4)
        g.delete(src[:900], dst[:900])
        g.remove_vertices([1, 2])
        g.expire(1_500)
        return g.snapshot(), g.num_edges

    def mixed() -> Any:
        g, batch = filled(), lpma.Batch()
        for u, v in zip(src[:60].tolist(), dst[:60].tolist(), strict=True):
            batch.insert(u, v, -1.0, time=7)
            batch.edge(u, v)
            batch.successors(u)
            batch.hops(v, 2)
        answers = g.apply(batch)
        return [plain(tuple(vars(answers[n]).values())) for n in range(len(answers))], g.num_edges

    kept = filled()

    def asked() -> Any:
        found = kept.successors(src[:50]), kept.predecessors(dst[:50]), kept.hops(src[:9], 2)
        return (
            [one.ids for one in found], kept.degree(src), kept.edges(src, dst).found,
            kept.has_vertices(src), kept.has_edge(1, 2), kept.neighbors(3),
        )  # fmt: skip

    def saved() -> Any:
        with tempfile.TemporaryDirectory() as directory:
            kept.save(Path(directory) / "g.lpma")
            return lpma.Graph.load(Path(directory) / "g.lpma", "cpu").snapshot()

    def named() -> Any:
        g = lpma.from_edges([f"v{u}" for u in src], [f"v{v}" for v in dst], device="cpu")
        return g.snapshot(), g.successors("v1").ids

    yield "changes", changed
    yield "a mixed batch", mixed
    yield "queries", asked
    yield "compact snapshot", lambda: filled().snapshot(compact=True)
    yield "files", saved
    yield "names", named


def of_ingest() -> Iterator[tuple[str, Action]]:
    """Records that are decoded, and a stream from its log to a checkpoint."""
    src, dst = generators.rmat(6, 200, seed=1)

    def streamed() -> Any:
        with (
            tempfile.TemporaryDirectory() as directory,
            ingest.SqliteLog(f"{directory}/log") as log,
        ):
            log.create_topic("updates")
            for lo in range(0, 200, 50):
                part = slice(lo, lo + 50)
                log.produce("updates", encode_updates(src[part], dst[part]))
            graph, state = lpma.Graph(device="cpu"), f"{directory}/state"
            with ingest.Pipeline(log, graph, state, batch_size=60) as pipeline:
                pipeline.run("end")
                return graph.snapshot()

    values = Values.of([encode_row(n, n) for n in range(8)])
    yield "rows", lambda: len(list(RowReader(None, False).stretches(values)))
    yield "made-up streams", lambda: plain(generators.rmat(6, 100, seed=1))
    yield "a stream", streamed


GROUPS = {"algorithms": of_algorithms, "store": of_the_store, "ingest": of_ingest}

if __name__ == "__main__":
    main()
