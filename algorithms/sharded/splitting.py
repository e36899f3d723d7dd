"""A snapshot of one device split into parts: for tests, and to spread a graph over the devices of a
host."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from lpma.arrays import to_host
from lpma.errors import BatchError
from lpma.snapshot.snapshot import Snapshot

from .. import arguments
from .held import owners_of_rows
from .local import LocalWorkers
from .rows import packed, starts_of
from .types import Array, Part

MOST_SHARDS = 1 << 16


def split(snapshot: Snapshot, shards: int, devices: Sequence[int] | None = None) -> LocalWorkers:
    """Workers in this process that hold a snapshot's rows, each in the part of its owner.

    snapshot: neither compact nor with names. devices: the numbers of CUDA devices, which parts are
    dealt to in turn; None: the host. Raises BatchError on another snapshot, and on a number of
    shards that is not from 1 to 2^16.

    >>> graph = lpma.Graph(device="cpu")
    >>> graph.insert([0, 0, 2], [1, 2, 0])
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


def _part(snapshot: Snapshot, owner: Array, shard: int, shards: int) -> Part:
    indptr = to_host(snapshot._indptr)
    rows = np.flatnonzero(owner == shard).astype(np.uint32)
    columns = {"indices": snapshot._indices, "weights": snapshot._weights, "times": snapshot._times}
    there = {name: to_host(column) for name, column in columns.items() if column is not None}
    lengths, *taken = packed(indptr, rows, list(there.values()))
    found = dict(zip(there, taken, strict=True))
    of_row = np.zeros(snapshot.num_rows, np.int64)
    of_row[rows] = lengths
    added = rows if snapshot._added is None else to_host(snapshot._added)
    return Part(
        shard, shards, starts_of(of_row), found["indices"], found.get("weights"),
        found.get("times"), snapshot.version, snapshot.time, snapshot.directed, None,
        added[owner[added] == shard],
    )  # fmt: skip


def _on_device(part: Part, number: int) -> Part:
    cupy: Any = importlib.import_module("cupy")
    with cupy.cuda.Device(number):
        return Part(
            part.shard, part.shards, cupy.asarray(part.indptr), cupy.asarray(part.indices),
            None if part.weights is None else cupy.asarray(part.weights),
            None if part.times is None else cupy.asarray(part.times),
            part.version, part.time, part.directed, part.bounds, cupy.asarray(part.added),
        )  # fmt: skip
