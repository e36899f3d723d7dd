"""A snapshot of a graph over shards, which `algorithms` takes like a Snapshot.

Results of the public functions are those of one device, bit for bit where they are integers; ranks
differ in the last bits, since sums are taken in another order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from lpma.arguments.time_views import time_view
from lpma.cpu.threads import cuts, run_all
from lpma.errors import BatchError, VertexError
from lpma.file.atomic import StrPath
from lpma.names import FrozenNames
from lpma.snapshot.read_only import hand_out
from lpma.snapshot.snapshot import Snapshot
from lpma.time_view import TimeView

from .. import arguments
from ..arrays import Array
from ..diversity import Diverse, by_name
from ..options import MOST
from ..views.given import Distributed
from . import parquet
from .programs.gathering import whole_of
from .programs.naming import names_of_shards
from .runtime.state import owners_of_rows
from .runtime.types import Facts, Workers, run

PIECE = 1 << 17  # rows that a thread assembles at once
MOST_ROWS = int(np.iinfo(np.int32).max)


@dataclass(eq=False, repr=False)
class ShardedSnapshot(Distributed):
    """The state of a graph as of one epoch, each shard's part at its worker. It never changes. Safe
    to use from any thread: programs run one after another.

    workers    all shards' (`Workers`). If another ShardedSnapshot uses them at the same time, one
               of the two raises `sharded.ProgramPreempted`
    epoch      as of which it is
    time       the time of the last update applied
    versions   of each shard's graph
    num_rows   1 + the largest id; with names, of the rows that `number_names` gave
    num_edges  an undirected edge counts once
    directed   whether the graph is
    names      what the rows go by; None: by their ids
    bounds     who owns which rows: see `Part`
    view       which of the edges it holds, by their times; None: all
    left       as of `lpma.Snapshot`; None: not said, or vertices go by names

    `ShardedSnapshot.of` asks the workers for these. Functions of `algorithms` return NumPy's arrays
    over rows, on this host.

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 2, 3], device="cpu")
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
    view: TimeView | None = None
    left: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    @classmethod
    def of(
        cls, workers: Workers, epoch: int = 0, *, since: Any = None, until: Any = None,
        half_life: Any = None, now: Any = None,
    ) -> ShardedSnapshot:  # fmt: skip
        """The snapshot of what the workers hold, or of a view in time of it, as `Graph.snapshot`
        has them. Names, if there are any, are numbered. Raises BatchError.

        >>> graph = lpma.from_edges([0, 1, 2], [1, 2, 0], time=[10, 20, 30], device="cpu")
        >>> workers = algorithms.sharded.split(graph.snapshot(), shards=2)
        >>> s = algorithms.ShardedSnapshot.of(workers, since=20, half_life=10)
        >>> s.num_edges, s.gather().weights
        (2, array([0.5, 1. ], dtype=float32))
        """
        epoch = arguments.integer(epoch, "epoch", 0)
        view = time_view(since, until, half_life, now, True)
        facts = facts_of(workers)
        names = None
        if facts[0].named:
            names = number_names(workers)
            facts = facts_of(workers)  # the rows are others now
        rows = max(one.num_rows for one in facts)
        if view is not None:
            if view.half_life and view.now is None:  # all shards have to agree
                view = view._replace(now=max(workers.call("newest", view)))
            facts = workers.call("facts", view)
        entries, loops = sum(one.entries for one in facts), sum(one.loops for one in facts)
        directed = facts[0].directed
        return cls(
            workers,
            epoch=epoch,
            time=max(one.time for one in facts),
            versions=tuple(one.version for one in facts),
            num_rows=rows,
            num_edges=entries if directed else (entries + loops) // 2,
            directed=directed,
            names=names,
            bounds=facts[0].bounds,
            view=view,
            left=facts[0].left,
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
        """Each shard's result of a program of `PROGRAMS`."""
        if self.view is not None:
            params["view"] = self.view
        with self._lock:
            return run(self.workers, program, self.num_rows, **params)

    def dispatch(self, algorithm: str, **arguments: Any) -> Any:
        """See `views.given.Distributed`."""
        return _PUBLIC[algorithm](self, **arguments)

    def assembled(self, values: list[Array]) -> Array:
        """One array over all rows from each shard's values for its own rows."""
        if len(values) == 1:
            return values[0]  # its rows are all
        whole: Array = np.empty(self.num_rows, values[0].dtype)
        pieces = []
        of_shards = _rows_of(self.num_rows, self.workers.size, self.bounds)
        for rows, own in zip(of_shards, values, strict=True):
            cut = cuts(len(rows), PIECE)
            pieces += [(whole, rows[first:last], own[first:last]) for first, last in cut]
        run_all(_put, pieces)
        return whole

    def degrees(self) -> Array:
        """int64[n]: how many out-edges each row has.

        >>> graph = lpma.from_edges([0, 0], [1, 2], device="cpu", directed=False)
        >>> s = algorithms.ShardedSnapshot.of(algorithms.sharded.split(graph.snapshot(), shards=2))
        >>> s.degrees()
        array([2, 1, 1])
        """
        return self.assembled(self.run("degrees"))

    def hops(self, sources: Sequence[Any], steps: Sequence[int]) -> list[Array]:
        """uint32 of each query, rising: the rows within 1 … steps[q] steps of sources[q], itself
        only if it is reached again. sources: rows, or names where there are any; one that is no
        vertex reaches nothing.

        >>> graph = lpma.from_edges([0, 1, 2], [1, 2, 0], device="cpu")
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
        """The row of a source; -1 if there is none. Raises BatchError if it cannot be a vertex."""
        if self.names is None:
            return min(arguments.integer(source, "sources", 0), self.num_rows)
        row = self.names.find(source)
        return -1 if row is None else row

    def gather(self) -> Snapshot:
        """The whole graph as a Snapshot on this host, if it fits.

        >>> graph = lpma.from_edges([0, 1, 2], [1, 2, 0], device="cpu")
        >>> s = algorithms.ShardedSnapshot.of(algorithms.sharded.split(graph.snapshot(), shards=2))
        >>> s.gather().indices
        array([1, 2, 0], dtype=uint32)
        """
        indptr, indices, weights, times, added = whole_of(self.run("rows"), self.num_rows)
        return Snapshot._trusted(
            indptr, indices, weights, times, self.num_edges, sum(self.versions), self.time,
            self.directed, added=added, names=self.names, left=self.left,
        )  # fmt: skip

    def write_parquet(self, directory: StrPath) -> None:
        """Write a Parquet file per shard, as `Snapshot.write_parquet` does, and last
        `manifest.json`, without which the directory holds nothing. `read_parquet` checks and reads
        them.

        directory: new or empty, and the same on all shards' hosts; an error leaves it empty. Raises
        PathError if it is neither, MissingPackage, and ExportError if a disk is too full."""
        parquet.write(
            self.workers, directory, None if self.names is None else self.names.form, self.view,
            epoch=self.epoch, time=self.time, versions=list(self.versions), directed=self.directed,
            rows=self.num_rows, vertices=self.num_vertices, edges=self.num_edges,
        )  # fmt: skip


def _put(whole: Array, rows: Array, values: Array) -> None:
    whole[rows] = values  # NumPy lets other threads run meanwhile


@lru_cache(maxsize=2)
def _rows_of(num_rows: int, shards: int, bounds: tuple[int, ...] | None) -> list[Array]:
    """uint32 of each shard, rising: its rows. Cached, since many snapshots have as many rows, and
    hashing them takes longer than most programs on a device."""
    owner = owners_of_rows(np, num_rows, shards, bounds)
    return [np.flatnonzero(owner == shard).astype(np.uint32) for shard in range(shards)]


def facts_of(workers: Workers) -> list[Facts]:
    """A summary of each worker's part. Raises BatchError if they are not parts of one graph."""
    if not isinstance(workers, Workers):
        raise BatchError(f"workers: those of all shards, not {arguments.shown(workers)}")
    facts: list[Facts] = workers.call("facts")
    kinds = {(one.directed, one.bounds, one.named, one.left) for one in facts}
    if len(kinds) > 1:
        raise BatchError("these workers hold parts of graphs of different kinds")
    return facts


def number_names(workers: Workers) -> FrozenNames:
    """Give the rows of all shards one numbering (see naming.py). Returns their names, of which
    there are as many as rows. Raises BatchError if they have none."""
    rows = max(one.num_rows for one in workers.call("facts"))
    return names_of_shards(run(workers, "number_names", rows))


# Public functions, with validated arguments: run a program, assemble the shards' results ----------


def _bfs(s: ShardedSnapshot, source: Any) -> Array:
    _check_rows(s)
    start = arguments.row(s.names, s.num_rows, source, "source")
    found = s.run("bfs", source=start)
    if not found[0][1]:
        raise VertexError(f"source: there is no vertex {source} (no edge has it; nor was it added)")
    return s.assembled([hops for hops, _ in found])


def _connected_components(s: ShardedSnapshot) -> Array:
    _check_rows(s)
    return s.assembled(s.run("connected_components"))


def _core_numbers(s: ShardedSnapshot, method: str) -> Array:
    if not isinstance(method, str) or method not in ("auto", "h-index"):
        raise BatchError(
            "method: over shards core numbers are found by h-indices alone: choose auto or "
            f"h-index, not {arguments.shown(method)}, or give s.gather()"
        )
    return s.assembled(s.run("core_numbers"))


def _diversity(s: ShardedSnapshot, model: str, k: int, method: str) -> Array:
    return s.assembled(s.run("diversity", model=model, k=k, method=method))


def _top_diversity(
    s: ShardedSnapshot, model: str, k: int, t: int, devices: Any, method: str
) -> list[Diverse]:
    if devices is not None:
        raise BatchError(
            "devices: over shards each works on its own device; leave it, or give s.gather()"
        )
    found = s.run("top_diversity", model=model, k=k, t=t, method=method)
    best = sorted((one for part in found for one in part), key=lambda one: (-one[1], one[0]))
    return by_name(s, [Diverse(*one) for one in best[:t]])


def _pagerank(
    s: ShardedSnapshot, damping: float, tol: float, max_iter: int, weighted: bool
) -> tuple[Array, bool]:
    """The ranks, and whether the last round changed them by less than tol."""
    _check_rows(s)
    found = s.run("pagerank", damping=damping, tol=tol, max_iter=max_iter, weighted=weighted)
    return s.assembled([ranks for ranks, _ in found]), found[0][1]


def _triangle_count(s: ShardedSnapshot) -> int:
    return sum(s.run("triangle_count"))


def _check_rows(s: ShardedSnapshot) -> None:
    if s.num_rows > MOST_ROWS:
        raise BatchError(f"{s.num_rows:,} vertices: at most 2^31 - 1 are taken")


_PUBLIC: Mapping[str, Callable[..., Any]] = {
    "bfs": _bfs,
    "connected_components": _connected_components,
    "core_numbers": _core_numbers,
    "diversity": _diversity,
    "pagerank": _pagerank,
    "top_diversity": _top_diversity,
    "triangle_count": _triangle_count,
}
