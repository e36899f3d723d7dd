"""Graph: what users see. Here it is made, loaded, changed and copied out whole.

Every change is one batch: `insert`, `delete` … are batches of one kind. A batch is validated whole
(coerce.py), applied whole (opera.py) and raises the version by one; bad input changes nothing.

Arrays come from the host or from a device: on a graph of that device, edge updates and queries use
them where they lie, after the work already enqueued on the caller's current stream.

Threads: one writer at a time; a second is refused with ConcurrentWrite; queries from other threads
wait for the batch under way. Snapshots are copies and may be read from anywhere.

Interrupts: Ctrl-C and SIGTERM wait for the batch under way, which is then applied. Anything else
that ends a batch half-way breaks the graph: every later call raises BrokenStore (guard.py).
"""

from __future__ import annotations

import io
import os
import time as clock_module
from collections.abc import Callable
from typing import Any

from . import contents, image
from .answers import Answers
from .arguments import integer, shown, truth
from .arguments import path as argument_path
from .as_given import update
from .backend import check_device, open_backend
from .batch import Columns, Kind
from .builder import Batch
from .check import check_stores
from .coerce import NO_VERTEX
from .errors import AnswersTooLarge, BatchError
from .graph_named import dictionary_for
from .graph_windows import GraphWindows
from .guard import Guard
from .image import Image
from .one import One, are_plain
from .opera import apply
from .options import Options
from .snapshot import Snapshot
from .store import LPMA
from .stores import Stores
from .usable import apply_pinned, refuse_unanswerable, usable

APPEND, DELETE, ADD_VERTEX = int(Kind.APPEND), int(Kind.DELETE), int(Kind.ADD_VERTEX)
MAX_SNAPSHOT_BYTES = 1 << 31  # of indptr: 2^28 vertices


