"""What a backend has that does no more than it must: each of these another one does better.

So whoever asks a backend for something of the seam (protocol.py) gets it. What remains to be known
of one beforehand are a few flags; nobody looks for methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..arrays import to_host
from ..batch.columns import Columns
from ..pma.keys import HALF, LOW, ends_of, one_id
from ..pma.layout import NO_LEVEL, by_place
from ..time_view import TimeView, weights_in_view
from .values import REFUSED, Array, Single

NOTHING_DONE: Single = (REFUSED, 0, 0, 0)
SAMPLED_SEGMENTS = 512


class Defaults:
    """A base of backends. The methods that compute are for stores on the host."""

    is_provisional = False  # a better one may yet come: see `successor`
    overlaps = False  # batches begin before the last has ended: see overlapping.py
    copies_in_pieces = False  # see `column_pieces`
    merges_rows = False  # a snapshot's rows may follow those of the last one: see `rows_with`

    def successor(self) -> Any:
        return None

    def parted_from(self, segment_size: int) -> int:
        """Levels come whole."""
        return NO_LEVEL

    def even_out(self, segments: Any, layer: int, first: int, last: int) -> None:
        raise AssertionError("no level comes in parts")

    def apply_at_once(self, *batch: Any) -> Any:
        return None

    def reach(self, *asked: Any) -> tuple[Array, Array] | None:
        return None

    def rows_with(self, *rows: Any) -> tuple[Array, Array, Array]:
        raise AssertionError("REQUIRES: merges_rows")

    def column_pieces(self, segments: Any, name: str) -> Iterator[Array]:
        raise AssertionError("REQUIRES: copies_in_pieces")

    beside: Any = None  # the batch that lies beside the store while its queries are answered

    def batch_of(self, staged: Any) -> Any:
        """The batch whose queries are asked; None outside a mixed batch."""
        assert staged is None or self.beside is not None, "REQUIRES: sort_beside"
        return None if staged is None else self.beside

    def find_keys(self, segments: Any, keys: Array) -> tuple[Array, Array | None, Array | None]:
        backend: Any = self
        found: tuple[Array, Array | None, Array | None]
        found = backend.find_edges(segments, None, *ends_of(keys), None)
        return found

    # -- one operation at a time --------------------------------------------------------------

    def find_edge(self, segments: Any, src: int, dst: int) -> tuple[bool, float, int]:
        backend: Any = self
        found, weights, times = backend.find_edges(segments, None, one_id(src), one_id(dst), None)
        weight = 0.0 if weights is None else float(weights[0])
        return bool(found[0]), weight, 0 if times is None else int(times[0])

    def find_neighbors(self, segments: Any, src: int) -> Array:
        backend: Any = self
        ids: Array = to_host(backend.neighbors(segments, None, one_id(src), None, False)[1])
        return ids

    def count_neighbors_of(self, segments: Any, src: int) -> Array:
        backend: Any = self
        counts: Array = backend.count_neighbors(segments, None, one_id(src), None)
        return counts

    def update_one(self, *update: Any) -> Single:
        return NOTHING_DONE

    # -- a batch, and what is older than a time --------------------------------------------------

    def stages_unvalidated(self, rows: int) -> bool:
        return False

    def asked(
        self, segments: Any, staged: Any, columns: Columns, places: Array
    ) -> tuple[Array, Array, Array]:
        return columns.src[places], columns.dst[places], places.astype(np.int64, copy=False)

    def wait(self) -> None:
        """Every method returns when its work is done."""

    def since(self, segments: Any, before: int) -> Any:
        """Slots without the edges older than a time, and how many of those were loops."""
        backend: Any = self
        keys, weights, times = backend.slots(segments)
        stays = (times >= before) | ((keys & LOW) == LOW)
        gone, rows = keys[~stays], np.flatnonzero(stays)
        loops = int(np.count_nonzero((gone >> HALF) == (gone & LOW)))
        return (keys[rows], None if weights is None else weights[rows], times[rows]), loops

    def sampled_times(self, segments: Any) -> Array:
        """From some segments, evenly spread, markers included. In a level every segment is a row
        of slots, filled from the left, and their counts are a slice of the window counts with a
        stride, in another order (layout.py). So a level takes a few calls of NumPy."""
        m, size, counts = segments.m, segments.segment_size, segments.counts
        assert segments.times is not None
        leaves = 1 << m
        step = max(1, leaves // SAMPLED_SEGMENTS)
        found = []
        for level, times in enumerate(segments.times):
            first = 0 if level == 0 else 1 << (m - level)
            held = counts[leaves + first :: 2 * first] if first else counts[leaves : leaves + 1]
            times, held = times.reshape(-1, size)[::step], by_place(held)[::step]
            filled = np.arange(size, dtype=held.dtype) < held[:, None]
            found.append(times[filled])
        return np.concatenate(found)

    def any_older(self, segments: Any, times: Array, before: int) -> Callable[[], bool]:
        found = bool((times < before).any())
        return lambda: found

    # -- snapshots ----------------------------------------------------------------------------

    def taker(self) -> Any:
        """Nobody needs to be waited for."""
        return None

    def csr_rows(
        self, segments: Any, num_rows: int, num_edges: int, markers: bool
    ) -> tuple[Array, Array]:
        keys = self._edges(segments, False)[0]
        rows = np.arange(num_rows + 1, dtype=np.uint64) << HALF
        return np.searchsorted(keys, rows), (keys & LOW).astype(np.uint32)

    def csr_columns(
        self, segments: Any, num_edges: int, markers: bool, taker: Any
    ) -> tuple[Array | None, Array | None]:
        return self._edges(segments, True)[1:]

    def csr_view(
        self, segments: Any, num_rows: int, view: TimeView, markers: bool, loops: bool
    ) -> tuple[Array, Array, Array | None, Array, int]:
        keys, weights, times = self._edges(segments, True)
        assert times is not None
        held = view.holds(times)
        keys, times = keys[held], times[held]
        ends = np.arange(num_rows + 1, dtype=np.uint64) << HALF
        return (
            np.searchsorted(keys, ends), (keys & LOW).astype(np.uint32),
            weights_in_view(view, weights, held, times), times,
            int(np.count_nonzero((keys >> HALF) == (keys & LOW))),
        )  # fmt: skip

    def _edges(self, segments: Any, values: bool) -> tuple[Array, Array | None, Array | None]:
        """All slots but the markers."""
        backend: Any = self
        keys, weights, times = backend.slots(segments, values)
        edge = keys & LOW != LOW
        return keys[edge], *(None if c is None else c[edge] for c in (weights, times))
