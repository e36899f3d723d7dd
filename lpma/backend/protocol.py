"""The seam between a store and the device that its arrays lie on, as a specification.

Host logic (strategies, bounds, expansion, statistics) is written once, in lpma.py
and the files beside it, against these protocols. A backend is not a second store: it sorts a batch,
locates it, plans and moves it, answers queries and exports, and knows nothing of why. values.py
says what passes between the two. tests/lpma/test_conformance.py holds every backend to the numbered
lines, and a slow one, tests/support/slow_backend.py, does the least that they ask.

Two rules stand above all methods.
[A1] Planning publishes nothing. Until `commit`, the published segments are as they were, but for
     one liberty: `locate` and `plan` may write the counts of the segments that they plan for, if
     `written` says so from then on and `rollback` takes it back. In return the host reads none of a
     store's arrays from `locate` until `commit` or `rollback`.
[A2] What can fail, fails before the first write. `commit` and `shrink` allocate nothing that
     `reserve` has not. If another method raises MemoryError, BatchError or
     StoreTooLarge, everything published is as it was, after `rollback` if a batch is located.

A backend serves one store and one thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np

from ..batch.columns import Columns
from ..pma.counters import Stats
from ..pma.layout import Size
from ..time_view import TimeView
from .values import (
    Array,
    Committed,
    Costs,
    Implied,
    KeyRows,
    Located,
    Plan,
    Segments,
    Single,
    SlotColumns,
    SlotSource,
    StagedBatch,
)

Shape = TypeVar("Shape", bound=Segments)
Staged = TypeVar("Staged", bound=StagedBatch)
Keys = TypeVar("Keys", bound=KeyRows)
Found = TypeVar("Found", bound=Located)
Result = TypeVar("Result")
Windows = TypeVar("Windows", bound=Plan)
Stored = TypeVar("Stored", bound=Segments, contravariant=True)
Asking = TypeVar("Asking", bound=StagedBatch, contravariant=True)


class Shaping(Protocol[Shape]):
    """Whole stores: made, grown by a level or a part of one, shrunk by a level."""

    way_out: str  # what a user can do where `most_levels` is not enough

    def most_levels(self, segment_size: int) -> int:
        """The highest m that the backend's arithmetic can number. The host never exceeds it."""

    def parted_from(self, segment_size: int) -> int:
        """The first level that comes in parts (layout.py), 3 or more. Above `most_levels` where the
        backend keeps whole levels alone."""

    def empty(
        self, segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool
    ) -> Shape:  # fmt: skip
        """[S1] ENSURES: one segment with nothing in it, and the columns asked for."""

    def build(
        self, segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool, size: Size,
        slots: SlotSource,
    ) -> Shape:  # fmt: skip
        """A store with the columns asked for, filled in one pass over n slots, of which a piece is
        in memory at a time. Raises MemoryError, and what `slots` does.
        [S2] REQUIRES: the keys strictly rise, or `slots` raises; and the root has room for n.
        [S3] ENSURES: of the s segments that are there, number k in key order holds slots
        k n / s … (k + 1) n / s - 1; one that is not there has its successor's fence."""

    def expand(self, segments: Shape, size: Size) -> Shape:
        """A level more, or a part of one. REQUIRES: `size` is the next larger one (`Size.larger`),
        whole where `parted_from` says so; nothing is planned for `segments`.
        [S4] ENSURES: the same slots in the same arrays. With a level more rank i is rank 2 i, and
        every segment of odd rank is empty and has its successor's fence, those that are not there
        too. With a part more the tree is the same. `segments` is as it was."""

    def even_out(self, segments: Shape, layer: int, first: int, last: int) -> None:
        """A published store has got a part of a level more. REQUIRES: nothing is located;
        `layer` is layout.even_layer, and not 0.
        [S7] ENSURES: the same slots, windows first … last - 1 of that layer, counted from the left,
        each spread evenly. Raises MemoryError, and then nothing is written."""

    def shrink(self, segments: Shape, most: Array) -> tuple[Shape, Array]:
        """One level less, the last whole. Returns (the store, windows rebalanced by layer
        int64[m]). most: int64[m], what windows of the smaller store may hold. REQUIRES: its root
        has room.
        [S5] ENSURES: the same slots; a pair of segments that fits into one shares it, one that
        does not is spread evenly with what is around it. `segments` must not be used any more."""