class Graph(GraphWindows):
    """A dynamic graph of weighted, timestamped edges between vertices 0 … 2^32 - 2. It is made
    empty and filled by `insert`; `Graph.load` reads a file.

    directed      False keeps both directions of an edge, and counts it once
    predecessors  keep an in-neighbour store, which `predecessors` needs
    weight        "float32" (whole numbers are exact up to 2^24), "float64" (2^53; a sixth more
                  memory) or None: an edge is present or not
    strategy      "hybrid", "bottom-up" or "top-down": which windows a batch rebalances
    device        "auto" (a CUDA device if there is one), "cpu", "cuda" or "cuda:N"; on CUDA a store
                  has up to 2^31 slots, on the CPU up to 2^29 segments
    segment_size  slots per segment, a power of two from 2 to 1024
    times         keep the time of each edge's last operation
    global_merge  "auto": a load is merged in one pass, and on CUDA whatever is cheaper so; there
                  levels of large stores come in quarters; "never": all as in the paper
    names         vertices go by names, text or integers of 64 bits; `names` is the dictionary
    clock         seconds, for the hybrid strategy and the statistics

    `device`, `directed`, `strategy`, `segment_size`, `global_merge`, `weight_dtype` (or None) and
    `has_times` say what it was made with. Raises BatchError for a bad option, DeviceError.

    >>> g = lpma.Graph(device="cpu")
    >>> g.insert([0, 1, 1], [1, 2, 3], weight=[0.5, 2.0, 1.0])
    >>> g.successors(1).ids
    array([2, 3], dtype=uint32)
    >>> g.num_edges, g.version
    (3, 1)
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
        names: bool = False,
        clock: Callable[[], float] = clock_module.perf_counter,
    ) -> None:
        if not callable(clock):
            raise BatchError(f"clock: a function that returns seconds, not {shown(clock)}")
        options = Options.checked(
            directed=directed, predecessors=predecessors, weight=weight, strategy=strategy,
            segment_size=segment_size, times=times, global_merge=global_merge, names=names,
        )  # fmt: skip
        self.device, self._place, backend = open_backend(device)
        self._options = options
        self.directed, self.strategy = options.directed, options.strategy
        self.segment_size, self.global_merge = options.segment_size, options.global_merge
        self.weight_dtype, self.has_times = options.weight_dtype, options.times

        def store() -> LPMA:
            return LPMA(backend(), options.segment_size, options.weight_dtype, options.times,
                        options.strategy, options.global_merge, clock)  # fmt: skip

        into = store() if options.predecessors else None
        self._stores = Stores(store(), into, options.directed, options.weight_dtype, self._place)
        self._one = One(self._stores)
        self.names = dictionary_for(options)
        self._guard = Guard(self._place, self._stores, self)

    # -- changes ------------------------------------------------------------------------------

    def insert(self, src: Any, dst: Any, weight: Any = 1.0, time: Any = None) -> None:
        """Append edges, in order. Raises as `apply` does. No thread may write to the arrays until
        this returns: the graph could come to hold what nobody has validated. So with every call.

        src, dst  vertices: integers, as arrays of one length n or as scalars, which are every row's
        weight    float[n], at most 1e30 in size, or one number for every row
        time      int64[n], milliseconds since 1970, or datetime64[n] or datetimes (UTC where they
                  have no zone), or one for every row; None: now

        An append of weight w to an absent edge makes it if w > 0, and otherwise does nothing.
        An edge of weight v gets weight v + w; below 0 it is removed, at exactly 0 it stays:

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([0, 0], [1, 1], [5.0, -3.0])    # 5, then 2
        >>> g.insert([0, 0], [2, 2], [-3.0, 5.0])    # nothing, then 5
        >>> g.insert([0, 0], [3, 3], [2.0, -3.0])    # 2, then removed
        >>> g.edges([0, 0, 0], [1, 2, 3]).weight
        array([2., 5., 0.], dtype=float32)

        Weights are rounded to the graph's dtype, and so is each sum: whole numbers are exact up to
        2^24 in float32 and up to 2^53 in float64. From there on, adding 1 changes nothing.
        Operations that change nothing are counted by reason: see `unchanged`. Without weights
        (`weight=None`) an append of w > 0 makes the edge, w < 0 removes it, 0 does nothing."""
        if self.names is not None:
            self._update_by_name(Kind.APPEND, src, dst, weight, time)
        elif type(src) is type(dst) is int and are_plain(src, dst, weight, time):
            self._guard.write(self._one.update, APPEND, src, dst, float(weight), time)
        elif self.device == "cpu":
            self.apply(Columns.edges(Kind.APPEND, src, dst, weight, time))
        else:
            update(self.apply, self._stores, Kind.APPEND, src, dst, weight, time)

    def delete(self, src: Any, dst: Any, time: Any = None) -> None:
        """Delete edges whatever their weight; absent ones stay absent. All else is as for `insert`.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 1], [2, 3])
        >>> g.delete(1, [2, 4])
        >>> g.num_edges
        1
        """
        if self.names is not None:
            self._update_by_name(Kind.DELETE, src, dst, 0.0, time)
        elif type(src) is type(dst) is int and are_plain(src, dst, 0.0, time):
            self._guard.write(self._one.update, DELETE, src, dst, 0.0, time)
        elif self.device == "cpu":
            self.apply(Columns.edges(Kind.DELETE, src, dst, None, time))
        else:
            update(self.apply, self._stores, Kind.DELETE, src, dst, None, time)

    def add_vertices(self, v: Any, time: Any = None) -> None:
        """Make every v a vertex, whether it has edges or not. v: integers, an array or a scalar;
        time: as for `insert`. Raises as `apply` does.

        >>> g = lpma.Graph(device="cpu")
        >>> g.add_vertices([3, 5])
        >>> g.has_vertices([3, 4])
        array([ True, False])
        """
        if self.names is not None:
            self._update_by_name(Kind.ADD_VERTEX, v, None, 0.0, time)
        elif type(v) is int and are_plain(v, v, 0.0, time):
            self._guard.write(self._one.update, ADD_VERTEX, v, NO_VERTEX, 0.0, time)
        else:
            self.apply(Columns.edges(Kind.ADD_VERTEX, v, None, None, time))

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
        self.apply(self._edges(Kind.REMOVE_VERTEX, v, None, None, time))

    def apply(self, batch: Batch | Columns) -> Answers:
        """Apply one mixed batch and answer its queries, each as of its place in it.

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
        >>> batch.append(1, 2, 0.5)
        >>> query = batch.degree(1)
        >>> batch.append(1, 3)
        >>> lpma.Graph(device="cpu").apply(batch)[query]
        array([1])
        """
        columns = batch
        if isinstance(batch, Batch):
            columns = batch.columns(self.names is not None)
            columns.checked = True  # just now, and nobody else has them
        if not isinstance(columns, Columns):
            raise BatchError(f"batch: a Batch or its columns, not {shown(batch)}")
        if self.names is not None or type(columns) is not Columns or columns.looked_up:
            columns = self._named(columns)
        run = apply if self.names is None else self._apply_named
        if columns.block is not None and not columns.checked:
            what = apply_pinned, run, self._stores, columns
            outcome = self._guard.write(*what, overlaps=self.names is None)
        else:
            if not columns.checked:
                columns = usable(self._stores, columns)
            if not columns.edges_only:
                refuse_unanswerable(self._stores, columns)
            overlaps = columns.edges_only and self.names is None
            outcome = self._guard.write(run, self._stores, columns, overlaps=overlaps)
        if outcome.failure is not None:
            raise AnswersTooLarge(
                f"the updates are applied, but memory ran out after ({outcome.failure}): "
                "ask for less at once"
            ) from outcome.failure
        return outcome.answers

    # -- whole contents -----------------------------------------------------------------------

    def snapshot(self, compact: bool = False, max_bytes: int = MAX_SNAPSHOT_BYTES) -> Snapshot:
        """The state now, in CSR: a copy, on the graph's device. There is a row for every id up to
        the largest present; `compact` renumbers the vertices present to 0 … n - 1 and returns their
        ids with it.

        Raises SnapshotTooLarge if `indptr`, 8 bytes per row, would exceed `max_bytes`, BatchError
        on an argument of another type, and OutOfMemory.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([0, 0, 2], [1, 2, 0])
        >>> s = g.snapshot()
        >>> s.indptr, s.indices
        (array([0, 2, 2, 3]), array([1, 2, 0], dtype=uint32))
        """
        return self.begin_snapshot(compact, max_bytes)()

    def begin_snapshot(
        self, compact: bool = False, max_bytes: int = MAX_SNAPSHOT_BYTES
    ) -> Callable[[], Snapshot]:
        """Copy the state now; the function that is returned makes the snapshot of the copy, in any
        thread, while the graph goes on. So whoever applies the batches waits for the copy alone,
        and not until the vertices are renumbered. Arguments and errors: as of `snapshot`.

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
        read = self._guard.read
        return read(contents.begin_snapshot, self._stores, self.names, compact, max_bytes, read)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to one file, atomically. Raises PathError if `path` cannot be written,
        and OSError if the disk fails. See persist.py for the format.

        >>> import tempfile
        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 2)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     g.save(f"{directory}/g.lpma")
        ...     lpma.Graph.load(f"{directory}/g.lpma", device="cpu").num_edges
        1
        """
        where = os.fsdecode(argument_path(path, "path"))
        self.image().save(where)

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
        return self._guard.read(image.take, self._stores, self._options, self.names, old)

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str = "auto") -> Graph:
        """The graph that `save` wrote, on a device of this machine; see `save`. Raises FormatError
        on any other file, OSError if it cannot be read, DeviceError, and OutOfMemory."""
        check_device(device)
        if not isinstance(path, io.BytesIO):  # what is unpickled
            path = os.fsdecode(argument_path(path, "path"))
        saved = image.read(path)
        graph = cls(device=device, **saved.options.header())
        stores = graph._stores
        stores.version, stores.time, graph.names = saved.version, saved.time, saved.names
        graph._guard.write(stores.fill, saved.keys, saved.weights, saved.times, saved.slots)
        return graph

    def check(self) -> None:
        """Verify every invariant of the stores, slowly. Raises InvariantError, which names the
        broken one; see `lpma.store.LPMA`.

        >>> lpma.Graph(device="cpu").check()
        """
        self._guard.read(check_stores, self._stores)
