"""Small batches of real streams, in their own order, beside networkit; and single operations.

    insert   the stream from its beginning, into a graph that begins empty
    window   each batch inserted, and the batch that many operations before it deleted: the graph
             holds about half of the stream
    delete   the whole stream loaded, then deleted from its beginning on

A graph that fits a processor's cache, batches of 10 to 10^4, edges that come again and again: what
a batch costs by itself decides. networkit checks for repeated edges (`addEdges` with
`checkMultiEdge`), and deletes one edge a call. It keeps neither weights nor times nor an order;
lpma keeps all three, and stamps each batch. What both hold at the end is compared with the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .. import workloads
from ..keys import Array, keys_of
from ..model import Fingerprint
from ..report import Report, Row, Setting, beside
from ..stopwatch import Kernel, measure
from ..workloads import Workload
from . import peers, singles
from .base import Lpma, Store

STREAMS = ("sx-mathoverflow", "CollegeMsg", "email-Eu-core-temporal", "soc-sign-bitcoinotc",
           "wiki-Vote")  # fmt: skip
SIZES = (10, 100, 1_000, 10_000)
MOST_BATCHES = 3_000
WARMUP = 2

Pair = tuple[Array, Array]


def small(setting: Setting) -> list[Report]:
    report = Report("small", "µs a batch, median")
    for workload, sizes in _streams(setting):
        for size in sizes:
            for case in (_insertions, _window, _deletions):
                report.add(_race(workload, size, case, setting))
    rivals = {peer.name for peer in peers.available()}
    if "networkit" not in rivals:
        report.notes.append("networkit is not installed (extra `bench`): left out.")
    report.notes.append("ratio: networkit's time to lpma's.")
    return [report, singles.singles(setting)]


def _streams(setting: Setting) -> Iterator[tuple[Workload, tuple[int, ...]]]:
    if setting.quick:
        yield workloads.rmat(10, 0, 6_000), SIZES[:3]
        return
    for name in STREAMS:
        graph = workloads.real(name, loaded_share=0.0)
        if graph is not None:
            yield graph, SIZES


class _Case:
    """What a store does in round i, and what it holds after all rounds."""

    def __init__(self, what: str, loaded: int, inserted: list[slice], deleted: list[slice]) -> None:
        self.what, self.loaded = what, loaded  # operations that are there before
        self.inserted, self.deleted = inserted, deleted  # a batch a round, or none

    @property
    def rounds(self) -> int:
        return max(len(self.inserted), len(self.deleted))


def _batches(first: int, end: int, size: int) -> list[slice]:
    starts = range(first, end - size + 1, size)[: WARMUP + MOST_BATCHES]
    return [slice(lo, lo + size) for lo in starts]


def _insertions(n: int, size: int) -> _Case:
    return _Case("insert", 0, _batches(0, n, size), [])


def _deletions(n: int, size: int) -> _Case:
    return _Case("delete", n, [], _batches(0, n, size))


def _window(n: int, size: int) -> _Case:
    inserted = _batches(n // 2, n, size)
    return _Case("window", n // 2, inserted, _batches(0, n // 2, size)[: len(inserted)])


def _race(
    workload: Workload, size: int, make: Callable[[int, int], _Case], setting: Setting
) -> Row:
    case = make(workload.streamed, min(size, workload.streamed // 4))
    rivals = [peer() for peer in peers.available() if peer.name == "networkit"]
    candidates: list[Store] = [Lpma(), *rivals]
    stores = {store.name: store for store in candidates if setting.wants(store.name)}
    first = slice(0, case.loaded)
    for store in stores.values():
        store.load(workload.src[:0], workload.dst[:0], workload.n)
        if case.loaded:
            store.insert(store.prepare(workload.src[first], workload.dst[first]))
    expected = _expected(workload, case)

    def prepare(store: Store, i: int) -> list[object]:
        rows = [of[i] if i < len(of) else None for of in (case.inserted, case.deleted)]
        return [r and store.prepare(workload.src[r], workload.dst[r]) for r in rows]

    def run(store: Store, prepared: list[object]) -> None:
        inserted, deleted = prepared
        if inserted is not None:
            store.insert(inserted)
        if deleted is not None:
            store.delete(deleted)

    def kernel(store: Store) -> Kernel:
        return Kernel(lambda i: prepare(store, i), lambda prepared: run(store, prepared))

    kernels = {name: kernel(store) for name, store in stores.items()}
    timings = measure(
        kernels, lambda name, *_: stores[name].verify(expected), rounds=case.rounds - WARMUP,
        warmup=WARMUP,
    )  # fmt: skip
    row: Row = {"graph": workload.name, "what": case.what, "batch": size}
    return row | beside(timings, ("networkit",), 1e6)


def _expected(workload: Workload, case: _Case) -> Fingerprint:
    """By the slow way: a set of Python's."""
    keys = keys_of(workload.src, workload.dst).tolist()
    held = set(keys[: case.loaded])
    for i in range(case.rounds):
        if i < len(case.inserted):
            held.update(keys[case.inserted[i]])
        if i < len(case.deleted):
            held.difference_update(keys[case.deleted[i]])
    return Fingerprint.of(np.array(sorted(held), np.uint64))