class Writing(Protocol[Shape, Staged, Keys, Found, Windows]):
    """One batch: staged, made into keys, located, planned, then committed or rolled back.

    `written` says that what is published may be part of a batch: set before the first such write,
    cleared by `rollback`, and by the host when the batch is whole."""

    name: str
    written: bool
    validates: bool  # whether `locate` checks the rows of unchecked columns
    costs: Costs

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the buffers kept from batch to batch."""

    def stages_unvalidated(self, rows: int) -> bool:
        """Whether `stage` takes so many rows as given; it, or `locate`, then refuses bad ones."""

    def stage(self, columns: Columns, time: Array, weight_dtype: np.dtype[Any] | None) -> Staged:
        """Bring a batch to where kernels read it. time: int64[n], or int64[1] for all rows;
        weight_dtype is the store's."""

    def key_rows(
        self, staged: Staged, columns: Columns, direction: int, implied: Implied | None = None
    ) -> Keys:
        """The key operations of a batch, and the `implied` deletions, by place.
        Here an EXPIRE row names an edge, which goes if its time is less than the row's (expiry.py).
        [W1] ENSURES: a row that updates an edge or lets it expire gives (src, dst), reversed for
        REVERSE, both for BOTH (a loop once); one that adds or removes a vertex gives its marker
        (src, 2^32 - 1), but nothing for REVERSE; a query gives nothing. Raises MemoryError."""

    def sort_beside(self, segments: Shape, staged: Staged, rows: Keys) -> None:
        """Sort key operations, for the queries among them.
        [Q1] ENSURES: from now until the next `locate`, `find_edges`, `count_neighbors` and
        `neighbors` take `staged` and limits for these segments, and R2 holds of them. Where rows
        are bad that the backend `validates`, they may answer anything, or raise BatchError.
        [Q2] ENSURES: nothing is published, and `locate` may be given the same rows. Raises
        MemoryError."""

    def asked(
        self, segments: Shape, staged: Staged, columns: Columns, places: Array
    ) -> tuple[Array, Array, Array]:
        """(src, dst, limits) of the queries in rows `places` of a batch, where what is called with
        them reads them. REQUIRES: the batch is sorted beside the segments; `places` are on the
        host."""

    def locate(self, segments: Shape, staged: Staged, rows: Keys, strategy: str) -> Found:
        """Sort key operations and find what each does. `strategy` is what `plan` will probably be
        asked for, so that the backend may plan at once.
        [W2] ENSURES: operations of one key are folded, in the order of their places, onto what is
        stored for it (Definition 2; `Kind` says what SET is); `tally` is what that comes to.
        [W3] ENSURES: raises BatchError for bad rows that the backend `validates`, and nothing is
        written then. Raises MemoryError."""

    def place_on(self, segments: Shape, located: Found) -> None:
        """Move what was located onto segments that `expand` has made from those it is on.
        REQUIRES: nothing is planned."""

    def plan(self, strategy: str, segments: Shape, located: Found) -> Windows:
        """The plan of "bottom-up" or "top-down". REQUIRES: `segments` are those that `located` is
        on, whose root has room for it; it touches a leaf.
        [W4] ENSURES: the windows and figures are that strategy's, and every window is within the
        bounds that bind it (density.py), whatever was planned for `located` before. That plan
        must not be used then."""

    def rollback(self, located: Found) -> None:
        """Take back what planning wrote: the batch is given up, or planned again. REQUIRES: it is
        not committed. May follow `reserve` or `rebuild`; does nothing where nothing is planned.
        [W5] ENSURES: the counts, and `written`, are what they were before it was located."""

    def reserve(
        self, segments: Shape, located: Found, plan: Windows, shrinking: int
    ) -> None:  # fmt: skip
        """Allocate what `commit` needs for a plan, and `shrink` for `shrinking` slots (0: none).
        [W6] ENSURES: those allocate nothing more. Raises MemoryError."""

    def rebuild(self, segments: Shape, located: Found, size: Size) -> Shape:
        """A global merge: the slots of `segments` and a located batch, merged into fresh levels.
        REQUIRES: `segments` are those that `located` is on; the root has room.
        [W7] ENSURES: what `build` would make of the slots after the batch; `segments` are
        as after `plan`. Raises MemoryError."""

    def commit(
        self, segments: Shape, located: Found, plan: Windows | None, stats: Stats,
        most_changes: int,
    ) -> Committed:  # fmt: skip
        """Carry out a plan on `segments`; none is left to carry out where no leaf is touched or
        `segments` come from `rebuild`. REQUIRES: what `plan` and `reserve` were given.
        [W8] ENSURES: the slots are those after the batch, by rising key; segments outside the
        plan's windows hold what they held; counts and fences go with the slots.
        [W9] ENSURES: the windows in which slots moved are added to `stats` by layer, with their
        segments, and the edges they hold after (of a window that a later round takes in again,
        after which round is for the backend to choose).
        [W10] ENSURES: `unchanged` counts the operations that changed nothing, and those that let
        an edge expire, once each.
        [W11] ENSURES: `changes` are the keys inserted and deleted, markers too, by rising key; None
        if there are more than `most_changes` (-1: not wanted), or no memory for them. They are
        to be read after `wait`."""

    def wait(self) -> None:
        """Wait until all work on the store is done."""

    def trim(self, segments: Shape, staged: Staged) -> None:
        """A batch is over: give back buffers that are large, and large beside the store."""

    def apply_at_once(
        self, segments: Shape, columns: Columns, time: Array, weight_dtype: np.dtype[Any] | None,
        direction: int, strategy: str, most_cost: float, stats: Stats,
    ) -> Committed | Found | None:  # fmt: skip
        """`stage`, `key_rows`, `locate`, `plan` and `commit` in one. REQUIRES: all rows update
        edges.
        [B1] ENSURES: if it returns Committed, all is as after those four. It may refuse, and does
        if the store would have to grow or shrink, or if windows would cost more than `most_cost`
        (see Costs): then the batch is located, with `staged` beside it, or nothing is done (None),
        and what is published is as it was."""


