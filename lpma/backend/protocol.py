"""The seam between a store and the device that its arrays lie on, as a specification.

Host logic (strategies, bounds, expansion, statistics) is written once, in lpma.py
and the files beside it, against these protocols. A backend is not a second store: it sorts a batch,
locates it, plans and moves it, answers queries and exports, and knows nothing of why. values.py
says what passes between the two; shaping.py and reading.py are part of it: whole
stores, and what changes nothing.
tests/lpma/test_conformance.py holds every backend to the numbered lines, and a slow one,
tests/support/slow_backend.py, does the least that they ask.

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

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from ..batch.columns import Columns
from ..pma.counters import Stats
from ..pma.layout import Size
from .reading import Reading
from .shaping import Shaping
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
    StagedBatch,
)

Shape = TypeVar("Shape", bound=Segments)
Staged = TypeVar("Staged", bound=StagedBatch)
Keys = TypeVar("Keys", bound=KeyRows)
Found = TypeVar("Found", bound=Located)
Result = TypeVar("Result")
Windows = TypeVar("Windows", bound=Plan)


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
        stored for it (Definition 2); `tally` is what that comes to.
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


class Better(Protocol):
    """What a backend may do better than defaults.py: in fewer steps, or on its own. The flags say
    what whoever asks has to know beforehand."""

    is_provisional: bool
    overlaps: bool  # then it is an overlapping.Overlapping
    merges_rows: bool

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
        kind: an edge's append or deletion, or ADD_VERTEX with dst 2^32 - 1. `from_top`: whether the
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
