"""One numbering for the vertices of shards that have a dictionary of names each.

A vertex has one name everywhere, whose hash names its owner, but each shard has ids of its own, for
vertices of others as well. The owner of a name gives it a *place*: its own names first, in the
order of its dictionary, then those that others send it, sender by sender. The vertex's row in the
whole graph is its place after all rows of the owners before. So rows have no gaps, each has a name
of its own, and `Part.bounds` tells its owner.

Each shard then renumbers its part, without the in-neighbour part, which has another dictionary:
in-edges are found by exchange.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lpma.arguments.convert import MAX_VERTEX
from lpma.arrays import array_module, row_numbers, to_host
from lpma.errors import BatchError
from lpma.names import Column, FrozenNames, Names, column_of
from lpma.names.forms import Form, flattened
from lpma.pma.keys import HALF
from lpma.sharding import owners_of

from ...arrays import Array, starts_of
from ..runtime.state import ShardState
from ..runtime.types import Message, Messages, Part, Steps
from .views import marked


def number(state: ShardState) -> Steps:
    """(kinds, keys, bounds, blob): the names of this shard's places, as in `lpma.names.Column`. The
    worker then holds the renumbered part. Raises BatchError if the part's rows have no names."""
    _, done = yield state.nothing(), state.numbered is not None
    if all(done):
        return state.numbered
    names = state.part.names
    if names is None:
        raise BatchError("these shards' rows go by ids: there are no names to number")
    rows, values, owner = _used(state, names)
    own = Names()
    place = np.zeros(len(rows), np.uint32)
    mine = owner == state.part.shard
    place[mine] = _given(own, values[mine])
    others = [np.flatnonzero((owner == i) & ~mine) for i in range(state.shards)]
    inbox, _ = yield [_message(values[at]) for at in others], None
    answers: Messages = [None if one is None else (own.assign(_column(one)),) for one in inbox]
    inbox, counts = yield answers, len(own)
    for at, message in zip(others, inbox, strict=True):
        if message is not None:
            place[at] = to_host(message[0])
    bounds = tuple(np.cumsum([0, *counts]).tolist())
    n = bounds[-1]
    if n > MAX_VERTEX:
        raise BatchError(f"{n} rows for the names of all shards: there are ids for {MAX_VERTEX}")
    new = np.zeros(state.num_rows, np.uint32)
    new[rows] = place + np.array(bounds)[owner]
    state.replace(_renumbered(state.part, state.xp.asarray(new), bounds))
    order = np.argsort(new[rows])
    state.known = Known(names, rows[order], new[rows][order])
    state.numbered = _arrays(column_of(own.of(np.arange(len(own))), "names"))
    return state.numbered


def _used(state: ShardState, names: FrozenNames) -> tuple[Array, Array, Array]:
    """The rows that are vertices here, their names, and their owners."""
    part = state.part
    used = marked(state.num_rows, part.indices)
    used |= part.indptr[1:] > part.indptr[:-1]
    used[part.added] = True
    rows = to_host(state.rows_where(used))
    values = names.of(rows)
    return rows, values, owners_of(values, state.shards)


def _given(own: Names, values: Array) -> Array:
    return own.assign(column_of(values, "names")) if len(values) else np.empty(0, np.uint32)


def _message(values: Array) -> Message | None:
    return _arrays(column_of(values, "names")) if len(values) else None


def _arrays(column: Column) -> Message:
    """The column as arrays, with its own texts only, in order."""
    column = column.spread()
    return column.kinds, column.keys, column.bounds, column.blob


def _column(message: Message) -> Column:
    kinds, keys, bounds, blob = (np.ascontiguousarray(to_host(array)) for array in message)
    return Column(kinds, keys, bounds, blob)


def _renumbered(part: Part, new: Array, bounds: tuple[int, ...]) -> Part:
    """The part with row v renumbered as new[v], of as many rows as `bounds` has."""
    xp, n = array_module(new), bounds[-1]
    rows = new[row_numbers(part.indptr, len(part.indices))]
    keys = rows.astype(np.uint64) << HALF | new[part.indices]
    order = xp.argsort(keys, kind="stable")
    lengths = xp.bincount(rows, minlength=n) if n else xp.zeros(0, np.int64)
    return replace(
        part,
        indptr=starts_of(lengths),
        indices=keys[order].astype(np.uint32),
        weights=None if part.weights is None else part.weights[order],
        times=None if part.times is None else part.times[order],
        bounds=bounds,
        added=xp.sort(new[part.added]),
        in_part=None,
        names=None,
    )


@dataclass(frozen=True)
class Known:
    """The names that one shard knows, under the rows of the whole graph. Like FrozenNames for what
    writes tables, once it has a `form`."""

    names: FrozenNames
    ids: Array
    rows: Array  # rising: of each id
    form: Form | None = None  # of the columns

    def columns(self, end: str, rows: Array) -> dict[str, Array]:
        """See FrozenNames.columns. A row that the shard does not have may have any name."""
        if not len(self.ids):
            return flattened(end, np.zeros(len(rows), np.int64), self.form)
        at = np.searchsorted(self.rows, rows).clip(max=len(self.rows) - 1)
        return flattened(end, self.names.of(self.ids[at]), self.form)


def names_of_shards(of_shards: list[Message]) -> FrozenNames:
    """The names of the whole graph's rows, from each shard's result of `number`: a dictionary gives
    ids in order, and these are the rows."""
    names = Names()
    for message in of_shards:
        names.assign(_column(message))
    return FrozenNames(names, len(names))
