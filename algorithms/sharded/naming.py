"""One numbering for the vertices of shards that have a dictionary of names each.

A vertex goes by its name everywhere, and its name's hash says who owns it; but every shard gave ids
of its own, to vertices of others as well. The owner of a name gives it a *place*: its own names
come first, as they stand in its dictionary, then those that others tell it of, sender by sender.
The vertex's row in the whole graph is place × shards + owner, which tells its owner without a hash
(rule "modulo"). Rows whose places an owner has not given are no vertices.

Each shard then renumbers its part. Its in-neighbour part, which has another dictionary, is left
out: in-edges are found by exchange.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lpma.arrays import array_module, row_numbers, to_host
from lpma.coerce import MAX_VERTEX
from lpma.errors import BatchError
from lpma.names import Column, FrozenNames, Names, column_of
from lpma.names.forms import Form, flattened
from lpma.owners import owners_of

from .held import Held
from .rows import starts_of
from .types import MODULO, Array, Message, Messages, Part, Steps
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
    n = max(counts) * held.shards
    if n > MAX_VERTEX:
        raise BatchError(f"{n} rows for the names of all shards: there are ids for {MAX_VERTEX}")
    new = np.zeros(held.num_rows, np.uint32)
    new[rows] = place.astype(np.int64) * held.shards + owner
    held.replace(_renumbered(held.part, held.xp.asarray(new), n))
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


def _renumbered(part: Part, new: Array, n: int) -> Part:
    """The part with row v called new[v], of n rows."""
    xp = array_module(new)
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
        rule=MODULO,
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


class SpreadNames:
    """The dictionary of all shards' names, under the rows of the whole graph, as FrozenNames reads
    one (`lpma.names.frozen.Dictionary`). A row that is no vertex goes by the first name there is:
    nothing looks at it."""

    def __init__(self, of_shards: list[Message]) -> None:
        self._names = Names()
        shards = len(of_shards)
        columns = list(map(_column, of_shards))
        self.count = max(map(len, columns)) * shards
        rows = []
        for shard, column in enumerate(columns):
            self._names.assign(column)
            rows.append(np.arange(len(column)) * shards + shard)
        self._row_of = np.concatenate(rows)  # int64, of each id of the dictionary
        self._id_of = np.zeros(self.count, np.int64)
        self._id_of[self._row_of] = np.arange(len(self._row_of))

    def look_up(self, names: Column, /) -> Array:
        """uint32: the rows of names, no row (2^32 − 2 or more) for one that has none."""
        ids = self._names.look_up(names)
        known = ids < len(self._row_of)
        rows = ids.copy()
        rows[known] = self._row_of[ids[known]]
        return rows

    def of(self, ids: Array, /) -> Array:
        """What these rows go by: see `lpma.names.Names.of`."""
        return self._names.of(self._id_of[ids])

    def form(self, ids: Array, /) -> Any:
        """See `lpma.names.Names.form`."""
        return self._names.form(self._id_of[ids])
