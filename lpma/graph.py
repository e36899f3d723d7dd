"""Graph: what users see. An out-store, an in-store where predecessors are asked for, versions.

Every change is one batch: `insert`, `delete` … are batches of one kind. A batch is validated
whole, applied whole (opera.py) and raises the version by one; bad input changes nothing.

Arrays come from the host or from a device: on a graph of that device, edge updates and queries use
them where they lie, after what the caller's current stream has under way.

Threads: one writer at a time, a second is refused with ConcurrentWrite; queries from other
threads wait for the batch under way. Snapshots are copies and may be read from anywhere.

Interrupts: Ctrl-C and SIGTERM wait for the batch under way, which is then applied. What else ends
a batch half-way breaks the graph: every later call raises BrokenStore (guard.py).
"""

from __future__ import annotations

import os
import time as clock_module
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from . import contents, query
from .answers import NO_ANSWERS, Answers
from .arrays import array_module, finish
from .backend import open_backend
from .backend.values import BOTH, FORWARD
from .batch import (
    MAX_HOPS,
    Batch,
    Changes,
    Columns,
    Edges,
    Kind,
    Neighbors,
    Touched,
    last_update,
    now_ms,
)
from .check import check_graph
from .coerce import vertex_column
from .contents import Image
from .errors import AnswersTooLarge, BatchError, OutOfMemory, StoreTooLarge
from .guard import Guard
from .history import History
from .opera import Outcome, Stores, apply_in_parallel, apply_serially
from .snapshot import Snapshot
from .stats import Stats
from .store import LPMA, STRATEGIES
from .unchanged import Unchanged, unchanged_of

Array = npt.NDArray[Any]

WEIGHTS = ("float32", "float64", None)
MAX_SNAPSHOT_BYTES = 1 << 31  # of indptr: 2^28 vertices


