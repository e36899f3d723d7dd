"""How callers identify vertices: by id or by name. A graph has one of the two, and asks it wherever
a caller gives a vertex or gets one.

`ById` and `ByName` have the same methods: what a caller gives comes out as ids, and ids that are
returned are made what the caller knows. Names are looked up inside the graph's lock (named.py says
how a batch is), and what that needs is imported only for graphs with names.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arguments.convert import MAX_VERTEX, NO_VERTEX, id_column, one_vertex, vertices_asked_for
from ..arguments.scalars import raises_out_of_memory, shown
from ..arrays import Array
from ..batch.builder import Batch
from ..batch.columns import DELETE, OF_EDGES, WEIGHTED, Columns
from ..errors import AnswersTooLarge, BatchError
from ..results import Neighbors
from .admission import admit, unvalidated
from .answers import Answers
from .lock import GraphLock
from .opera import Outcome, Watcher, apply
from .single import SingleOperations, are_plain
from .stores import Stores

if TYPE_CHECKING:
    from ..batch.named import NamedColumns
    from ..names import Names

_UINT32 = np.dtype(np.uint32)


class ById:
    """Vertices are integers from 0 to 2^32 - 2."""

    names = None

    def __init__(self, stores: Stores, lock: GraphLock, one: SingleOperations) -> None:
        self._stores, self._lock, self._one = stores, lock, one

    # -- updates ------------------------------------------------------------------------------

    def update(self, kind: int, src: Any, dst: Any, weight: Any, time: Any) -> None:
        """Apply updates of one kind. dst: None for operations on vertices; weight: read for kinds
        that are WEIGHTED. Raises as `Graph.apply` does."""
        if type(src) is int and are_plain(kind, src, dst, weight, time):
            v = NO_VERTEX if dst is None else dst
            self._lock.write(self._one.update, kind, src, v, float(weight), time)
            return
        given = kind, src, dst, weight if kind in WEIGHTED else None, time
        stages = self._stores.out.backend.stages_unvalidated
        columns = unvalidated(stages, *given) if kind in OF_EDGES else None
        if columns is None:
            self.apply(Columns.edges(*given))
            return
        try:
            self.apply(columns)
        except BatchError:
            Columns.edges(*given)  # raises what names the column
            raise

    def apply(self, batch: Any, watch: Watcher | None = None) -> Answers:
        """See Graph.apply."""
        columns = batch if type(batch) is Columns else _columns_of(batch, False)
        if type(columns) is not Columns or columns.ids_resolved:
            raise BatchError(
                "vertices go by numbers in this graph: lpma.Graph(names=True) makes one with names"
            )
        outcome = self._lock.write(apply, self._stores, columns, False, watch, overlaps=True)
        if watch is not None:
            self._lock.read(watch.finish, self._stores)
        return outcome.answers if outcome.failure is None else _answers(outcome)

    apply_ids = apply  # of a batch whose vertices are ids

    # -- queries ------------------------------------------------------------------------------

    def many(self, values: Any, name: str) -> Array:
        """The vertices of a query, where the stores can read them. Raises BatchError, and
        OutOfMemory; what lies on a device is checked when it is looked up."""
        is_plain = type(values) is np.ndarray and values.dtype == _UINT32 and values.ndim == 1
        if is_plain and values.flags.c_contiguous:  # of which no copy is made
            return id_column(values, name)
        return self._converted(values, name)

    @raises_out_of_memory
    def _converted(self, values: Any, name: str) -> Array:
        if type(values) is not np.ndarray:
            values = self._stores.place.localize(values)
        return vertices_asked_for(values, name)

    def one(self, value: Any, name: str) -> int:
        """The vertex of a query for one. Raises BatchError."""
        if type(value) is int and 0 <= value <= MAX_VERTEX:
            return value
        return one_vertex(value, name)

    def find(self, value: Any) -> int | None:
        """The vertex that goes by this, whatever it is; None for what none can go by."""
        try:
            return self.one(value, "v") if is_one(value) else None
        except BatchError:
            return None

    def called(self, ids: Array) -> Array:
        """Vertices as the caller knows them."""
        return ids

    def neighbors(self, found: Neighbors) -> Neighbors:
        """Neighbours as the caller knows them."""
        return found


class ByName:
    """Vertices are texts or integers of 64 bits, whose ids `names` keeps. Methods: as ById's."""

    def __init__(
        self, stores: Stores, lock: GraphLock, one: SingleOperations, names: Names
    ) -> None:
        self._stores, self._lock, self._one, self.names = stores, lock, one, names

    # -- updates ------------------------------------------------------------------------------

    def update(self, kind: int, src: Any, dst: Any, weight: Any, time: Any) -> None:
        is_one = type(src) in (int, str) and (dst is None or type(dst) in (int, str))
        if is_one and are_plain(kind, 0, None if dst is None else 0, weight, time):
            self._lock.write(self._update_one, kind, src, dst, float(weight), time)
            return
        from ..batch.named import named_edges

        self._apply_named(named_edges(kind, src, dst, weight if kind in WEIGHTED else None, time))

    def apply(self, batch: Any, watch: Watcher | None = None) -> Answers:
        from ..batch.named import by_name

        columns = _columns_of(batch, True)
        if columns.ids_resolved:
            return self.apply_ids(columns, watch)
        named = by_name(columns)
        if not named.checked:
            named.check_names()
        return self._apply_named(named, watch)

    def apply_ids(self, columns: Columns, watch: Watcher | None = None) -> Answers:
        outcome = self._lock.write(apply, self._stores, columns, False, watch)
        return self._watched(outcome, watch)

    def _apply_named(self, columns: NamedColumns, watch: Watcher | None = None) -> Answers:
        return self._watched(self._lock.write(self._name_and_apply, columns, watch), watch)

    def _watched(self, outcome: Outcome, watch: Watcher | None) -> Answers:
        if watch is not None:
            self._lock.read(watch.finish, self._stores)
        return _answers(outcome)

    def _name_and_apply(self, columns: NamedColumns, watch: Watcher | None) -> Outcome:
        """Inside the graph's lock. A batch that is refused gives its new ids back."""
        from ..batch.named import with_ids

        count = len(self.names)
        try:
            named = with_ids(self.names, admit(self._stores, columns))
            outcome = apply(self._stores, named, True, watch)
        except BaseException:
            self._forget(count)
            raise
        if len(outcome.answers):
            outcome.answers.by_name(self.names)
        return outcome

    def _update_one(self, kind: int, src: Any, dst: Any, weight: float, time: Any) -> None:
        names, count = self.names, len(self.names)
        try:
            look_up = names.id_of if kind == DELETE else names.give
            u = look_up(src, "src" if kind in OF_EDGES else "v")
            v = look_up(dst, "dst") if kind in OF_EDGES else NO_VERTEX
            self._one.update(kind, u, v, weight, time)
        except BaseException:
            self._forget(count)
            raise

    def _forget(self, count: int) -> None:
        """Give the ids from `count` on back, after a batch that was refused."""
        if not self._stores.written:
            self.names.shrink(count)

    # -- queries ------------------------------------------------------------------------------

    @raises_out_of_memory
    def many(self, values: Any, name: str) -> Array:
        from ..names import column_of

        ids: Array = self._lock.read(self.names.look_up, column_of(values, name))
        return ids

    def one(self, value: Any, name: str) -> int:
        return self.names.id_of(value, name)

    def find(self, value: Any) -> int | None:
        try:
            return self.names.find(value) if is_one(value) else None
        except BatchError:
            return None

    def called(self, ids: Array) -> Array:
        return self.names.of(ids)

    def neighbors(self, found: Neighbors) -> Neighbors:
        return replace(found, ids=self.names.of(found.ids))


