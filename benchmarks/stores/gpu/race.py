"""One cell of the table: a store, a graph, a batch size.

Stores run one after the other, not in turns: they would push one another out of the cache. The
latency of a batch is the wall clock from the call until the device is idle, its columns pinned on
the host. The *period* is the time per batch when batches follow each other without waiting, and
*lock us* how long such a batch keeps another Python thread from running (lock.py).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...keys import Array
from ...stopwatch import NAN, alone, median, on_device
from ...workloads_gpu import Stream, shuffled, to_host
from .base import DeviceStore
from .lock import lock_us

Wait = Callable[[], object]


@dataclass(frozen=True)
class Rounds:
    """How many batches of each kind."""

    inserts: int
    deletes: int
    following: int  # without waiting for each other
    pageable: int
    warmup: int = 3

    @property
    def streamed(self) -> int:
        """Batches that insert."""
        return 2 * self.warmup + self.inserts + self.following + self.pageable

    def within(self, batches: int) -> Rounds | None:
        """As many of these as a stream of this many batches allows, pinned inserts first."""
        if self.streamed <= batches:
            return self
        if batches < 4:
            return None
        inserts = min(self.inserts, batches - 2)
        return Rounds(inserts, min(self.deletes, 5), following=0, pageable=0, warmup=1)


ROUNDS = {
    10**3: Rounds(100, 30, 50, 10),
    10**4: Rounds(100, 30, 30, 10),
    10**5: Rounds(50, 20, 20, 6),
    10**6: Rounds(10, 5, 4, 3, warmup=1),
}


@dataclass
class Cell:
    """Milliseconds."""

    insert: list[float] = field(default_factory=list)
    delete: list[float] = field(default_factory=list)
    pageable: list[float] = field(default_factory=list)
    period: float = NAN
    lock_us: float = NAN
    csr: float = NAN
    csr_edges: int = 0
    expansions: int = 0

    def figures(self) -> dict[str, Any]:
        return {
            "insert": median(self.insert),
            "slowest": max(self.insert, default=NAN),
            "expansions": self.expansions,
            "period": self.period,
            "lock us": self.lock_us,
            "pageable": median(self.pageable),
            "delete": median(self.delete),
            "delete slowest": max(self.delete, default=NAN),
            "CSR": self.csr,
            "edges": self.csr_edges,
        }


def run_cell(store: DeviceStore, stream: Stream, size: int, rounds: Rounds) -> Cell:
    """Load, insert, export, delete; what the store holds is compared with the stream's."""
    cell, used = Cell(), 0
    base = stream.base()
    store.load(base, stream.vertices, len(base) + rounds.streamed * size)
    del base

    def batch() -> Array:
        nonlocal used
        used += size
        return to_host(stream.batch(used - size, size))

    levels = store.levels
    cell.insert = _latencies(store, batch, rounds.inserts, rounds.warmup)
    cell.expansions = store.levels - levels
    cell.pageable = _latencies(store, batch, rounds.pageable, 0, pinned=False)
    if rounds.following:
        cell.period, cell.lock_us = _following(store, batch, rounds)
    present = stream.upto(used)
    store.verify(present)
    if hasattr(store, "csr"):
        cell.csr = alone(store.csr, rounds=5, warmup=2) * 1e3
        cell.csr_edges = len(present)
    if store.deletes and rounds.deletes:
        cell.delete = _deletions(store, present, size, rounds)
    return cell


def _latencies(
    store: DeviceStore,
    batch: Callable[[], Array],
    rounds: int,
    warmup: int,
    deleting: bool = False,
    pinned: bool = True,
) -> list[float]:
    """Milliseconds of each batch, without those that warm up."""
    found, change = [], store.delete if deleting else store.insert
    for i in range(warmup + rounds):
        prepared = store.prepare(batch(), deleting, pinned=pinned)
        seconds, _ = on_device(lambda: change(prepared))  # noqa: B023  # called at once
        if i >= warmup:
            found.append(seconds * 1e3)
    return found


def _following(
    store: DeviceStore, batch: Callable[[], Array], rounds: Rounds
) -> tuple[float, float]:
    """(milliseconds per batch when each follows the last at once, lock_us of such batches)."""
    count = rounds.warmup + rounds.following
    ready = [store.prepare(batch(), slot=i) for i in range(count)]
    for prepared in ready[: rounds.warmup]:
        store.insert(prepared)
    following = ready[rounds.warmup :]

    def follow() -> None:
        for prepared in following:
            store.insert(prepared)

    period = on_device(follow)[0] * 1e3 / rounds.following
    # The same again: what is there already takes the host as long.
    return period, lock_us(store.insert, following)


def together(
    count: int, follow: Callable[[int, Wait, Wait], None], patience_s: float | None = None
) -> float:
    """Seconds from the moment that all of `count` threads are ready until all have ended. Thread i
    runs follow(i, ready, ended), and calls both once."""
    ready, ended = (threading.Barrier(count + 1, timeout=patience_s) for _ in range(2))
    threads = [
        threading.Thread(target=follow, args=(number, ready.wait, ended.wait))
        for number in range(count)
    ]
    for thread in threads:
        thread.start()
    ready.wait()
    began = time.perf_counter()
    ended.wait()
    seconds = time.perf_counter() - began
    for thread in threads:
        thread.join()
    return seconds


def _deletions(store: DeviceStore, present: Any, size: int, rounds: Rounds) -> list[float]:
    """Latencies of deleting batches of edges that are there, drawn at random, none twice."""
    import cupy

    count = rounds.deletes + rounds.warmup
    size = min(size, len(present) // (2 * count))
    chosen = shuffled(len(present), seed=size)[: size * count]
    gone = to_host(present[chosen])
    parts = iter(gone[i * size : (i + 1) * size] for i in range(count))
    found = _latencies(store, lambda: next(parts), rounds.deletes, rounds.warmup, deleting=True)
    left = cupy.ones(len(present), bool)
    left[chosen] = False
    store.verify(present[left])
    return found
