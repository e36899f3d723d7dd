"""A saved graph that is only read: its snapshots come straight from the file, and no store is made.

Idea: a file holds the sorted keys of a graph, which are its rows. So one pass over the file
verifies every checksum and that the contents are a graph's, writes the targets, and lists where
rows begin; little more than the targets is ever in memory. Weights and times are read again when a
snapshot's are first read. If ids are far apart, the keys are read, and their vertices are found by
a table (compact.py).

Requires compiled kernels, and an answer on the host.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arguments.time_views import time_view
from ..arrays import Array
from ..backend import cpu_backend, is_cuda
from ..cpu import ready
from ..cpu.columns import Survey
from ..engine.vertices import check_taken
from ..pma.keys import LOW, Slots
from ..pma.layout import NOTHING
from ..store.sizing import Sizing
from ..time_view import TimeView
from .capture import MAX_SNAPSHOT_BYTES, refuse_large
from .columns import facts_of
from .compact import ROWS_PER_SLOT, of_keys, of_rows
from .deferred import NOT_YET, Columns, DeferredColumns
from .image import GraphFile
from .in_view import in_view
from .snapshot import Snapshot

if TYPE_CHECKING:
    from ..names import Names


def can_read(device: str) -> bool:
    """Whether a saved graph can be read as one on this device."""
    return not is_cuda(device) and ready.get_ready()


class StoredGraph:
    """What `Graph` says of a saved graph on the CPU, only read. Raises as `Graph.load` does."""

    device = "cpu"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = file = GraphFile(path)
        self.version, self.time, options = file.version, file.time, file.options
        self.directed, self.strategy = options.directed, options.strategy
        self.segment_size, self.weight_dtype = options.segment_size, options.dtype
        self.has_times, self.left = options.times, options.left
        self.has_predecessors = options.predecessors or not self.directed
        self._lock = threading.Lock()
        self._num_slots = file.reader.columns["keys"].length
        self._indices = np.empty(self._num_slots, np.uint32)
        self._slots, self._sources, self._starts = self._scanned()
        self.names: Names | None = file.names(file.reader.read, is_late=True)
        self._markers = np.empty(0, np.int64)  # where they are among the slots
        self._added = np.empty(0, np.uint32)
        if self._slots.markers:
            self._leave_out_markers()
        self.num_rows = self._slots.largest + 1
        stored = self._num_slots - self._slots.markers
        self.num_edges = stored if self.directed else (stored + self._slots.loops) // 2
        # Of the store that `Graph.load` would make.
        backend = cpu_backend(True)()
        size_for = Sizing(backend, self.segment_size, options.global_merge).size_for
        sizes = [size_for(self._num_slots, NOTHING)]
        self.levels, self.segments = sizes[0].m, sizes[0].segments
        self.density = self._num_slots / (self.segment_size * self.segments)
        if options.predecessors:
            sizes.append(size_for(len(self._indices), NOTHING))
        # On the CPU a store takes as many bytes as its segments would alone.
        alone = backend.empty(self.segment_size, self.weight_dtype, self.has_times).nbytes
        self.nbytes = sum(alone * size.segments + backend.buffer_bytes for size in sizes)

    def _scanned(self) -> tuple[Slots, Array, Array]:
        """(what the slots are; uint32: sources; int64: where each's row begins). Writes the
        targets."""
        from ..cpu.column_kernels import list_rows

        survey, names, targets = Survey(self.directed), self._file.columns, self._indices

        def see(first: int, *parts: Array) -> Any:
            keys, n = parts[0], len(parts[0])
            into = targets[first : first + n]
            sources, starts = np.empty(n, np.uint32), np.empty(n, np.int64)
            rows = list_rows(keys, into, sources, starts, first)
            found = survey.of(**dict(zip(names, parts, strict=True)))
            return found, sources[:rows].copy(), starts[:rows].copy()

        seen = self._file.reader.scan(names, see)
        slots = survey.joined([found for found, *_ in seen])
        self._file.check(slots)
        sources = np.concatenate([np.empty(0, np.uint32), *(its for _, its, _ in seen)])
        starts = np.concatenate([np.empty(0, np.int64), *(its for *_, its in seen)])
        new = np.append(True, sources[1:] != sources[:-1])[: len(sources)]  # none from two pieces
        return slots, sources[new], starts[new]

    def _leave_out_markers(self) -> None:
        self._markers = at = np.flatnonzero(self._indices == LOW)
        self._added = self._sources[np.searchsorted(self._starts, at, "right") - 1]
        self._indices = np.delete(self._indices, at)
        self._starts = self._starts - np.searchsorted(at, self._starts)

    def take_names(self, names: Names) -> None:
        """See Graph.take_names."""
        check_taken(names, self.names, self.num_rows)
        self.names = names

    @cached_property
    def num_vertices(self) -> int:
        """Vertices present."""
        return (self._of_all_rows if self._has_dense_ids else self.snapshot(True)).num_vertices

    def snapshot(
        self, compact: bool = False, max_bytes: int = MAX_SNAPSHOT_BYTES, *, since: Any = None,
        until: Any = None, half_life: Any = None, now: Any = None,
    ) -> Snapshot:  # fmt: skip
        """See Graph.snapshot."""
        view = time_view(since, until, half_life, now, self.has_times)
        if not compact:
            refuse_large(self.num_rows, max_bytes)
            names = None if self.names is None else self.names.frozen(rows=self.num_rows)
            return self._in_view(view)._with(names=names)
        if self._has_dense_ids:
            return of_rows(self._in_view(view), self.names)
        columns = {name: self._file.reader.read(name) for name in self._file.columns}
        rest = columns.get("weights"), columns.get("times")
        return of_keys(columns["keys"], *rest, self.num_rows, facts_of(self), self.names, view)

    def _in_view(self, view: TimeView | None) -> Snapshot:
        """With all rows."""
        return self._of_all_rows if view is None else in_view(self._of_all_rows, view)

    @property
    def _has_dense_ids(self) -> bool:
        return self.num_rows <= ROWS_PER_SLOT * self._num_slots

    @cached_property
    def _of_all_rows(self) -> Snapshot:
        indptr = np.zeros(self.num_rows + 1, np.int64)
        indptr[self._sources + np.int64(1)] = np.diff(self._starts, append=len(self._indices))
        np.cumsum(indptr, out=indptr)
        columns: Columns = (NOT_YET, NOT_YET) if len(self._file.columns) > 1 else (None, None)
        late = DeferredColumns(self._alone, self._columns) if columns[0] is NOT_YET else None
        return Snapshot._trusted(
            indptr, self._indices, *columns, **facts_of(self), added=self._added, late=late
        )

    def _alone(self, copy: Callable[[], Columns]) -> Columns:
        with self._lock:
            return copy()

    def _columns(self) -> Columns:
        """The weights and times of the edges, read now."""
        found = {}
        for name in self._file.columns[1:]:
            column = self._file.reader.read(name)
            found[name] = np.delete(column, self._markers) if len(self._markers) else column
        return found.get("weights"), found.get("times")
