"""The reading half of the seam: queries and exports. Nothing here changes a store.

Labels in brackets number what the conformance tests hold every backend to.

For all methods:
[R1] REQUIRES: outside a mixed batch `staged` is None, and `limits` means nothing; inside one
     `staged` is the batch that `sort_beside` was given, and `limits` int64[q] are places in it, one
     per query.
[R2] ENSURES: a query with limit p sees what the batch's operations at places below p, one after
     the other, make of what was stored before; without a batch, it sees what is stored.
[R3] ENSURES: no array of the store is written.
Vertices are uint32, keys are src << 32 | dst; results lie where the store is, inputs anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from .values import Array, Segments, StagedBatch

Shape = TypeVar("Shape", bound=Segments, contravariant=True)
Staged = TypeVar("Staged", bound=StagedBatch, contravariant=True)

Columns = tuple[Array, Array | None, Array | None]


class Reading(Protocol[Shape, Staged]):
    """Queries of a store, and copies of what it holds. See the module for R1 to R3."""

    def find_edges(
        self, segments: Shape, staged: Staged | None, src: Array, dst: Array | None,
        limits: Array | None, unseen: bool = False,
    ) -> Columns:  # fmt: skip
        """(found bool[q], weights, times int64[q]) of edges (src[i], dst[i]); dst None: of the
        markers of the vertices `src`.
        [R4] ENSURES: weights and times are 0 where not found; None if the store keeps none. If the
        ids are a caller's that nobody has looked at, `unseen`, raises BatchError if one that lies
        on a device is 2^32 - 1, which is no id. REQUIRES: then there is no batch."""

    def count_neighbors(
        self, segments: Shape, staged: Staged | None, vertices: Array, limits: Array | None,
        unseen: bool = False,
    ) -> Array:  # fmt: skip
        """int64[q].
        [R5] ENSURES: the edges out of each vertex are counted, but not its marker. Raises
        BatchError as `find_edges` does."""

    def neighbors(
        self,
        segments: Shape,
        staged: Staged | None,
        vertices: Array,
        limits: Array | None,
        values: bool,
    ) -> tuple[Array, Array, Array | None, Array | None]:
        """(indptr int64[q+1], ids uint32, weights, times).
        [R6] ENSURES: the neighbours of query i are ids[indptr[i]:indptr[i+1]], rising, without a
        marker. Weights and times are None without `values`, or if the store keeps none. Raises
        BatchError if `vertices` lie on a device and one of them is 2^32 - 1."""

    def reach(
        self, segments: Shape, staged: Any, vertices: Any, steps: Array, limits: Array | None,
        largest_vertex: Callable[[], int],
    ) -> tuple[Array, Array] | None:  # fmt: skip
        """(indptr int64[q+1], ids uint32) of the vertices within 1 … steps[i] steps of vertices[i],
        rising; one is its own only if it is reached again. None if that would take too much memory,
        or where it is not offered within a batch. staged, limits: as for a query (reading.py).
        steps: int64[q], on the host, from 1 on; q > 0. largest_vertex: says the largest id of an
        edge, outside a batch; that may be a scan."""

    def neighbors_from(
        self, segments: Shape, vertex: int, first: int, most: int
    ) -> tuple[Array, Array | None, Array | None]:
        """(ids uint32, weights, times): a piece of one row, at a cost that on the host depends on
        the piece alone. REQUIRES: `vertex` and `first` are less than 2^32.
        [R21] ENSURES: they are what `neighbors` gives of that vertex, without the ids below
        `first`, and without all but `most` of the others, which are the lowest."""

    def has_in_edges(self, segments: Shape, targets: Array) -> Array:
        """bool[q], by a scan of the store. [R7] REQUIRES: targets never fall; they may repeat.
        [R8] ENSURES: whether an edge goes into each of them."""

    def scan_targets(self, segments: Shape, targets: Array) -> tuple[Array, Array]:
        """(index of the target int64[e], source uint32[e]), by a scan. [R15] REQUIRES: targets
        rise, none twice.
        [R9] ENSURES: there is one entry for each edge into any of them, in no order."""

    def largest_vertex(self, segments: Shape) -> int:
        """[R10] ENSURES: the largest id that an edge or a marker has; -1 for an empty store."""

    def csr_rows(
        self, segments: Shape, num_rows: int, num_edges: int, markers: bool
    ) -> tuple[Array, Array]:
        """(indptr int64[num_rows+1], indices uint32[num_edges]).
        [R11] REQUIRES: num_rows is above every id, num_edges is the number of slots without
        the markers, `markers` says whether there are any.
        [R12] ENSURES: row u is the neighbours of u, rising, markers left out."""

    def taker(self) -> Any:
        """For whom a snapshot is taken now: None, or the caller's stream (snapshot.deferred.Taker).
        Equal ones
        may share arrays. One that `waits` can be given them from another thread."""

    def csr_columns(
        self, segments: Shape, num_edges: int, markers: bool, taker: Any
    ) -> tuple[Array | None, Array | None]:
        """(weights, times) of those rows for `taker`, as long as the store has not changed."""

    def slots(self, segments: Shape, values: bool = True) -> Columns:
        """(keys uint64[num_slots], weights, times).
        [R13] ENSURES: all filled slots, markers too, by rising key; without `values` the keys
        alone."""

    def older(self, segments: Shape, before: int) -> tuple[Array, Array]:
        """(keys uint64[n], times int64[n]). REQUIRES: the store keeps times.
        [R17] ENSURES: all edges whose time is less than `before`, without markers, in no order."""

    def since(self, segments: Shape, before: int) -> tuple[Columns, int]:
        """(slots as `slots` has them, int). REQUIRES: as `older`.
        [R20] ENSURES: all filled slots but those that `older` gives, and how many of those are
        loops."""

    def sampled_times(self, segments: Shape) -> Array:
        """int64, on the host. REQUIRES: as `older`.
        [R18] ENSURES: the times of some filled slots, spread over the whole store; of at least one
        if there is one."""

    def any_older(self, segments: Shape, times: Array, before: int) -> Callable[[], bool]:
        """A look at a batch's times, on the host or where the store is; it need not be over when
        this returns. REQUIRES: whoever calls this again has no use for the last answer.
        [R19] ENSURES: what is returned says, when it is called, whether a time was less than
        `before`."""

    def copy_slots(
        self, segments: Shape, keys: Array, weights: Array | None, times: Array | None
    ) -> None:
        """[R14] ENSURES: host arrays of num_slots entries hold what `slots` gives when this
        returns."""

    def host_memory(self, size: int) -> Array:
        """[R16] ENSURES: at least uint8[size] on the host, not initialized, from which copies of
        a growing store are cheap. Raises MemoryError."""
