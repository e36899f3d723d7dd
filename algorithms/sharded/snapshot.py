"""A snapshot of a graph over shards, which `algorithms` takes as it takes a Snapshot."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from lpma.cpu.threads import cuts, run_all
from lpma.errors import BatchError
from lpma.file.atomic import StrPath
from lpma.names import FrozenNames
from lpma.snapshot.read_only import hand_out
from lpma.snapshot.snapshot import Snapshot

from .. import arguments
from ..arrays import Array
from ..options import MOST
from ..views.given import Distributed
from . import parquet
from .drivers import DRIVERS
from .programs.gathering import whole_of
from .programs.naming import names_of_shards
from .runtime.state import owners_of_rows
from .runtime.types import Facts, Workers, run

PIECE = 1 << 17  # rows that a thread assembles at once


@dataclass(eq=False, repr=False)
class ShardedSnapshot(Distributed):
    """The state of a graph as of one epoch, each shard's part where its worker is. Safe to use from
    any thread: programs run one after another. It never changes.

    workers    all shards' (`Workers`). Where another ShardedSnapshot uses them at the same time,
               one of the two raises `sharded.ProgramPreempted`
    epoch      as of which it is
    time       the time of the last update applied
    versions   of each shard's graph
    num_rows   1 + the largest id; with names, of the rows that `number_names` gave
    num_edges  an undirected edge counts once
    directed   whether the graph is
    names      what the rows go by; None: by their ids
    bounds     who owns which rows: see `Part`

    `ShardedSnapshot.of` finds out all of these. Functions of `algorithms` return NumPy's arrays
    over rows, on this host.

    >>> graph = lpma.Graph(device="cpu")
    >>> graph.insert([0, 0, 1, 2], [1, 2, 2, 3])
    >>> s = algorithms.ShardedSnapshot.of(algorithms.sharded.split(graph.snapshot(), shards=2))
    >>> s
    <algorithms.ShardedSnapshot of 2 shards: directed, 4 rows, 4 edges, epoch 0>
    >>> algorithms.core_numbers(s), algorithms.triangle_count(s)
    (array([2, 2, 2, 1], dtype=int32), 1)
    """

    workers: Workers
    _: KW_ONLY
    epoch: int
    time: int
    versions: tuple[int, ...]
    num_rows: int
    num_edges: int
    directed: bool
    names: FrozenNames | None = None
    bounds: tuple[int, ...] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    @classmethod
    def of(cls, workers: Workers, epoch: int = 0) -> ShardedSnapshot:
        """The snapshot of what the workers hold: their names are numbered, if they have any."""
        epoch = arguments.integer(epoch, "epoch", 0)
        facts = facts_of(workers)
        names = None
        if facts[0].named:
            names = number_names(workers)
            facts = facts_of(workers)  # the rows are others now
        entries, loops = sum(one.entries for one in facts), sum(one.loops for one in facts)
        directed = facts[0].directed
        return cls(
            workers,
            epoch=epoch,
            time=max(one.time for one in facts),
            versions=tuple(one.version for one in facts),
            num_rows=max(one.num_rows for one in facts),
            num_edges=entries if directed else (entries + loops) // 2,
            directed=directed,
            names=names,
            bounds=facts[0].bounds,
        )

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        named = ", named" if self.names is not None else ""
        return (
            f"<algorithms.ShardedSnapshot of {self.workers.size} shards: {kind}{named}, "
            f"{self.num_rows:,} rows, {self.num_edges:,} edges, epoch {self.epoch}>"
        )

    @cached_property
    def present(self) -> Array:
        """bool[n]: which rows are vertices; read-only."""
        present: Array = hand_out(self.assembled(self.run("present")))
        return present

    @cached_property
    def num_vertices(self) -> int:
        """Vertices: the rows that are `present`."""
        return int(np.count_nonzero(self.present))

    def run(self, program: str, **params: Any) -> list[Any]:
        """What a program of `PROGRAMS` came to, of each shard."""
        with self._lock:
            return run(self.workers, program, self.num_rows, **params)

    def dispatch(self, algorithm: str, **arguments: Any) -> Any:
        """See `views.given.Distributed`."""
        return DRIVERS[algorithm](self, **arguments)

    def assembled(self, values: list[Array]) -> Array:
        """One array over all rows of each shard's values for its own."""
        if len(values) == 1:
            return values[0]  # its rows are all
        whole: Array = np.empty(self.num_rows, values[0].dtype)
        pieces = []
        for rows, own in zip(self._rows, values, strict=True):
            cut = cuts(len(rows), PIECE)
            pieces += [(whole, rows[first:last], own[first:last]) for first, last in cut]
        run_all(_put, pieces)
        return whole

    @property
    def _rows(self) -> list[Array]:
        """The rows that each shard owns, rising."""
        return _rows_of(self.num_rows, self.workers.size, self.bounds)

    def degrees(self) -> Array:
        """int64[n]: how many out-edges each row has.

        >>> graph = lpma.Graph(device="cpu", directed=False)
        >>> graph.insert([0, 0], [1, 2])
        >>> s = algorithms.ShardedSnapshot.of(algorithms.sharded.split(graph.snapshot(), shards=2))
        >>> s.degrees()
        array([2, 1, 1])
        """
        return self.assembled(self.run("degrees"))

    def hops(self, sources: Sequence[Any], steps: Sequence[int]) -> list[Array]:
        """uint32 of each query, rising: the rows within 1 … steps[q] steps of sources[q], itself
        only if it is reached again. sources: rows, or names where there are any; one that is no
        vertex reaches nothing.

        >>> graph = lpma.Graph(device="cpu")
        >>> graph.insert([0, 1, 2], [1, 2, 0])
        >>> s = algorithms.ShardedSnapshot.of(algorithms.sharded.split(graph.snapshot(), shards=2))
        >>> [rows.tolist() for rows in s.hops([0, 0], [1, 3])]
        [[1], [0, 1, 2]]
        """
        rows = [self._row_if_any(one) for one in arguments.items(sources, "sources")]
        each = [arguments.limit(one, "steps", 1, MOST) for one in arguments.items(steps, "steps")]
        if len(rows) != len(each):
            raise BatchError(f"sources, steps: {len(rows)} and {len(each)}: one of each a query")
        of_shards = self.run("hops", sources=rows, steps=each)
        return [np.sort(np.concatenate(parts)) for parts in zip(*of_shards, strict=True)]

    def _row_if_any(self, source: Any) -> int:
        """The row of a source; -1 if there is none. Raises BatchError for what is no vertex."""
        if self.names is None:
            return min(arguments.integer(source, "sources", 0), self.num_rows)
        row = self.names.find(source)
        return -1 if row is None else row

    def gather(self) -> Snapshot:
        """The whole graph as a Snapshot on this host, if it fits: for all that runs on one device.

        >>> graph = lpma.Graph(device="cpu")
        >>> graph.insert([0, 1, 2], [1, 2, 0])
        >>> s = algorithms.ShardedSnapshot.of(algorithms.sharded.split(graph.snapshot(), shards=2))
        >>> s.gather().indices
        array([1, 2, 0], dtype=uint32)
        """
        indptr, indices, weights, times, added = whole_of(self.run("rows"), self.num_rows)
        return Snapshot._trusted(
            indptr, indices, weights, times, self.num_edges, sum(self.versions), self.time,
            self.directed, added=added, names=self.names,
        )  # fmt: skip

    def write_parquet(self, directory: StrPath) -> None:
        """Write a Parquet file a shard, as `Snapshot.write_parquet` has it, and `manifest.json`,
        which comes last: without it nothing is there. `read_parquet` checks and reads them.

        directory: new or empty, and the same on all shards' hosts; an error leaves it empty. Raises
        PathError if it is neither, MissingPackage, and ExportError if a disk is too full."""
        parquet.write(self, directory)


