"""Graph: what users see.

Every change is one batch: `insert`, `delete` … are batches of one kind. A batch is validated whole
(engine/admission.py), applied whole (engine/opera.py) and raises the version by one; bad input
changes nothing. Queries are validated and then read under the graph's lock, so that they see whole
batches; answers lie on the graph's device.

Arrays come from the host or from a device: on a graph of that device, edge updates and queries use
them where they lie, after the work already enqueued on the caller's current stream.

Threads: one writer at a time; a second is refused with ConcurrentWrite; queries from other threads
wait for the batch under way. Snapshots are copies and may be read from anywhere.

Interrupts: Ctrl-C and SIGTERM wait for the batch under way, which is then applied. Anything else
that ends a batch half-way breaks the graph: every later call raises BrokenStore (lock.py).
"""

from __future__ import annotations

import io
import os
import time as clock_module
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .arguments import scalars
from .arguments.convert import NO_VERTEX, one_time, time_column
from .arguments.renamed import keywords_renamed
from .arguments.scalars import integer, shown, truth
from .arguments.scalars import path as argument_path
from .arguments.time_views import time_view
from .arrays import Array, first_not_below, on_device, to_host
from .backend import check_device, open_backend
from .backend.values import SlotSource
from .batch.builder import Batch
from .batch.columns import ADD_VERTEX, DELETE, INSERT, MAX_HOPS, REMOVE_VERTEX, SET, Columns, Kind
from .display import graphs
from .engine import queries
from .engine.admission import NO_PREDECESSORS
from .engine.answers import Answers
from .engine.check import check_stores
from .engine.lock import GraphLock
from .engine.net import Watch
from .engine.single import SingleOperations, degree_of
from .engine.stores import Stores
from .engine.touched import net_changes, touched
from .engine.vertices import ById, ByName, check_taken, is_one, new_names
from .errors import BatchError
from .file.atomic import atomic_write
from .options import Options
from .pma.counters import Stats, Unchanged, expired_of, unchanged_of
from .results import Changes, Edge, Edges, Neighbors, TouchedEdges
from .snapshot import capture, image
from .snapshot.capture import MAX_SNAPSHOT_BYTES
from .snapshot.image import Image
from .snapshot.snapshot import Snapshot
from .store.lpma import LPMA

if TYPE_CHECKING:
    from .names import Name, Names


CHUNK = 1 << 16  # vertices that iteration turns into Python's objects at once


