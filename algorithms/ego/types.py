"""What the two methods prepare for their devices, and what each offers on both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from ..views.simple import View

Array = npt.NDArray[Any]  # or cupy.ndarray


@dataclass(frozen=True)
class RankedEgos:
    """A graph prepared for listing under one model and k: rows under ranks (`triangles.ranked`)."""

    model: str
    k: int
    view: View  # the simple view, under ids
    order: Array  # uint32[n]: the vertex of each rank
    rank_of: Array  # uint32[n]
    slots: View  # rows of the neighbours that may be in a context of the row's vertex
    lower: View  # rows of the neighbours of smaller rank

    def row_lengths(self, owners: Array) -> Array:
        """int64[q]: the lengths of the owners' rows of slots. owners: ranks."""
        indptr = self.slots.indptr
        lengths: Array = indptr[owners + 1] - indptr[owners]
        return lengths


@dataclass(frozen=True)
class SizedEgos:
    """A graph prepared for extraction: how large its ego networks are."""

    view: View  # the simple view
    vertices: Array  # int64[n], on the host
    edges: Array  # int64[n], on the host


class ListingModule(Protocol):
    """What `listing_cpu` and `listing_cuda` offer."""

    AT_ONCE: int  # owners of average size that a call takes in hardly more time than one
    HEAD: int  # entries of a row that `absorb` begins with

    def largest_row(self, model: str) -> int:
        """The length of the largest owner's row for which there is memory."""

    def room_bytes(self) -> int:
        """The budget of what is made for owners: their matrices, or copies of their rows."""

    def finish(self) -> None:
        """Wait for what is enqueued: a scorer may be used from any thread and stream."""

    def score(
        self, egos: RankedEgos, owners: Array, starts: Array, scores: Array, label: Array
    ) -> None:
        """Write the scores of owners, int64[q], which are ranks, to scores, int32[q]. With label
        int32[starts[-1]] instead of int32[0], write which context each vertex of owner i's row is
        in, from starts[i] on (int64[q+1]): the place in the row of one of the context's vertices,
        NONE for no context. REQUIRES: rows no longer than `largest_row`."""

    def absorb(self, egos: RankedEgos, owners: Array, starts: Array, rest: Array) -> Array:
        """int32[q]: how many vertices of each owner's row the largest context of its head leaves,
        or NONE if there is no context (see `absorb`). The vertices, by ranks, which rise, are
        written to rest, from starts[i] on. owners: int64[q], ranks, with rows of more than HEAD
        entries; starts: int64[q+1], of their rows one after the other."""


class ExtractModule(Protocol):
    """What `extract_cpu` and `extract_cuda` offer."""

    def prepared(self, s: Any) -> Any:
        """The SizedEgos of a graph, or of a Listed, that lies on the module's device."""

    def score(
        self, egos: Any, owners: Array, model: str, k: int, fewest: int
    ) -> tuple[Array, Array]:
        """int32[q]: how many contexts of at least `fewest` vertices each owner's ego network has.
        int32[sum of degrees]: the component of every neighbour of every owner, by the component's
        smallest vertex, as numbers that rise with the vertices. owners: uint32[q], on the host.
        egos: what `prepared` returned. On the CPU the work is done in the calling thread, and other
        threads may call at the same time."""
