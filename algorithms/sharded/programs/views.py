"""What programs read besides the rows themselves.

Each is a part of a program (`types.Steps`), called with `yield from`, which exchanges what it needs
once and caches it.

transposed_rows  the sources of owned rows' in-edges: of an undirected graph the rows themselves;
                 else, without an in-neighbour store, one exchange of reversed edges
simple_rows      the simple undirected view of the owned rows
present_rows     which owned rows are vertices
halo             which rows of others a view names, and which own rows are named elsewhere
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lpma.arrays import array_module, on_device
from lpma.cpu import columns

from ...arrays import Array
from ...views.directed import move_weights, transpose_of
from ...views.simple import View, device_module
from ..runtime.rows import joined, packed
from ..runtime.state import ShardState
from ..runtime.types import Messages, Steps


class Halo(NamedTuple):
    """The rows of a view that other shards own."""

    receive: list[Array]  # uint32, of each shard, rising: its rows that are entries here
    send: list[Array]  # uint32, of each shard: own rows that are entries there, in its order


def transposed_rows(state: ShardState, weighted: bool = False) -> Steps:
    """(View, float64[m] or None): the sources of the in-edges of owned rows, unsorted; and, if
    `weighted`, which REQUIRES weights, the weight of each."""
    part = state.part
    source = part if not part.directed else part.in_part
    if source is not None:
        weights = None
        if weighted:
            assert source.weights is not None
            weights = source.weights.astype(np.float64)
        return View(source.indptr, source.indices), weights
    name = "transposed, weighted" if weighted else "transposed"
    if name not in state.cache:
        state.cache[name] = yield from _turned(state, weighted)
    return state.cache[name]


def _turned(state: ShardState, weighted: bool) -> Steps:
    """Each shard transposes its part, and sends every row of that to the row's owner."""
    part = state.part
    view = View(part.indptr, part.indices)
    turned = transpose_of(view)
    starts, columns = turned.indptr, [turned.indices]
    if weighted:
        assert part.weights is not None
        columns.append(move_weights(view, turned, part.weights))
    del turned
    rows = state.by_owner(state.rows_where(starts[1:] > starts[:-1]))
    outbox: Messages = [(of, *packed(starts, of, columns)) if len(of) else None for of in rows]
    del columns
    inbox, _ = yield outbox, None
    parts = [one for one in inbox if one is not None]
    indptr, indices, *weights = joined(state.num_rows, starts, parts, 1 + weighted)
    return View(indptr, indices), weights[0].astype(np.float64) if weighted else None


def simple_rows(state: ShardState) -> Steps:
    """View: the owned rows of the simple undirected view, the others empty."""
    if "simple" not in state.cache:
        part = state.part
        module = device_module(part.indptr)
        if not part.directed:
            rows = module.without_loops(part.indptr, part.indices)
        else:
            turned, _ = yield from transposed_rows(state)
            if part.in_part is None:
                turned = transpose_of(transpose_of(turned))  # sorted
            rows = module.united(part.indptr, part.indices, turned.indptr, turned.indices)
        state.cache["simple"] = View(*rows)
    return state.cache["simple"]


def present_rows(state: ShardState) -> Steps:
    """bool[n]: which owned rows are vertices; False for those of others."""
    if "present" not in state.cache:
        part = state.part
        present = part.indptr[1:] > part.indptr[:-1]
        present[part.added] = True
        if part.directed:
            entered = yield from _entered(state)
            present |= entered
        state.cache["present"] = present & state.is_owned
    return state.cache["present"]


def _entered(state: ShardState) -> Steps:
    """bool[n]: which owned rows an edge enters: from the transposed rows if they are here, else the
    shards tell the owners of their entries."""
    if state.part.in_part is not None or "transposed" in state.cache:
        turned, _ = yield from transposed_rows(state)
        return turned.indptr[1:] > turned.indptr[:-1]
    entered = marked(state.num_rows, state.part.indices)
    rows = state.by_owner(state.rows_where(entered))
    inbox, _ = yield [(of,) if len(of) else None for of in rows], None
    for message in inbox:
        if message is not None:
            entered[message[0]] = True
    return entered


def marked(n: int, ids: Array) -> Array:
    """bool[n]: which rows are among these ids."""
    mask: Array = array_module(ids).zeros(n, np.bool_)
    if on_device(ids):
        mask[ids] = True
    else:
        columns.mark_rows(ids, mask)
    return mask


def halo(state: ShardState, name: str, view: View) -> Steps:
    """The Halo of a view, cached under this name."""
    name = f"halo of {name}"
    if name not in state.cache:
        state.cache[name], _ = yield from halo_of(state, view.indices)
    return state.cache[name]


def halo_of(state: ShardState, rows: Array, value: Any = None) -> Steps:
    """(the Halo of those of these rows that others own, every shard's `value`)."""
    mask = marked(state.num_rows, rows)
    mask &= ~state.is_owned
    receive = state.by_owner(state.rows_where(mask))
    inbox, said = yield [(of,) if len(of) else None for of in receive], value
    return Halo(receive, [rows[:0] if one is None else one[0] for one in inbox]), said


def exchanged(state: ShardState, across: Halo, values: Array, value: Any = None) -> Steps:
    """Set values[v], for the rows v of others in the halo, to their owners'. Returns every shard's
    `value`."""
    outbox: Messages = [(values[rows],) if len(rows) else None for rows in across.send]
    inbox, said = yield outbox, value
    for rows, message in zip(across.receive, inbox, strict=True):
        if message is not None:
            values[rows] = message[0]
    return said


def changes(
    state: ShardState, across: Halo, values: Array, changed: Array, value: Any = None
) -> Steps:
    """([(rows, values)] of changed rows of others, every shard's `value`). changed: bool[n], of own
    rows. A shard sends places and values, or all values if that takes less."""
    inbox, said = yield [_changes(rows, values, changed) for rows in across.send], value
    came = []
    for rows, message in zip(across.receive, inbox, strict=True):
        if message is not None:
            came.append((rows[message[0]] if len(message) == 2 else rows, message[-1]))
    return came, said


def _changes(rows: Array, values: Array, changed: Array) -> tuple[Array, ...] | None:
    if not len(rows):
        return None
    places = array_module(values).flatnonzero(changed[rows]).astype(np.uint32)
    if not len(places):
        return None
    if 2 * len(places) >= len(rows):
        return (values[rows],)
    return places, values[rows[places]]