def is_one(value: Any) -> bool:
    """Whether this is one vertex, by id or name, and no collection of them."""
    return isinstance(value, int | float | str | np.generic) or getattr(value, "ndim", None) == 0


def new_names(in_order: Any = ()) -> Names:
    """A dictionary whose ids 0, 1 … have these names."""
    from ..names import Names, column_of

    names = Names()
    if len(in_order):
        names.assign(column_of(in_order, "names"))
    return names


def check_taken(names: Any, own: Any, rows: int) -> None:
    """Raise BatchError unless a graph of so many rows, with names of its own or None, can go by
    this dictionary: see Graph.take_names."""
    if not hasattr(names, "assign"):
        raise BatchError(f"names: a dictionary of names, not {shown(names)}")
    if own is not None or rows > len(names):
        have = "another dictionary" if own is not None else f"ids up to {rows - 1:,}"
        raise BatchError(f"{len(names):,} names do not go with a graph that has {have}")


def _columns_of(batch: Any, by_name: bool) -> Columns:
    """What a caller brings to `Graph.apply`. Raises BatchError."""
    if isinstance(batch, Batch):
        columns = batch.columns(by_name)
        columns.checked = True  # just now, and nobody else has them
        return columns
    if not isinstance(batch, Columns):
        raise BatchError(f"batch: a Batch or its columns, not {shown(batch)}")
    return batch


def _answers(outcome: Outcome) -> Answers:
    """The answers to a batch that was applied. Raises AnswersTooLarge."""
    failure = outcome.failure
    if failure is not None:
        raise AnswersTooLarge(
            f"the updates are applied, but memory ran out after ({failure}): ask for less at once"
        ) from failure
    return outcome.answers