class Reading(Protocol[Stored, Asking]):
    """Queries of a store, and copies of what it holds, which change nothing. For all methods:

    [R1] REQUIRES: outside a mixed batch `staged` is None, and `limits` means nothing; inside one
         `staged` is the batch that `sort_beside` was given, and `limits` int64[q] are places in it,
         one per query.
    [R2] ENSURES: a query with limit p sees what the batch's operations at places below p, one after
         the other, make of what was stored before; without a batch, it sees what is stored.
    [R3] ENSURES: no array of the store is written.
    Vertices are uint32, keys are src << 32 | dst; results lie where the store is, inputs anywhere.
    """

    def find_edges(
        self, segments: Stored, staged: Asking | None, src: Array, dst: Array | None,
        limits: Array | None, unseen: bool = False,
    ) -> SlotColumns:  # fmt: skip
        """(found bool[q], weights, times int64[q]) of edges (src[i], dst[i]); dst None: of the
        markers of the vertices `src`.
        [R4] ENSURES: weights and times are 0 where not found; None if the store keeps none. If the
        ids are a caller's that nobody has looked at, `unseen`, raises BatchError if one that lies
        on a device is 2^32 - 1, which is no id. REQUIRES: then there is no batch."""

    def find_keys(self, segments: Stored, keys: Array) -> SlotColumns:
        """The same of uint64[q] keys on the host, outside a batch."""

    def count_neighbors(
        self, segments: Stored, staged: Asking | None, vertices: Array, limits: Array | None,
        unseen: bool = False,
    ) -> Array:  # fmt: skip
        """int64[q].
        [R5] ENSURES: the edges out of each vertex are counted, but not its marker. Raises
        BatchError as `find_edges` does."""

    def neighbors(
        self,
        segments: Stored,
        staged: Asking | None,
        vertices: Array,
        limits: Array | None,
        values: bool,
    ) -> tuple[Array, Array, Array | None, Array | None]:
        """(indptr int64[q+1], ids uint32, weights, times).
        [R6] ENSURES: the neighbours of query i are ids[indptr[i]:indptr[i+1]], rising, without a
        marker. Weights and times are None without `values`, or if the store keeps none. Raises
        BatchError if `vertices` lie on a device and one of them is 2^32 - 1."""

    def reach(
        self, segments: Stored, staged: Any, vertices: Any, steps: Array, limits: Array | None,
        largest_vertex: Callable[[], int],
    ) -> tuple[Array, Array] | None:  # fmt: skip
        """(indptr int64[q+1], ids uint32) of the vertices within 1 … steps[i] steps of vertices[i],
        rising; one is its own only if it is reached again. None if that would take too much memory,
        or where it is not offered within a batch. staged, limits: as for a query [R1].
        steps: int64[q], on the host, from 1 on; q > 0. largest_vertex: says the largest id of an
        edge, outside a batch; that may be a scan."""

    def neighbors_from(
        self, segments: Stored, vertex: int, first: int, most: int
    ) -> tuple[Array, Array | None, Array | None]:
        """(ids uint32, weights, times): a piece of one row, at a cost that on the host depends on
        the piece alone. REQUIRES: `vertex` and `first` are less than 2^32.
        [R21] ENSURES: they are what `neighbors` gives of that vertex, without the ids below
        `first`, and without all but `most` of the others, which are the lowest."""

    def has_in_edges(self, segments: Stored, targets: Array) -> Array:
        """bool[q], by a scan of the store. [R7] REQUIRES: targets never fall; they may repeat.
        [R8] ENSURES: whether an edge goes into each of them."""

    def scan_targets(self, segments: Stored, targets: Array) -> tuple[Array, Array]:
        """(index of the target int64[e], source uint32[e]), by a scan. [R15] REQUIRES: targets
        rise, none twice.
        [R9] ENSURES: there is one entry for each edge into any of them, in no order."""

    def largest_vertex(self, segments: Stored) -> int:
        """[R10] ENSURES: the largest id that an edge or a marker has; -1 for an empty store."""

    def csr_rows(
        self, segments: Stored, num_rows: int, num_edges: int, markers: bool
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
        self, segments: Stored, num_edges: int, markers: bool, taker: Any
    ) -> tuple[Array | None, Array | None]:
        """(weights, times) of those rows for `taker`, as long as the store has not changed."""

    def csr_view(
        self, segments: Stored, num_rows: int, view: TimeView, markers: bool, loops: bool
    ) -> tuple[Array, Array, Array | None, Array, int]:
        """(indptr, indices, weights, times, how many of the edges are loops).
        [R22] REQUIRES: as `csr_rows` and `older`; `loops` says whether there are any, or nobody
        asks for their number.
        [R23] ENSURES: what `csr_rows` and `csr_columns` give, of the edges in the view alone, with
        weights as `decayed` makes them (time_view.py), bit for bit."""

    def slots(self, segments: Stored, values: bool = True) -> SlotColumns:
        """(keys uint64[num_slots], weights, times).
        [R13] ENSURES: all filled slots, markers too, by rising key; without `values` the keys
        alone."""

    def older(self, segments: Stored, before: int) -> tuple[Array, Array]:
        """(keys uint64[n], times int64[n]). REQUIRES: the store keeps times.
        [R17] ENSURES: all edges whose time is less than `before`, without markers, in no order."""

    def since(self, segments: Stored, before: int) -> tuple[SlotColumns, int]:
        """(slots as `slots` has them, int). REQUIRES: as `older`.
        [R20] ENSURES: all filled slots but those that `older` gives, and how many of those are
        loops."""

    def sampled_times(self, segments: Stored) -> Array:
        """int64, on the host. REQUIRES: as `older`.
        [R18] ENSURES: the times of some filled slots, spread over the whole store; of at least one
        if there is one."""

    def any_older(self, segments: Stored, times: Array, before: int) -> Callable[[], bool]:
        """A look at a batch's times, on the host or where the store is; it need not be over when
        this returns. REQUIRES: whoever calls this again has no use for the last answer.
        [R19] ENSURES: what is returned says, when it is called, whether a time was less than
        `before`."""

    def copy_slots(
        self, segments: Stored, keys: Array, weights: Array | None, times: Array | None
    ) -> None:
        """[R14] ENSURES: host arrays of num_slots entries hold what `slots` gives when this
        returns."""

    def host_memory(self, size: int) -> Array:
        """[R16] ENSURES: at least uint8[size] on the host, not initialized, from which copies of
        a growing store are cheap. Raises MemoryError."""


