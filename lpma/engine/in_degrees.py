"""Whether an edge goes into a vertex, of a directed graph on the host that has no in-store.

Idea: without an in-store this takes a scan of the whole graph. If a second question comes in the
same version, or so soon that the history still knows what changed, the in-edges of all ids are
counted once; from then on the counts follow the changes, and a look-up takes less than a
microsecond. On a device, where a scan takes about as long as a launch, no counts are kept; nor
before the kernels are compiled.

`out` is the graph's out-store, `history` its latest changes, `version` the present one.

Invariant: a table holds the counts of version `_version`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Array, array_module
from ..cpu import ready
from ..pma.keys import one_id
from ..store.history import History
from ..store.lpma import LPMA

if TYPE_CHECKING:
    from ..cpu.id_table import IdTable


class InDegrees:
    """What is known of one graph. The caller of a method holds the graph's lock."""

    def __init__(self) -> None:
        self._version = -1  # of the last call, and of the table if there is one
        self._table: IdTable | None = None

    @property
    def nbytes(self) -> int:
        return 0 if self._table is None else self._table.nbytes

    def any_into(self, out: LPMA, history: History, version: int, targets: Array) -> Array:
        """bool[q]: whether an edge goes into each of uint32[q] targets, which never fall."""
        table = self._followed(out, history, version)
        seek = out.backend.has_in_edges
        found: Array = seek(out.segments, targets) if table is None else table.numbers(targets) > 0
        return found

    def numbers_into(self, out: LPMA, history: History, version: int, targets: Array) -> Array:
        """int64[q]: how many edges go into each of uint32[q] targets, which rise."""
        table = self._followed(out, history, version)
        if table is not None:
            return table.numbers(targets)
        xp = array_module(out.segments.counts)
        which, _ = out.backend.scan_targets(out.segments, targets)
        numbers: Array = xp.bincount(which, minlength=len(targets))
        return numbers

    def is_entered(self, out: LPMA, history: History, version: int, vertex: int) -> bool:
        """Whether an edge goes into a vertex."""
        table = self._followed(out, history, version)
        if table is None:
            return bool(out.backend.has_in_edges(out.segments, one_id(vertex))[0])
        return table.number_of(vertex) > 0

    def _followed(self, out: LPMA, history: History, version: int) -> IdTable | None:
        """The counts of the present version; None: not worth having, or no memory for them."""
        if array_module(out.segments.counts) is not np or not ready.are_ready():
            return None
        table, before = self._table, self._version
        if table is not None and before == version:
            return table
        batches = history.since(before)
        # Whatever ends this early leaves no table that is half-way between two versions.
        self._table, self._version = None, version
        if batches is None:
            return None
        try:
            if table is None:
                from ..cpu.id_table import IdTable

                table, batches = IdTable(), []
                table.count(out.backend.slots(out.segments, values=False)[0])
            for keys, inserted in batches:
                table.count(keys, inserted)
        except MemoryError:
            return None
        self._table = table
        return table
