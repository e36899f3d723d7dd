"""One numbering for the vertices of shards that have a dictionary of names each.

A vertex goes by its name everywhere, and its name's hash says who owns it; but every shard gave ids
of its own, to vertices of others as well. The owner of a name gives it a *place*: its own names
come first, as they stand in its dictionary, then those that others tell it of, sender by sender.
The vertex's row in the whole graph is its place behind all rows of the owners before its own: so
the rows have no gaps, each goes by a name of its own, and `Part.bounds` tells its owner.

Each shard then renumbers its part. Its in-neighbour part, which has another dictionary, is left
out: in-edges are found by exchange.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lpma.arguments.convert import MAX_VERTEX
from lpma.arrays import array_module, row_numbers, to_host
from lpma.errors import BatchError
from lpma.names import Column, FrozenNames, Names, column_of
from lpma.names.forms import Form, flattened
from lpma.sharding import owners_of

from .held import Held
from .rows import starts_of
from .types import Array, Message, Messages, Part, Steps
from .views import marked

HALF = np.uint64(32)


def number(held: Held) -> Steps:
    """(kinds, keys, bounds, blob): the names of this shard's places, as `lpma.names.Column` has
    them. The worker holds the renumbered part from then on. Raises BatchError if the part's rows
    have no names."""
    _, done = yield held.nothing(), held.numbered is not None
    if all(done):
        return held.numbered
    names = held.part.names
    if names is None:
        raise BatchError("these shards' rows go by ids: there are no names to number")
    rows, values, owner = _used(held, names)
    own = Names()
    place = np.zeros(len(rows), np.uint32)
    mine = owner == held.part.shard
    place[mine] = _given(own, values[mine])
    others = [np.flatnonzero((owner == i) & ~mine) for i in range(held.shards)]
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
    new = np.zeros(held.num_rows, np.uint32)
    new[rows] = place + np.array(bounds)[owner]
    held.replace(_renumbered(held.part, held.xp.asarray(new), bounds))
    held.known = Known(names, rows, new[rows])
    held.numbered = _arrays(column_of(own.of(np.arange(len(own))), "names"))
    return held.numbered


def _used(held: Held, names: FrozenNames) -> tuple[Array, Array, Array]:
    """The rows that edges have or that were added, what they go by, and who owns each."""
    part = held.part
    used = marked(held.num_rows, part.indices)
    used |= part.indptr[1:] > part.indptr[:-1]
    used[part.added] = True
    rows = to_host(held.rows_where(used))
    values = names.of(rows)
    return rows, values, owners_of(values, held.shards)


def _given(own: Names, values: Array) -> Array:
    return own.assign(column_of(values, "names")) if len(values) else np.empty(0, np.uint32)


def _message(values: Array) -> Message | None:
    return _arrays(column_of(values, "names")) if len(values) else None


def _arrays(column: Column) -> Message:
    """The column as arrays, with the texts that it has and no others, in order."""
    column = column.spread()
    return column.kinds, column.keys, column.bounds, column.blob


def _column(message: Message) -> Column:
    kinds, keys, bounds, blob = (np.ascontiguousarray(to_host(array)) for array in message)
    return Column(kinds, keys, bounds, blob)


def _renumbered(part: Part, new: Array, bounds: tuple[int, ...]) -> Part:
    """The part with row v called new[v], of as many rows as `bounds` has."""
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


class Known:
    """The names that one shard knows, under the rows of the whole graph, for files of its part."""

    def __init__(self, names: FrozenNames, ids: Array, rows: Array) -> None:
        order = np.argsort(rows)
        self._names, self._ids, self._rows = names, ids[order], rows[order]

    def of(self, rows: Array) -> Array:
        """What these rows go by; anything for a row that the shard has not."""
        if not len(self._ids):
            return np.zeros(len(rows), np.int64)
        at = np.searchsorted(self._rows, rows).clip(max=len(self._rows) - 1)
        return self._names.of(self._ids[at])


class ColumnsOf:
    """As FrozenNames, for what writes tables."""

    def __init__(self, known: Known, form: Form) -> None:
        self._known, self._form = known, form

    def columns(self, end: str, rows: Array) -> dict[str, Array]:
        """See FrozenNames.columns."""
        return flattened(end, self._known.of(rows), self._form)


def names_of_shards(of_shards: list[Message]) -> FrozenNames:
    """What the rows of the whole graph go by, of what `number` gave at each shard: a dictionary
    gives ids in order, and these are the rows."""
    names = Names()
    for message in of_shards:
        names.assign(_column(message))
    return FrozenNames(names, len(names))