class Better(Protocol):
    """What a backend may do better than defaults.py: in fewer steps, or on its own. The flags say
    what whoever asks has to know beforehand."""

    is_provisional: bool
    overlaps: bool  # then it is an overlapping.Overlapping
    merges_rows: bool
    copies_in_pieces: bool

    def successor(self) -> Any:
        """A backend to move the store to, once there is one; None where there is none. Cheap.
        [B2] ENSURES: it keeps any store that this one does, and answers the same, to the last
        bit."""

    def rows_with(
        self, indptr: Array, indices: Array, keys: Array, there: Array, num_rows: int
    ) -> tuple[Array, Array, Array]:
        """Earlier rows with the changes to them merged in. keys: uint64, ascending, what changed;
        there: bool, whether each is an entry now. The third array is memory that begins with the
        indices, and that has room for as many entries again. REQUIRES: `merges_rows`."""

    def column_pieces(self, segments: Any, name: str) -> Iterator[Array]:
        """One column of what `slots` gives, "keys", "weights" or "times", piece by piece on the
        host: each may be overwritten when the next is asked for. REQUIRES: `copies_in_pieces`; the
        store keeps it, and is not changed meanwhile."""

    # One operation at a time, on plain numbers: a vertex is an id, and what is returned lies on the
    # host but for one array.

    def find_edge(self, segments: Any, src: int, dst: int) -> tuple[bool, float, int]:
        """[O1] ENSURES: what `find_edges` gives for one edge; 0 for what the store keeps none of,
        or where there is no edge."""

    def find_neighbors(self, segments: Any, src: int) -> Array:
        """uint32[d], on the host. [O2] ENSURES: the ids that `neighbors` gives for one vertex."""

    def count_neighbors_of(self, segments: Any, src: int) -> Array:
        """int64[1], where the store is. [O3] ENSURES: what `count_neighbors` gives."""

    def update_one(
        self, segments: Any, back: Any, src: int, dst: int, kind: int, weight: float, time: int,
        from_top: bool, back_from_top: bool, least_held: int,
    ) -> Single:  # fmt: skip
        """Apply an update to the key of (src, dst) in `segments` and, unless `back` is None, to
        that of (dst, src) there: an in-store's segments, or the same ones in an undirected graph.
        kind: an update of an edge, or ADD_VERTEX with dst 2^32 - 1. `from_top`: whether the
        strategy of `segments` is top-down; and of `back`.
        [O4] ENSURES: returns (action, why, held, back_held). If it is REFUSED, nothing is
        published: that more than the keys' leaves would have to change, or that a store holds less
        than `least_held` slots, is a reason, and no other one need be. Else all is as
        after `commit` of a batch of this row: `why` is the reason for which nothing changed
        (counters.py), for an edge that rises; `held` is what the key's leaf holds after an
        INSERT or a DELETE, and `back_held` the same of the other key's, -1 where that is the same
        leaf. `written` is set before the first write, unless it is refused."""


class Backend(
    Shaping[Shape],
    Writing[Shape, Staged, Keys, Found, Windows],
    Reading[Shape, Staged],
    Better,
    Protocol[Shape, Staged, Keys, Found, Windows],
):
    """All that a device must offer. A store hands its backend only what that backend made, so
    outside of it the five types are the protocols of values.py: `AnyBackend`."""


AnyBackend = Backend[Segments, StagedBatch, KeyRows, Located, Plan]


class Place(Protocol):
    """Where the stores of a graph are."""

    def run(self, call: Callable[..., Result], args: tuple[Any, ...]) -> Result:
        """call(*args), by one thread at a time, with its device as the current one, for whatever
        the host's logic does there with arrays."""

    def localize(self, values: Any) -> Any:
        """What a caller gave, where the stores can read it: on the host, or here."""

    def wait_for_caller(self) -> None:
        """Make what the stores do from now on see what the caller's current stream did before."""
