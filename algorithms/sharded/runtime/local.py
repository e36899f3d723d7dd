"""Workers in threads of one process, and a snapshot split over them: for tests, and for the devices
of one host. Messages go by reference; the receiver copies what lies on another device.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from lpma.arrays import to_host
from lpma.errors import BatchError
from lpma.snapshot.snapshot import Snapshot

from ... import arguments
from ...arrays import Array, starts_of
from .rows import packed
from .state import owners_of_rows
from .types import Control, Message, Messages, Part
from .worker import Worker

MOST_SHARDS = 1 << 16


class LocalWorkers:
    """See `types.Workers`.

    workers: of all shards, in their order; or their parts.

    steps, bytes_sent: supersteps, and bytes from one worker to another, since the last `begin`"""

    def __init__(self, workers: Sequence[Worker | Part]) -> None:
        self.workers = [Worker(one) if isinstance(one, Part) else one for one in workers]
        self.size = len(self.workers)
        self.steps = self.bytes_sent = 0
        self._inboxes: list[Messages] = []
        self._pool = ThreadPoolExecutor(self.size, thread_name_prefix="lpma-shard")

    def begin(self, program: str, params: dict[str, Any]) -> None:
        self.steps = self.bytes_sent = 0
        self._inboxes = [[None] * self.size for _ in self.workers]
        self.call("begin", program, params)

    def step(self, control: Control) -> list[Any]:
        inboxes = self._inboxes
        done = self._each(lambda i, worker: worker.step(control, inboxes[i]))
        outboxes = [outbox for outbox, _ in done]
        self._inboxes = [[outbox[i] for outbox in outboxes] for i in range(self.size)]
        self.steps += 1
        self.bytes_sent += sum(
            size_bytes(message)
            for sender, outbox in enumerate(outboxes)
            for receiver, message in enumerate(outbox)
            if sender != receiver
        )
        return [summary for _, summary in done]

    def results(self) -> list[Any]:
        return self.call("result")

    def call(self, method: str, *args: Any) -> list[Any]:
        return self._each(lambda _, worker: getattr(worker, method)(*args))

    def _each(self, of: Callable[[int, Worker], Any]) -> list[Any]:
        if self.size == 1:
            return [of(0, self.workers[0])]
        waiting = [self._pool.submit(of, i, worker) for i, worker in enumerate(self.workers)]
        for one in waiting:
            one.exception()  # all are at rest before the first error is raised
        return [one.result() for one in waiting]


def split(snapshot: Snapshot, shards: int, devices: Sequence[int] | None = None) -> LocalWorkers:
    """Workers in this process that hold a snapshot's rows, each in the part of its owner.

    snapshot: neither compact nor with names. devices: the numbers of CUDA devices, which parts are
    dealt to in turn; None: the host. Raises BatchError on another snapshot, and on a number of
    shards that is not from 1 to 2^16.

    >>> graph = lpma.from_edges([0, 0, 2], [1, 2, 0], device="cpu")
    >>> workers = algorithms.sharded.split(graph.snapshot(), shards=2)
    >>> [worker.part.indices.tolist() for worker in workers.workers]
    [[1, 2, 0], []]
    """
    if snapshot._ids is not None or snapshot.names is not None:
        raise BatchError("split: give a snapshot whose rows are ids, neither compact nor named")
    shards = arguments.integer(shards, "shards", 1, MOST_SHARDS)
    devices = arguments.devices(devices)
    owner = owners_of_rows(np, snapshot.num_rows, shards, None)
    parts = [_part(snapshot, owner, shard, shards) for shard in range(shards)]
    if devices is not None:
        parts = [_on_device(part, devices[part.shard % len(devices)]) for part in parts]
    return LocalWorkers(parts)


def size_bytes(message: Message | None) -> int:
    """How many bytes a message's arrays have."""
    return 0 if message is None else sum(int(array.nbytes) for array in message)


def _part(snapshot: Snapshot, owner: Array, shard: int, shards: int) -> Part:
    indptr = to_host(snapshot._indptr)
    rows = np.flatnonzero(owner == shard).astype(np.uint32)
    columns = map(to_host, (snapshot._indices, snapshot._weights, snapshot._times))
    lengths, indices, weights, times = packed(indptr, rows, list(columns))
    of_row = np.zeros(snapshot.num_rows, np.int64)
    of_row[rows] = lengths
    added = rows if snapshot._added is None else to_host(snapshot._added)
    return Part(
        shard, shards, starts_of(of_row), indices, weights, times, snapshot.version, snapshot.time,
        snapshot.directed, None, added[owner[added] == shard], left=snapshot.left,
    )  # fmt: skip


def _on_device(part: Part, number: int) -> Part:
    cupy: Any = importlib.import_module("cupy")
    with cupy.cuda.Device(number):
        names = ("indptr", "indices", "weights", "times", "added")
        columns = {name: getattr(part, name) for name in names}
        there = {name: cupy.asarray(c) for name, c in columns.items() if c is not None}
        return replace(part, **there)