def _put(whole: Array, rows: Array, values: Array) -> None:
    whole[rows] = values  # NumPy lets other threads run meanwhile


@lru_cache(maxsize=2)
def _rows_of(num_rows: int, shards: int, bounds: tuple[int, ...] | None) -> list[Array]:
    """uint32 of each shard, rising: its rows. Kept, since many snapshots have as many rows, and to
    hash them takes longer than most programs do on a device."""
    owner = owners_of_rows(np, num_rows, shards, bounds)
    return [np.flatnonzero(owner == shard).astype(np.uint32) for shard in range(shards)]


def facts_of(workers: Workers) -> list[Facts]:
    """What each worker tells of its part. Raises BatchError if they are not parts of one graph."""
    if not isinstance(workers, Workers):
        raise BatchError(f"workers: those of all shards, not {arguments.shown(workers)}")
    facts: list[Facts] = workers.call("facts")
    kinds = {(one.directed, one.bounds, one.named) for one in facts}
    if len(kinds) > 1:
        raise BatchError("these workers hold parts of graphs of different kinds")
    return facts


def number_names(workers: Workers) -> FrozenNames:
    """Give the rows of all shards one numbering (see naming.py). Returns what they go by; its
    length is the number of rows. Raises BatchError if they have no names."""
    rows = max(one.num_rows for one in workers.call("facts"))
    return names_of_shards(run(workers, "number_names", rows))