class Graph:
    """A dynamic graph of weighted, timestamped edges (store.py says what an append does). It is
    made empty, `g = lpma.Graph()`, and filled by `g.insert(src, dst)`; `Graph.load` reads a file.

    directed      False keeps both directions of an edge, counts it once
    predecessors  keep an in-neighbour store, which `predecessors` needs
    weight        "float32" (whole numbers are exact up to 2^24), "float64" (2^53; a sixth more
                  memory) or None: an edge is present or not
    strategy      "hybrid", "bottom-up" or "top-down": which windows a batch rebalances
    device        "auto" (a CUDA device where CuPy and one are there), "cpu", "cuda" or "cuda:N";
                  on CUDA a store has up to 2^31 slots, on the CPU up to 2^29 segments
    segment_size  slots a segment, a power of two from 2 to 1024
    times         keep the time of each edge's last operation
    global_merge  "auto": merge the whole store in one pass where that is cheaper; "never"
    clock         seconds, for the hybrid strategy and the statistics
    """

    def __init__(
        self,
        directed: bool = True,
        *,
        predecessors: bool = False,
        weight: str | None = "float32",
        strategy: str = "hybrid",
        device: str = "auto",
        segment_size: int = 32,
        times: bool = True,
        global_merge: str = "auto",
        clock: Callable[[], float] = clock_module.perf_counter,
    ) -> None:
        _refuse_contents(directed)
        for name, value in (("predecessors", predecessors), ("times", times)):
            _one_of(name, value, (True, False))
        _one_of("weight", weight, WEIGHTS)
        _one_of("strategy", strategy, STRATEGIES)
        _one_of("global_merge", global_merge, ("auto", "never"))
        whole = isinstance(segment_size, int | np.integer)
        if not whole or segment_size not in [1 << i for i in range(1, 11)]:
            raise BatchError(f"segment_size: a power of two from 2 to 1024, not {segment_size}")
        self.device, self._place, backend = open_backend(device)
        self.directed, self.strategy = bool(directed), strategy
        self.segment_size, self.global_merge = int(segment_size), global_merge
        self.weight_dtype = None if weight is None else np.dtype(weight)
        self.has_times = bool(times)

        def store() -> LPMA:
            return LPMA(backend(), self.segment_size, self.weight_dtype, self.has_times, strategy,
                        global_merge, clock)  # fmt: skip

        self._stores = Stores(store(), store() if directed and predecessors else None, directed)
        self._guard = Guard(self._place, self._stores)
        self._history = History()
        self.version = 0
        self.time = 0

    # -- changes ------------------------------------------------------------------------------

    def insert(self, src: Any, dst: Any, weight: Any = 1.0, time: Any = None) -> None:
        """Append edges, in order: arrays of one length, or scalars, which are for every row. Raises
        BatchError.

        An append of weight w to an absent edge makes it, where w > 0, and else does nothing. To an
        edge of weight v it makes v + w of it; below 0 the edge is removed, at exactly 0 it stays:

        >>> g = Graph(device="cpu")
        >>> g.insert([0, 0], [1, 1], [5.0, -3.0])    # 5, then 2
        >>> g.insert([0, 0], [2, 2], [-3.0, 5.0])    # nothing, then 5
        >>> g.insert([0, 0], [3, 3], [2.0, -3.0])    # 2, then removed
        >>> g.edges([0, 0, 0], [1, 2, 3])
        Edges(found=array([ True,  True, False]), weight=array([2., 5., 0.], ...

        Weights are rounded to the graph's dtype, and so is each sum: whole numbers are exact up to
        2^24 in float32 and up to 2^53 in float64. There, adding 1 changes nothing. What changes
        nothing, and why, is counted: see `unchanged`. Without weights (`weight=None`) an append of
        w > 0 makes the edge, of w < 0 removes it, and of 0 does nothing."""
        self.apply(Columns.edges(Kind.APPEND, src, dst, weight, time))

    def delete(self, src: Any, dst: Any, time: Any = None) -> None:
        """Delete edges whatever their weight; absent ones are nothing. Raises BatchError."""
        self.apply(Columns.edges(Kind.DELETE, src, dst, None, time))

    def add_vertices(self, v: Any, time: Any = None) -> None:
        """Make every v a vertex, edges or not."""
        self.apply(Columns.edges(Kind.ADD_VERTEX, v, None, None, time))

    def remove_vertices(self, v: Any, time: Any = None) -> None:
        """Remove every v with all its edges, in-edges too."""
        self.apply(Columns.edges(Kind.REMOVE_VERTEX, v, None, None, time))

    def apply(self, batch: Batch | Columns, opera: bool = True) -> Answers:
        """Apply one mixed batch and answer its queries, each as of its place in it.

        With `opera` False the batch is cut at every query and run serially: the paper's
        baseline. Raises BatchError and changes nothing on bad input; OutOfMemory where memory
        does not suffice, the batch unapplied (StoreTooLarge: no memory would), or AnswersTooLarge,
        the updates applied. What else it raises but ConcurrentWrite has broken the graph."""
        columns = batch.columns() if isinstance(batch, Batch) else batch
        if not isinstance(columns, Columns):
            raise BatchError(f"apply takes a Batch or its columns, not {type(batch).__name__}")
        if not columns.checked:
            columns = self._usable(columns)
        served = columns.edges_only or self._stores.reverse is not None
        if not served and (columns.kind == Kind.PREDECESSORS).any():
            raise BatchError(_NO_PREDECESSORS)
        outcome = self._guard.write(self._applied, columns, opera)
        if outcome.failure is not None:
            raise AnswersTooLarge(
                f"the updates are applied, but memory ran out after ({outcome.failure}): "
                "ask for less at once"
            ) from outcome.failure
        return outcome.answers

    def _applied(self, columns: Columns, opera: bool) -> Outcome:
        """Apply and note a batch. The caller holds the graph to write."""
        edges_only, time = columns.edges_only, columns.time
        if not columns.checked and columns.on_device:
            self._place.take_in()
        if time is None:
            time = np.array([now_ms()])
        try:
            last = len(columns.kind) - 1 if edges_only else last_update(columns.kind)
            outcome = self._apply(columns, time, opera)
        except StoreTooLarge:
            raise
        except MemoryError as error:
            raise OutOfMemory(
                f"the batch is unapplied ({error}): cut it, or free memory"
            ) from error
        self._note(outcome, int(time[min(last, len(time) - 1)]) if last >= 0 else self.time)
        return outcome

    def _usable(self, columns: Columns) -> Columns:
        """Unchecked columns where the stores can read them; checked, unless locating does that."""
        columns = columns.moved(self._place.near)
        if self._stores.out.backend.validates and columns.edges_only:
            return columns
        given = columns.kind, columns.src, columns.dst, columns.weight, columns.time
        valid = Columns.validated(*given)
        kept = valid.kind, valid.src, valid.dst, valid.weight, valid.time
        as_given = all(a is b for a, b in zip(given, kept, strict=True))
        return replace(valid, block=columns.block) if as_given else valid

    def _apply(self, columns: Columns, time: Array, in_parallel: bool) -> Outcome:
        stores = self._stores
        staged = stores.out.backend.stage(columns, time, self.weight_dtype)
        if in_parallel and stores.into is None and columns.edges_only:
            direction = FORWARD if self.directed else BOTH
            return Outcome(NO_ANSWERS, [stores.out.apply(columns, staged, direction)])
        apply = apply_in_parallel if in_parallel else apply_serially
        outcome = apply(stores, columns, staged)
        for store, _ in stores.all:
            store.end_batch(staged)
        return outcome

    def _note(self, outcome: Outcome, time: int) -> None:
        """What an applied batch means for the graph as a whole."""
        self._stores.out.written = True  # a batch of queries alone is noted too
        self.version += 1
        self._stores.out.stats.batches += 1
        for changed in outcome.changes:
            if changed is None:
                self._history.forget(self.version)
            else:
                self._history.add(self.version, *changed)
        self.time = time

    # -- queries ------------------------------------------------------------------------------

    def _vertices(self, values: Any, name: str) -> Array:
        """Vertices asked for, where the stores can read them."""
        return vertex_column(self._place.near(values), name)

    def edges(self, src: Any, dst: Any) -> Edges:
        """Edges (src[i], dst[i]): found bool[q], weight, time int64[q]."""
        u, v = self._vertices(src, "src"), self._vertices(dst, "dst")
        if len(u) != len(v):
            raise BatchError(f"dst has {len(v)} rows, src has {len(u)}: they must agree")
        return self._guard.read(query.edges, self._stores.out, None, u, v, None)

    def successors(self, u: Any) -> Neighbors:
        """Targets of each u's edges, sorted by id."""
        vertices = self._vertices(u, "u")
        return self._guard.read(query.neighbors, self._stores.out, None, vertices, None)

    def predecessors(self, v: Any) -> Neighbors:
        """Sources of each v's edges, sorted by id. Needs predecessors=True (or undirected)."""
        store = self._stores.reverse
        if store is None:
            raise BatchError(_NO_PREDECESSORS)
        vertices = self._vertices(v, "v")
        return self._guard.read(query.neighbors, store, None, vertices, None)

    def hops(self, u: Any, k: int) -> Neighbors:
        """Distinct vertices within 1 … k steps of each u, itself only if reached again."""
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= MAX_HOPS:
            raise BatchError(f"k: the number of steps goes from 1 to {MAX_HOPS}, not {k!r}")
        vertices = self._vertices(u, "u")
        steps = np.full(len(vertices), k, np.int64)
        return self._guard.read(query.hops, self._stores.out, None, vertices, steps, None)

    def degree(self, u: Any) -> Array:
        """int64[q]: the number of successors; 0, too, of a vertex that is not there, which
        `has_vertices` tells."""
        vertices = self._vertices(u, "u")
        return self._guard.read(query.degrees, self._stores.out, None, vertices, None)

    def has_vertices(self, v: Any) -> Array:
        """bool[q]: whether v was added, or has an edge out or in."""
        vertices, stores = self._vertices(v, "v"), self._stores
        return self._guard.read(
            query.present_vertices, stores.out, stores.into, stores.directed, None, vertices, None
        )

    def changes(self, since: int) -> Changes | None:
        """Net edges inserted and removed since a version; None where that is no longer known.
        An undirected edge is named once, src <= dst."""
        if not 0 <= since <= self.version:
            raise BatchError(f"since: a version from 0 to {self.version}, not {since}")
        return self._guard.read(self._changes, since)

    def _changes(self, since: int) -> Changes | None:
        self._stores.out.backend.wait()
        return self._history.net(since, self.directed)

    def touched(self, since: int) -> Touched | None:
        """The edges touched since a version, on the graph's device and as of one version: for who
        keeps a copy of the graph. None where they are no longer known."""
        return self._guard.read(self._touched, since)

    def _touched(self, since: int) -> Touched | None:
        out = self._stores.out
        out.backend.wait()
        batches = self._history.since(since)
        if batches is None:
            return None
        xp = array_module(batches[0][0] if batches else out.segments.counts)
        keys = xp.concatenate([xp.empty(0, np.uint64), *[keys for keys, _ in batches]])
        there = xp.concatenate([xp.empty(0, np.bool_), *[inserted for _, inserted in batches]])
        if not bool(there.all()):  # else each was inserted, and none deleted
            src, dst = query.ends_of(keys)
            if self.directed:
                src, dst = xp.concatenate((src, dst)), xp.concatenate((dst, src))
            there = query.edges(out, None, src, dst, None).found
            if self.directed:
                there = there[: len(keys)] | there[len(keys) :]
        finish(keys)  # the history may let go of what was read, for the store to use again
        return Touched(keys, there, self.version, out.largest_vertex() + 1)

    # -- figures ------------------------------------------------------------------------------

    def count_edges(self) -> int:
        """See num_edges. For whoever holds the lock."""
        out = self._stores.out
        stored = out.num_slots - out.num_markers
        return stored if self.directed else (stored + out.num_loops) // 2

    @property
    def num_edges(self) -> int:
        """Edges, markers left out; an undirected one counts once."""
        return self._guard.read(self.count_edges)

    @property
    def num_rows(self) -> int:
        """The rows of a snapshot: 1 + the largest id present, as an end of an edge or added by
        itself."""
        return self._guard.read(self._stores.out.largest_vertex) + 1

    @property
    def num_vertices(self) -> int:
        """The number of *rows*, as `num_rows`; of the vertices present, `count_vertices()`."""
        return self.num_rows

    def count_vertices(self) -> int:
        """The vertices present: with an edge out or in, or added by themselves. Reads the keys of
        the whole graph, which takes about as long as a snapshot."""
        return self._guard.read(contents.count_vertices, self._stores.out)

    @property
    def has_predecessors(self) -> bool:
        return self._stores.reverse is not None

    @property
    def levels(self) -> int:
        """Levels beside the head."""
        return self._guard.read(lambda: int(self._stores.out.segments.m))

    @property
    def segments(self) -> int:
        return 1 << self.levels

    @property
    def density(self) -> float:
        """Filled slots over slots of the out-store."""
        return self._guard.read(lambda: self._stores.out.density)

    @property
    def nbytes(self) -> int:
        """Bytes of all stores, buffers included; the history of changes beside."""
        return self._guard.read(self._nbytes)

    def _nbytes(self) -> int:
        return sum(store.nbytes for store, _ in self._stores.all) + self._history.nbytes

    def stats(self) -> Stats:
        """What was moved so far, over all stores of the graph."""
        self._guard.refuse_broken()
        out, into = self._stores.out, self._stores.into
        return out.stats.added(into.stats if into else Stats())

    @property
    def unchanged(self) -> Unchanged:
        """The operations so far that were applied and changed nothing, by why."""
        self._guard.refuse_broken()
        return unchanged_of(self._stores.out.unchanged, self.directed)

    # -- whole contents -----------------------------------------------------------------------

    def snapshot(self, compact: bool = False, max_bytes: int = MAX_SNAPSHOT_BYTES) -> Snapshot:
        """The state now, in CSR. Raises SnapshotTooLarge where `indptr` would pass `max_bytes`;
        `compact` renumbers the vertices present to 0 … n - 1 and returns their ids with it."""
        return self._guard.read(contents.snapshot, self, self._stores.out, compact, max_bytes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to one file, atomically. See persist.py for the format."""
        self.image().save(path)

    def image(self, old: Image | None = None) -> Image:
        """What `save` would write now, copied: `image.save(path)` may be called later, and from
        any thread. `old`, an image no longer needed, gives its memory."""
        return self._guard.read(contents.image, self, self._stores.out, old)

    def __reduce__(self) -> Any:
        """A copy of the object would be a second face of the same store."""
        raise TypeError(
            "a Graph is neither copied nor pickled: use save(path) and Graph.load(path)"
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str = "auto") -> Graph:
        """The graph that `save` wrote. Raises FormatError on any other file."""
        return contents.load(cls, path, device)

    def fill(self, keys: Array, weights: Array | None, times: Array | None) -> None:
        """Replace the contents by sorted slots, as `save` writes them; no history remains."""
        self._guard.write(self._filled, keys, weights, times)

    def _filled(self, keys: Array, weights: Array | None, times: Array | None) -> None:
        columns: list[tuple[Any, Any, Any]] = [(keys, weights, times)]
        if self._stores.into is not None:
            edge = (keys & query.LOW) != query.LOW
            back = ((keys & query.LOW) << query.HALF) | (keys >> query.HALF)
            order = np.flatnonzero(edge)[np.argsort(back[edge], kind="stable")]
            held = [None if values is None else values[order] for values in (weights, times)]
            columns.append((back[order], held[0], held[1]))
        stores = [store for store, _ in self._stores.all]
        built = [store.build(*given) for store, given in zip(stores, columns, strict=True)]
        for store, segments, given in zip(stores, built, columns, strict=True):
            store.load(segments, given[0])
        self._history.forget(self.version)

    def check(self) -> None:
        """Verify every invariant of the stores; raises InvariantError naming the broken one."""
        self._guard.read(check_graph, self, self._stores)


_NO_PREDECESSORS = "predecessors need an in-neighbour store: make the graph with predecessors=True"


def _refuse_contents(directed: Any) -> None:
    """What is given first is whether the graph is directed: edges taken for that would be lost."""
    if isinstance(directed, bool | np.bool_):
        return
    if isinstance(directed, str | os.PathLike):
        raise BatchError(f"directed: True or False, not {directed!r}: lpma.Graph.load reads a file")
    raise BatchError(
        f"directed: True or False, not a {type(directed).__name__}: a graph is made empty and then "
        "filled: g = lpma.Graph(); g.insert(src, dst)"
    )


def _one_of(name: str, value: Any, known: tuple[Any, ...]) -> None:
    plain = isinstance(value, str | bool | np.bool_ | np.dtype | None)
    if not plain or value not in known:
        raise BatchError(f"{name}: one of {', '.join(map(repr, known))}, not {value!r}")