class Graph:
    """A dynamic graph of weighted, timestamped edges between vertices 0 … 2^32 - 2. It is made
    empty and filled by `insert`; `Graph.load` reads a file.

    directed      False keeps both directions of an edge, and counts it once
    predecessors  keep an in-neighbour store, which `predecessors` needs
    weight_dtype  "float32" (whole numbers are exact up to 2^24), "float64" (2^53; a sixth more
                  memory) or None: an edge is present or not
    strategy      "hybrid", "bottom-up" or "top-down": which windows a batch rebalances
    device        "auto" (a CUDA device if there is one), "cpu", "cuda" or "cuda:N"; on CUDA a store
                  has up to 2^31 slots, on the CPU up to 2^29 segments
    segment_size  slots per segment, a power of two from 2 to 1024
    times         keep the time of each edge's last operation
    global_merge  "auto": a load is merged in one pass; on CUDA so is any batch for which that is
                  cheaper, and large levels grow by quarters. "never": all as in the paper
    names         vertices go by names, text or integers of 64 bits; `names` is the dictionary
    left          of a bipartite graph, how many ids, from 0, are of the left side; it is kept
    clock         seconds, for the hybrid strategy and the statistics

    `device`, `directed`, `strategy`, `segment_size`, `global_merge`, `weight_dtype` (of NumPy,
    or None), `has_times` and `left` say what it was made with. Raises BatchError, and DeviceError.

    >>> g = lpma.Graph(device="cpu")
    >>> g.insert([0, 1, 1], [1, 2, 3], weight=[0.5, 2.0, 1.0])
    >>> g.successors(1).ids
    array([2, 3], dtype=uint32)
    >>> g.num_edges, g.version
    (3, 1)
    """

    @keywords_renamed(weight="weight_dtype")
    def __init__(
        self,
        directed: bool = True,
        *,
        predecessors: bool = False,
        weight_dtype: str | None = "float32",
        strategy: str = "hybrid",
        device: str = "auto",
        segment_size: int = 32,
        times: bool = True,
        global_merge: str = "auto",
        names: bool = False,
        left: int | None = None,
        clock: Callable[[], float] = clock_module.perf_counter,
    ) -> None:
        if not callable(clock):
            raise BatchError(f"clock: a function that returns seconds, not {shown(clock)}")
        options = Options.checked(
            directed=directed, predecessors=predecessors, weight_dtype=weight_dtype,
            strategy=strategy, segment_size=segment_size, times=times, global_merge=global_merge,
            names=names, left=left,
        )  # fmt: skip
        self.device, place, backend = open_backend(device)
        self._options = options
        self.directed, self.strategy = options.directed, options.strategy
        self.segment_size, self.global_merge = options.segment_size, options.global_merge
        self.weight_dtype, self.has_times = options.dtype, options.times
        self.left = options.left

        def store() -> LPMA:
            return LPMA(backend(), options.segment_size, options.dtype, options.times,
                        options.strategy, options.global_merge, clock)  # fmt: skip

        into = store() if options.predecessors else None
        self._stores = Stores(
            store(), into, options.directed, options.dtype, place, left=options.left
        )
        self._one = SingleOperations(self._stores)
        self._lock = GraphLock(place, self._stores, self)
        self._go_by(new_names() if options.names else None)
        # What was found by a pass over all keys, each with the version of which it is true.
        self._counted: tuple[int, int] | None = None  # the number of vertices
        self._present: tuple[int, Array] | None = None  # their ids

    # -- changes ------------------------------------------------------------------------------

    def insert(self, src: Any, dst: Any, weight: Any = 1.0, time: Any = None) -> None:
        """Insert edges, in order. Raises as `apply` does. Do not modify the arrays from another
        thread until the call returns: otherwise unvalidated values could be stored. The same holds
        for every method.

        src, dst  vertices: integers, as arrays of one length n or as scalars, which are every row's
        weight    float[n], at most 1e30 in size, or one number for every row
        time      int64[n], milliseconds since 1970, or datetime64[n] or datetimes (UTC where they
                  have no zone), or one for every row; None: now. Whole floats are the integers that
                  they are, as they are of vertices

        Inserting an absent edge with weight w makes it if w > 0, and otherwise does nothing.
        An edge of weight v gets weight v + w; below 0 it is removed, at exactly 0 it stays:

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([0, 0], [1, 1], [5.0, -3.0])    # 5, then 2
        >>> g.insert([0, 0], [2, 2], [-3.0, 5.0])    # nothing, then 5
        >>> g.insert([0, 0], [3, 3], [2.0, -3.0])    # 2, then removed
        >>> g.edges([0, 0, 0], [1, 2, 3]).weights
        array([2., 5., 0.], dtype=float32)

        Weights are rounded to the graph's dtype, and so is each sum: whole numbers are exact up to
        2^24 in float32 and up to 2^53 in float64. From there on, adding 1 changes nothing.
        Operations that change nothing are counted by reason: see `unchanged`. Without weights
        (`weight_dtype=None`) w > 0 makes the edge, w < 0 removes it, and 0 does nothing."""
        self._vertices.update(INSERT, src, dst, weight, time)

    def delete(self, src: Any, dst: Any, time: Any = None) -> None:
        """Delete edges whatever their weight; absent ones stay absent. All else is as for `insert`.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 1], [2, 3])
        >>> g.delete(1, [2, 4])
        >>> g.num_edges
        1
        """
        self._vertices.update(DELETE, src, dst, 0.0, time)

    def set(self, src: Any, dst: Any, weight: Any = 1.0, time: Any = None) -> None:
        """Set edges, in order: each then has exactly the weight and the time given, whether it was
        there before or not. To set an edge is to delete it and to insert it at once: with a weight
        of 0 or less it is gone. All else is as for `insert`.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([0, 0], [1, 2], 5.0)
        >>> g.set([0, 0, 0], [1, 2, 3], [2.0, 0.0, 3.0])
        >>> g.successors(0).ids, g.successors(0).weights
        (array([1, 3], dtype=uint32), array([2., 3.], dtype=float32))

        Without weights (`weight_dtype=None`) w > 0 makes the edge, and any other removes it. An
        edge that stays is not among `changes`. An absent edge that is set to 0 or less counts as
        one that is inserted so: see `unchanged`."""
        self._vertices.update(SET, src, dst, weight, time)

    def add_vertices(self, v: Any, time: Any = None) -> None:
        """Make every v a vertex, whether it has edges or not. v: integers, an array or a scalar;
        time: as for `insert`. Raises as `apply` does.

        >>> g = lpma.Graph(device="cpu")
        >>> g.add_vertices([3, 5])
        >>> g.has_vertices([3, 4])
        array([ True, False])
        """
        self._vertices.update(ADD_VERTEX, v, None, 0.0, time)

    def remove_vertices(self, v: Any, time: Any = None) -> None:
        """Remove every v with all its edges, in and out. v: integers, an array or a scalar; time:
        as for `insert`. Raises as `apply` does. Without an in-neighbour store, the edges into v are
        found by a scan of the whole graph.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 2, 3], [2, 3, 1])
        >>> g.remove_vertices(2)
        >>> g.num_edges
        1
        """
        self._vertices.update(REMOVE_VERTEX, v, None, 0.0, time)

    def expire(self, before: Any) -> None:
        """Remove every edge whose time is less than `before`: one time, as `insert` takes it.
        Vertices that were added stay, and so does the graph's `time`. An edge's time is that of its
        last insertion that did something, even where an earlier one had a later time.

        The first call passes over the whole graph, later ones cost by what expires: about four
        slots are visited for each edge. What is kept for that takes at most eight bytes a slot, or
        a mebibyte. Raises BatchError if the graph has no times, and as `apply` does.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 2, 3], [2, 3, 4], time=[10, 20, 30])
        >>> g.expire(20)
        >>> g.has_edge(1, 2), g.num_edges
        (False, 2)
        """
        zero = np.zeros(1, np.uint32)
        time = time_column(one_time(before, "before"), zero)
        given = np.array([Kind.EXPIRE], np.uint8), zero, zero, None, time
        self._vertices.apply_ids(Columns(*given, checked=True))

    def apply(self, batch: Batch | Columns, watch: Watch | None = None) -> Answers:
        """Apply one mixed batch and answer its queries, each as of its place in it. watch: a new
        one, which then has what the batch changed: two look-ups of all that it names.

        Raises
        BatchError       the batch is malformed; nothing is changed
        OutOfMemory      not enough memory; nothing is changed. StoreTooLarge: no amount would be
        AnswersTooLarge  the updates are applied, but memory ran out for the answers
        ConcurrentWrite  another thread is applying a batch, or this thread is inside a call of the
                         graph already; nothing is changed
        BrokenStore      this batch or an earlier one was cut off half-way, by the error that
                         is its cause: the graph must be loaded again

        Any other Exception leaves the graph as it was.

        >>> batch = lpma.Batch()
        >>> batch.insert(1, 2, 0.5)
        >>> query = batch.degree(1)
        >>> batch.insert(1, 3)
        >>> lpma.Graph(device="cpu").apply(batch)[query]
        array([1])
        """
        if watch is not None and not isinstance(watch, Watch):
            raise BatchError(f"watch: expected a lpma.Watch, got {type(watch).__name__}")
        return self._vertices.apply(batch, watch)

    @property
    def names(self) -> Names | None:
        """The dictionary of a graph with names."""
        return self._vertices.names

    def take_names(self, names: Names) -> None:
        """Have a graph that was made without names go by this dictionary, which it keeps from
        now on: for files and streams that had the two apart. Raises BatchError if the graph has
        names, or a vertex without one, or another graph goes by them: then a copy will do."""
        check_taken(names, self.names, self.num_rows)
        if names.has_graph:
            raise BatchError("names: another graph goes by them: give it names.copy()")
        self._options = replace(self._options, names=True)
        self._go_by(names)

    def _go_by(self, names: Names | None) -> None:
        given = self._stores, self._lock, self._one
        if names is None:
            self._vertices: ById | ByName = ById(*given)
        else:
            names.has_graph = True
            self._vertices = ByName(*given, names)

    def _by_id(self) -> Self:
        """The same graph, not a copy, for a caller who has its vertices by their ids."""
        same = object.__new__(type(self))
        same.__dict__ = {**self.__dict__}
        same._go_by(None)
        return same

    # -- one edge, one vertex -----------------------------------------------------------------

    def has_edge(self, u: Name, v: Name) -> bool:
        """Whether the edge (u, v) is there. Raises BatchError. For many at once: `edges`.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 2)
        >>> g.has_edge(1, 2), g.has_edge(2, 1)
        (True, False)
        """
        ends = self._vertices.one(u, "u"), self._vertices.one(v, "v")
        return self._lock.read(self._one.has_edge, *ends)

    def edge(self, u: Name, v: Name) -> Edge | None:
        """The weight and the time of the edge (u, v); None if it is not there. Raises BatchError.
        For many at once: `edges`.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 2, weight=0.5, time=7)
        >>> g.edge(1, 2).weight
        0.5
        """
        ends = self._vertices.one(u, "u"), self._vertices.one(v, "v")
        return self._lock.read(self._one.edge, *ends)

    def neighbors(self, u: Name) -> Array:
        """uint32[d]: the targets of u's edges, sorted; NumPy's on every device. Raises BatchError.
        For many vertices at once, or with weights: `successors`.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 1, 2], [3, 2, 3])
        >>> g.neighbors(1)
        array([2, 3], dtype=uint32)
        """
        found = self._lock.read(self._one.neighbors, self._vertices.one(u, "u"))
        return self._vertices.called(found)

    # -- queries ------------------------------------------------------------------------------

    def edges(self, src: Any, dst: Any) -> Edges:
        """Whether edges (src[i], dst[i]) are there, with their weights and times. src, dst:
        integers, arrays of one length q or scalars. Raises BatchError.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 2, weight=0.5)
        >>> answer = g.edges([1, 2], [2, 1])
        >>> answer.found, answer.weights
        (array([ True, False]), array([0.5, 0. ], dtype=float32))
        """
        u, v = self._vertices.many(src, "src"), self._vertices.many(dst, "dst")
        if len(u) != len(v):
            raise BatchError(f"dst has {len(v)} rows, src has {len(u)}: they must agree")
        return self._lock.read(queries.edges, self._stores.out, None, u, v, None, True)

    def successors(self, u: Any) -> Neighbors:
        """The targets of each u's edges, sorted by id. u: integers, an array of length q or a
        scalar. Raises BatchError.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 1, 2], [3, 2, 3])
        >>> g.successors(1).ids
        array([2, 3], dtype=uint32)
        """
        vertices = self._vertices.many(u, "u")
        found = self._lock.read(queries.neighbors, self._stores.out, None, vertices, None)
        return self._vertices.neighbors(found)

    def predecessors(self, v: Any) -> Neighbors:
        """The sources of each v's edges, sorted by id. v: integers, an array of length q or a
        scalar. Raises BatchError, also if the graph is directed and was made without
        predecessors=True.

        >>> g = lpma.Graph(predecessors=True, device="cpu")
        >>> g.insert([1, 2], [3, 3])
        >>> g.predecessors(3).ids
        array([1, 2], dtype=uint32)
        """
        store, vertices = self._reverse(), self._vertices.many(v, "v")
        return self._vertices.neighbors(
            self._lock.read(queries.neighbors, store, None, vertices, None)
        )

    def successors_after(self, u: Any, after: Any = None, limit: int = 1 << 20) -> Neighbors:
        """A piece of what `successors` gives of one vertex: those behind `after` (None: from the
        first on), at most `limit`, at least 1. The last of them is the next `after`, so that a row
        of any length is read in pieces; they are of one version while no batch comes between.
        Raises BatchError.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, [2, 3, 5, 8])
        >>> g.successors_after(1, limit=2).ids, g.successors_after(1, 3, limit=2).ids
        (array([2, 3], dtype=uint32), array([5, 8], dtype=uint32))
        """
        return self._neighbors_after(self._stores.out, u, "u", after, limit)

    def predecessors_after(self, v: Any, after: Any = None, limit: int = 1 << 20) -> Neighbors:
        """As `successors_after`, of what `predecessors` gives. Raises BatchError, also if the graph
        is directed and was made without predecessors=True."""
        return self._neighbors_after(self._reverse(), v, "v", after, limit)

    def _reverse(self) -> LPMA:
        """The store whose successors are predecessors. Raises BatchError."""
        if self._stores.reverse is None:
            raise BatchError(NO_PREDECESSORS)
        return self._stores.reverse

    def _neighbors_after(
        self, store: LPMA, vertex: Any, name: str, after: Any, limit: int
    ) -> Neighbors:
        limit = scalars.limit(limit, "limit", 1, 1 << 62)
        vertices = self._vertices.many(vertex, name)
        if len(vertices) != 1:
            raise BatchError(f"{name}: one vertex, not {len(vertices)}")
        first = 0 if after is None else self._vertices.one(after, "after") + 1
        if self.names is not None and first == NO_VERTEX:  # behind the id of unknown names
            raise BatchError(f"after: no vertex goes by {after!r}: give the last that was returned")
        id = int(to_host(vertices)[0])
        found = self._lock.read(queries.neighbors_from, store, id, first, limit)
        return self._vertices.neighbors(found)

    def hops(self, u: Any, k: int) -> Neighbors:
        """The distinct vertices within 1 … k steps of each u, itself only if it is reached again.
        u: integers, an array of length q or a scalar; k: from 1 to 255. Raises BatchError.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 2, 3], [2, 3, 4])
        >>> g.hops(1, 2).ids
        array([2, 3], dtype=uint32)
        """
        k = integer(k, "k", 1, MAX_HOPS)
        vertices = self._vertices.many(u, "u")
        steps = np.full(len(vertices), k, np.int64)
        found = self._lock.read(queries.hops, self._stores.out, None, vertices, steps, None)
        return self._vertices.neighbors(found)

    def degree(self, u: Any) -> Any:
        """int64[q]: the number of each u's successors; 0 also for an id that is not a vertex, which
        `has_vertices` tells apart. u: integers, an array of length q; of one vertex, an int is
        returned. Raises BatchError.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 1], [2, 3])
        >>> g.degree([1, 2]), g.degree(1)
        (array([2, 0]), 2)
        """
        if is_one(u):
            return self._lock.read(degree_of, self._stores.out, self._vertices.one(u, "u"))
        vertices = self._vertices.many(u, "u")
        return self._lock.read(queries.degrees, self._stores.out, None, vertices, None, True)

    def in_degree(self, v: Any) -> Any:
        """int64[q]: the number of each v's predecessors; 0 also for an id that is not a vertex. v:
        integers, an array of length q; of one vertex, an int is returned. Raises BatchError, also
        if the graph is directed and was made without predecessors=True.

        >>> g = lpma.Graph(predecessors=True, device="cpu")
        >>> g.insert([1, 2], [3, 3])
        >>> g.in_degree([3, 1]), g.in_degree(3)
        (array([2, 0]), 2)
        """
        store = self._reverse()
        if is_one(v):
            return self._lock.read(degree_of, store, self._vertices.one(v, "v"))
        vertices = self._vertices.many(v, "v")
        return self._lock.read(queries.degrees, store, None, vertices, None, True)

    def has_vertices(self, v: Any) -> Array:
        """bool[q]: whether each v was added, or has an edge out or in. v: integers, an array of
        length q or a scalar. Raises BatchError. Without an in-neighbour store, the in-edges of
        those without an edge out are found by a scan of the whole graph. On the host, whoever soon
        asks again has all in-edges counted (16 to 32 bytes a vertex), and pays for later changes.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 2)
        >>> g.has_vertices([1, 2, 3])
        array([ True,  True, False])
        """
        vertices = self._vertices.many(v, "v")
        return self._lock.read(queries.present_vertices, self._stores, None, vertices, None, True)

    # -- changes since a version --------------------------------------------------------------

    @property
    def version(self) -> int:
        """The number of batches applied: it rises by one with each."""
        return self._stores.version

    @property
    def time(self) -> int:
        """The time of the last update applied, 0 before the first."""
        return self._stores.time

    def changes(self, since: int) -> Changes | None:
        """The net edges inserted and deleted since a version, sorted; None if that is no longer
        known, since the history is bounded. An undirected edge is listed once, src <= dst. Raises
        BatchError if `since` is not a version from 0 to the present one.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 2], [2, 3])
        >>> before = g.version
        >>> g.delete(1, 2)
        >>> g.insert(2, 3)                          # was there already
        >>> g.changes(before).src, g.changes(before).inserted
        (array([1], dtype=uint32), array([False]))
        """
        since = integer(since, "since", 0, self.version)
        changes = self._lock.read(net_changes, self._stores, since)
        if changes is None:
            return None
        src, dst = self._vertices.called(changes.src), self._vertices.called(changes.dst)
        return Changes(src, dst, changes.inserted)

    def touched(self, since: int) -> TouchedEdges | None:
        """The edges that batches touched since a version, on the graph's device and as of one
        version, for callers that keep a copy of the graph. None if they are no longer known.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 2)
        >>> g.touched(0).there
        array([ True])
        """
        since = integer(since, "since", 0, self.version)
        return self._lock.read(touched, self._stores, since)

    # -- whole contents -----------------------------------------------------------------------

    def snapshot(
        self,
        compact: bool = False,
        max_bytes: int = MAX_SNAPSHOT_BYTES,
        *,
        since: Any = None,
        until: Any = None,
        half_life: Any = None,
        now: Any = None,
    ) -> Snapshot:
        """The state now, in CSR: a copy, on the graph's device. There is a row for every id up to
        the largest present; `compact` renumbers the vertices present to 0 … n - 1 and returns their
        ids with it.

        since, until  only edges with since <= time < until: times as `insert` takes them
        half_life     let weights decay: w becomes w · 2^-((now - time) / half_life). Milliseconds
                      from 1 on, or a timedelta. Of a graph without weights they are float32, what
                      is left of 1
        now           when that is; None: the newest time of the edges in the snapshot. An edge that
                      is newer counts whole; one of less than 2^-126 (2^-1022 of float64)
                      weighs 0

        A vertex is then one that has such an edge, or was added by itself; rows are as in the whole
        snapshot, whose `version` and `time` this one has. Every device computes the same bits.

        Raises SnapshotTooLarge if `indptr`, 8 bytes per row, would exceed `max_bytes`, BatchError
        on an argument of another type, or on one of the last four if the graph has no times, and
        OutOfMemory.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([0, 0, 2], [1, 2, 0], time=[1000, 2000, 3000])
        >>> s = g.snapshot()
        >>> s.indptr, s.indices
        (array([0, 2, 2, 3]), array([1, 2, 0], dtype=uint32))
        >>> s = g.snapshot(since=2000, half_life=1000)
        >>> s.indptr, s.indices, s.weights
        (array([0, 1, 1, 2]), array([2, 0], dtype=uint32), array([0.5, 1. ], dtype=float32))
        """
        return self.begin_snapshot(
            compact, max_bytes, since=since, until=until, half_life=half_life, now=now
        )()

    def begin_snapshot(
        self,
        compact: bool = False,
        max_bytes: int = MAX_SNAPSHOT_BYTES,
        *,
        since: Any = None,
        until: Any = None,
        half_life: Any = None,
        now: Any = None,
    ) -> Callable[[], Snapshot]:
        """Copy the state now; the function that is returned makes the snapshot of the copy, in any
        thread, while the graph goes on: whoever applies batches waits for the copy alone. Arguments
        and errors: as of `snapshot`.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 1, 7], [5, 7, 1])
        >>> finish = g.begin_snapshot(compact=True)
        >>> g.insert(9, 9)
        >>> s = finish()
        >>> s.ids, s.indptr
        (array([1, 5, 7], dtype=uint32), array([0, 2, 2, 3]))
        """
        compact = truth(compact, "compact")
        max_bytes = integer(max_bytes, "max_bytes", 0)
        view = None
        if not (since is until is half_life is now is None):  # most ask for none: a call less
            view = time_view(since, until, half_life, now, self.has_times)
        read, names = self._lock.read, self._vertices.names
        return read(capture.begin_snapshot, self._stores, names, compact, max_bytes, view, read)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to one file, atomically. Other threads that use the graph wait until it
        is written: `image` lets them go on earlier, at the cost of a copy. Raises PathError if
        `path` cannot be written, and OSError if the disk fails. See container.py for the format.

        >>> import tempfile
        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 2)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     g.save(f"{directory}/g.lpma")
        ...     lpma.Graph.load(f"{directory}/g.lpma", device="cpu").num_edges
        1
        """
        names = self.names
        with atomic_write(os.fsdecode(argument_path(path, "path"))) as file:
            self._lock.read(image.write, self._stores, self._options, names, file)

    def image(self, old: Image | None = None) -> Image:
        """What `save` would write now, copied to the host: `image.save(path)` may be called later,
        and from any thread. The memory of `old`, a spent image, is used again. Raises OutOfMemory.

        >>> import tempfile
        >>> g = lpma.Graph(device="cpu")
        >>> image = g.image()
        >>> g.insert(1, 2)                          # not in the image
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     image.save(f"{directory}/g.lpma")
        ...     lpma.Graph.load(f"{directory}/g.lpma", device="cpu").num_edges
        0
        """
        if old is not None and not isinstance(old, Image):
            raise BatchError(f"old: an Image that `image` returned, or None, not {shown(old)}")
        return self._lock.read(image.take, self._stores, self._options, self.names, old)

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str = "auto") -> Self:
        """The graph that `save` wrote, on a device of this machine; see `save`. Raises FormatError
        on any other file, OSError if it cannot be read, DeviceError, and OutOfMemory."""
        check_device(device)
        if not isinstance(path, io.BytesIO):  # what is unpickled
            path = os.fsdecode(argument_path(path, "path"))
        file = image.GraphFile(path)
        names = file.names(file.reader.read)
        graph = cls(device=device, **asdict(file.options))
        graph._fill(file.version, file.time, names, image.StoredSlots(file))
        file.reader.close()
        return graph

    def _fill(self, version: int, time: int, names: Names | None, slots: SlotSource) -> None:
        """Give this graph, which is new, its contents. What ends this half-way ends the graph, too,
        which nobody has yet: so no signal has to wait."""
        if names is not None:
            self._go_by(names)
        self._stores.version, self._stores.time = version, time
        self._lock.read(self._stores.fill, slots)

    def copy(self) -> Self:
        """A graph of its own with the same contents, options and version, on the same device. Its
        history begins here: `changes` answers from this version on. Raises OutOfMemory.

        >>> g = lpma.from_edges([1, 2], [2, 3], device="cpu")
        >>> other = g.copy()
        >>> other.delete(1, 2)
        >>> g.num_edges, other.num_edges
        (2, 1)
        """
        taken, clock = self.image(), self._stores.out.clock
        other = type(self)(device=self.device, clock=clock, **asdict(self._options))
        # Names given since the image was taken do no harm.
        names = None if self.names is None else self._lock.read(self.names.copy)
        other._fill(taken.version, taken.time, names, taken.slots)
        return other

    @classmethod
    def _of_snapshot(cls, s: Snapshot, device: str | None, options: dict[str, Any]) -> Self:
        """See Snapshot.to_graph."""
        if device is None:
            where: Any = s._indptr.device
            device = f"cuda:{where.id}" if on_device(s._indptr) else "cpu"
        facts: dict[str, Any] = {
            "directed": s.directed,
            "names": s.names is not None,
            "times": s._times is not None,
            "weight_dtype": None if s._weights is None else s._weights.dtype.name,
        }
        for name in options.keys() & facts.keys():
            raise BatchError(f"{name}: the snapshot says that; leave it out")
        graph = cls(device=device, **facts, **{"left": s.left, **options})
        names = None if s.names is None else new_names(s.names.of(np.arange(s.num_rows)))
        graph._fill(s.version, s.time, names, image.slots_of(s))
        return graph

    # -- a collection of vertices -------------------------------------------------------------

    def __len__(self) -> int:
        """The number of vertices present, as `num_vertices`; it is counted once a version.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 5)
        >>> len(g), list(g), 5 in g, 3 in g
        (2, [1, 5], True, False)
        """
        return self.num_vertices

    def __bool__(self) -> bool:
        """Whether there is a vertex, without counting them: an empty graph is False, as a list and
        a graph of NetworkX's are. Ask `graph is None` for whether there is a graph."""
        return self._lock.read(lambda: self._stores.out.num_slots > 0)

    def __contains__(self, v: Any) -> bool:
        """Whether v is a vertex; False for what cannot be one, such as a list, as NetworkX has it.
        For many at once: `has_vertices`."""
        row = self._vertices.find(v)
        if row is None:
            return False
        if self.device == "cpu":
            return self._lock.read(self._one.has_vertex, row)
        ids = self._vertex_ids()  # one pass, as to look for an edge to v, which others share
        at = first_not_below(ids, row)
        return at < len(ids) and int(ids[at]) == row

    def __iter__(self) -> Iterator[Any]:
        """The vertices present at this moment, by rising id, as Python's integers or, of a graph
        with names, as names. The graph may change meanwhile."""
        ids = self._vertex_ids()
        for first in range(0, len(ids), CHUNK):
            yield from self._vertices.called(ids[first : first + CHUNK]).tolist()

    def _vertex_ids(self) -> Array:
        """uint32, ascending, on the host: the vertices present. Not to be written to."""
        kept = self._present
        if kept is None or kept[0] != self.version:
            kept = self._present = self._lock.read(
                lambda: (self._stores.version, to_host(capture.vertices(self._stores)))
            )
        return kept[1]

    # -- figures ------------------------------------------------------------------------------

    @property
    def num_edges(self) -> int:
        """The number of edges; an undirected one counts once."""
        return self._lock.read(lambda: self._stores.num_edges)

    @property
    def num_rows(self) -> int:
        """The number of rows of a snapshot: 1 + the largest id present, as an end of an edge or
        added by itself."""
        return self._lock.read(self._stores.largest_vertex) + 1

    @property
    def num_vertices(self) -> int:
        """The number of vertices present: those with an edge out or in, or added by themselves.
        Counted once a version, by a pass over the whole graph, as long as a snapshot takes.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 5)
        >>> g.num_vertices, g.num_rows
        (2, 6)
        """
        counted = self._counted
        if counted is None or counted[0] != self.version:
            counted = self._counted = self._lock.read(
                lambda: (self._stores.version, len(capture.vertices(self._stores)))
            )
        return counted[1]

    @property
    def has_predecessors(self) -> bool:
        """Whether `predecessors` can be answered."""
        return self._stores.reverse is not None

    @property
    def levels(self) -> int:
        """The number of levels of the out-store, not counting the head."""
        return self._lock.read(lambda: int(self._stores.out.segments.m))

    @property
    def segments(self) -> int:
        """The number of segments of the out-store: 2 to the power of `levels`, or fewer while the
        last level of a large store is there in part."""
        return self._lock.read(lambda: int(self._stores.out.segments.size.segments))

    @property
    def density(self) -> float:
        """The share of the out-store's slots that are filled, 0 to 1."""
        return self._lock.read(lambda: self._stores.out.density)

    def level_densities(self) -> Array:
        """float64[levels + 1], on the host: the share of the slots that are filled, 0 to 1, of the
        out-store's head and then of each level.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(0, range(48))
        >>> g.level_densities().shape == (g.levels + 1,)
        True
        """
        return self._lock.read(capture.level_densities, self._stores.out)

    @property
    def nbytes(self) -> int:
        """Bytes of all stores, with their buffers and the history of changes."""
        return self._lock.read(lambda: self._stores.nbytes)

    def stats(self) -> Stats:
        """What has been moved so far, over all stores of the graph.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 2], [2, 3])
        >>> g.stats().operations
        2
        """
        self._lock.refuse_broken()
        return self._stores.stats()

    @property
    def unchanged(self) -> Unchanged:
        """The operations so far that were applied and changed nothing, by reason."""
        self._lock.refuse_broken()
        return unchanged_of(self._stores.out.unchanged, self._stores.directed)

    @property
    def expired(self) -> int:
        """The edges that expired since the graph was made or loaded; an undirected one counts once,
        and what is deleted does not.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 2, 3], [2, 3, 4], time=[10, 20, 30])
        >>> g.expire(25)
        >>> g.expired
        2
        """
        self._lock.refuse_broken()
        return expired_of(self._stores.out.unchanged, self._stores.directed)

    def check(self) -> None:
        """Verify every invariant of the stores, slowly. Raises InvariantError, which names the
        broken one; see `lpma.store.lpma.LPMA`.

        >>> lpma.Graph(device="cpu").check()
        """
        self._lock.read(check_stores, self._stores)

    # -- shown, copied and pickled ------------------------------------------------------------

    def __repr__(self) -> str:
        """The graph in one line, with rows where vertices are many and not counted yet.

        >>> lpma.from_edges([1, 2], [2, 3], device="cpu")
        <lpma.Graph on cpu: directed, 3 vertices, 2 edges, version 1>
        """
        return graphs.line(self, self._lock.read, self._stores, self._counted)

    def _repr_html_(self) -> str:
        """The graph as notebooks show it."""
        return graphs.table(self, self._lock.read, self._stores, self._counted)

    def __copy__(self) -> Self:
        """As `copy`: two objects never share a store."""
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __reduce__(self) -> Any:
        """Pickled as the bytes that `save` writes. A graph of the CPU is unpickled on the CPU, one
        of a CUDA device on a device if there is one ("auto")."""
        device, file = "cpu" if self.device == "cpu" else "auto", io.BytesIO()
        self.image().write(file)
        return type(self)._of_bytes, (file.getvalue(), device)

    @classmethod
    def _of_bytes(cls, data: bytes, device: str) -> Self:
        file: Any = io.BytesIO(data)
        return cls.load(file, device)


Snapshot._new_graph = Graph._of_snapshot  # a snapshot, which stands below, cannot import this file
