"""The part of a graph that has names: what is given by name is looked up, and what is returned is
turned back into names. A graph without names passes by.

named.py says how a batch is looked up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .answers import Answers
from .arguments import shown
from .backend.protocol import Place
from .batch import FIRST_OTHER, Columns, Kind
from .coerce import NO_VERTEX, one_vertex, vertices_asked_for
from .converted import within_memory
from .errors import BatchError
from .guard import Guard
from .one import One, are_plain
from .opera import Outcome, apply
from .options import Options
from .results import Neighbors
from .stores import Stores

if TYPE_CHECKING:
    from .names import Names

Array = npt.NDArray[Any]

_BY_ID = "vertices go by numbers in this graph: lpma.Graph(names=True) makes one with names"


def dictionary_for(options: Options) -> Names | None:
    """The dictionary of an empty graph. What it needs is imported only for graphs with names."""
    if not options.names:
        return None
    from .names import Names

    return Names()


class GraphNamed:
    """The part of `lpma.Graph` that knows of names."""

    names: Names | None
    _options: Options
    _stores: Stores
    _place: Place
    _one: One
    _guard: Guard

    def take_names(self, names: Names) -> None:
        """Have a graph that was made without names go by this dictionary, which it keeps from now
        on: for files and streams that had the two apart. Raises BatchError if the graph has names,
        or a vertex without one."""
        if not hasattr(names, "assign"):
            raise BatchError(f"names: a dictionary of names, not {shown(names)}")
        rows = self._guard.read(self._stores.out.largest_vertex) + 1
        if self.names is not None or rows > len(names):
            have = "another dictionary" if self.names is not None else f"ids up to {rows - 1:,}"
            raise BatchError(f"{len(names):,} names do not go with a graph that has {have}")
        self._options = replace(self._options, names=True)
        self.names = names

    # -- updates ------------------------------------------------------------------------------

    def _named(self, columns: Columns) -> Columns:
        """Columns as they are to be applied: by name, or with ids that were looked up. Raises
        BatchError."""
        from .named import NamedColumns, by_name

        if self.names is not None:
            if columns.looked_up:
                return columns
            named = by_name(columns)
            if not named.checked:
                named.check_names()
            return named
        if isinstance(columns, NamedColumns) or columns.looked_up:
            raise BatchError(_BY_ID)
        return columns

    def _apply_named(self, stores: Stores, columns: Columns) -> Outcome:
        """`opera.apply` for a graph with names, in the graph's lock."""
        assert self.names is not None
        if columns.looked_up:
            return apply(stores, columns)
        from .named import NamedAnswers, NamedColumns, with_ids

        assert isinstance(columns, NamedColumns)
        count = len(self.names)
        try:
            outcome = apply(stores, with_ids(self.names, columns))
        except BaseException:
            self._forget(count)
            raise
        if len(outcome.answers):
            outcome.answers = NamedAnswers(outcome.answers, self.names)
        return outcome

    def _forget(self, count: int) -> None:
        """Give the ids from `count` on back, after a batch that was refused."""
        if self.names is not None and not self._stores.written:
            self.names.shrink(count)

    def apply(self, batch: Any) -> Answers:
        """See Graph."""
        raise NotImplementedError

    def _update_by_name(self, kind: Kind, src: Any, dst: Any, weight: Any, time: Any) -> None:
        """Updates of one kind from what a caller gave. dst: ignored for operations on vertices."""
        is_one = type(src) in (int, str) and (kind >= FIRST_OTHER or type(dst) in (int, str))
        if is_one and are_plain(0, 0, weight, time):
            self._guard.write(self._update_one, int(kind), src, dst, float(weight), time)
        else:
            self.apply(self._edges(kind, src, dst, weight, time))

    def _edges(self, kind: Kind, src: Any, dst: Any, weight: Any, time: Any) -> Columns:
        """Updates of one kind as columns: see `Columns.edges`. Raises BatchError."""
        if self.names is None:
            return Columns.edges(kind, src, dst, weight, time)
        from .named import named_edges

        return named_edges(kind, src, dst, weight, time)

    def _update_one(self, kind: int, src: Any, dst: Any, weight: float, time: Any) -> None:
        names = self.names
        assert names is not None
        count = len(names)
        try:
            look_up = names.id_of if kind == Kind.DELETE else names.give
            u = look_up(src, "src" if kind < FIRST_OTHER else "v")
            v = NO_VERTEX if kind >= FIRST_OTHER else look_up(dst, "dst")
            self._one.update(kind, u, v, weight, time)
        except BaseException:
            self._forget(count)
            raise

    # -- queries ------------------------------------------------------------------------------

    @within_memory
    def _vertices(self, values: Any, name: str, unseen: bool = False) -> Array:
        """The vertices of a query, where the stores can read them. unseen: `neighbors` of the
        backend checks those on a device."""
        if self.names is not None:
            from .names import column_of

            ids: Array = self._guard.read(self.names.look_up, column_of(values, name))
            return ids
        if type(values) is not np.ndarray:
            values = self._place.near(values)
        return vertices_asked_for(values, name, unseen)

    def _vertex(self, value: Any, name: str) -> int:
        """The vertex of a query for one. Raises BatchError."""
        return one_vertex(value, name) if self.names is None else self.names.id_of(value, name)

    def _by_name(self, neighbors: Neighbors) -> Neighbors:
        """Neighbours as the caller knows them."""
        if self.names is None:
            return neighbors
        from .named import neighbors_by_name

        return neighbors_by_name(neighbors, self.names)
