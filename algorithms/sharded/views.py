"""What programs read beside the rows themselves: the turned rows, the simple view, the vertices,
and which rows of others a shard looks at.

Each is a part of a program (`types.Steps`), to be called with `yield from`; what it needs to
exchange is exchanged once, and kept.

turned_rows   of every owned row, the sources of its in-edges: of an undirected graph the rows
              themselves; else, without an in-neighbour store, one exchange of turned edges
simple_rows   the simple undirected view of the owned rows
present_rows  which owned rows are vertices
border        for a view, whose values are needed where
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lpma.arrays import array_module, on_device
from lpma.cpu import columns

from ..views.simple import View, device_module
from ..views.transpose_cpu import move_weights, transpose
from .held import Held
from .rows import joined, packed
from .types import Array, Messages, Steps


class Border(NamedTuple):
    """The rows of a view that other shards own."""

    wanted: list[Array]  # uint32, of each shard, rising: its rows that are entries here
    given: list[Array]  # uint32, of each shard: own rows that are entries there, in its order


def turned_rows(held: Held, weighted: bool = False) -> Steps:
    """(View, float64[m] or None): the sources of the in-edges of owned rows, a row's entries in no
    order; and, if `weighted`, the weight of each. REQUIRES: weights, if they are asked for."""
    part = held.part
    source = part if not part.directed else part.in_part
    if source is not None:
        weights = None
        if weighted:
            assert source.weights is not None
            weights = source.weights.astype(np.float64)
        return View(source.indptr, source.indices), weights
    name = "turned, weighted" if weighted else "turned"
    if name not in held.kept:
        held.kept[name] = yield from _turned(held, weighted)
    return held.kept[name]


def _turned(held: Held, weighted: bool) -> Steps:
    """Each shard transposes its part, and sends every row of that to the row's owner."""
    part = held.part
    columns = list(transposed(part.indptr, part.indices, part.weights if weighted else None))
    starts = columns.pop(0)
    rows = held.by_owner(held.rows_where(starts[1:] > starts[:-1]))
    outbox: Messages = [(of, *packed(starts, of, columns)) if len(of) else None for of in rows]
    del columns
    inbox, _ = yield outbox, None
    parts = [one for one in inbox if one is not None]
    indptr, indices, *weights = joined(held.num_rows, starts, parts, 1 + weighted)
    return View(indptr, indices), weights[0].astype(np.float64) if weighted else None


def transposed(indptr: Array, indices: Array, weights: Array | None = None) -> tuple[Array, ...]:
    """indptr, indices and, if there are, weights of the transpose."""
    if not on_device(indptr):
        starts, sources = transpose(indptr, indices)
        if weights is None:
            return starts, sources
        return starts, sources, move_weights(indices, starts, weights)
    from ..views import transpose_cuda

    starts, sources = transpose_cuda.transpose(indptr, indices)
    if weights is None:
        return starts, sources
    return starts, sources, transpose_cuda.move_weights(indptr, indices, weights)


def simple_rows(held: Held) -> Steps:
    """View: the owned rows of the simple undirected view, the others empty."""
    if "simple" not in held.kept:
        part = held.part
        module = device_module(part.indptr)
        if not part.directed:
            rows = module.without_loops(part.indptr, part.indices)
        else:
            turned, _ = yield from turned_rows(held)
            if part.in_part is None:
                turned = View(*transposed(*transposed(turned.indptr, turned.indices)))  # sorted
            rows = module.united(part.indptr, part.indices, turned.indptr, turned.indices)
        held.kept["simple"] = View(*rows)
    return held.kept["simple"]


def present_rows(held: Held) -> Steps:
    """bool[n]: which owned rows are vertices; False for those of others."""
    if "present" not in held.kept:
        part = held.part
        present = part.indptr[1:] > part.indptr[:-1]
        present[part.added] = True
        if part.directed:
            entered = yield from _entered(held)
            present |= entered
        held.kept["present"] = present & held.is_owned
    return held.kept["present"]


def _entered(held: Held) -> Steps:
    """bool[n]: which owned rows an edge enters, as the shards' entries tell their owners, unless
    the turned rows are here already."""
    if held.part.in_part is not None or "turned" in held.kept:
        turned, _ = yield from turned_rows(held)
        return turned.indptr[1:] > turned.indptr[:-1]
    entered = marked(held.num_rows, held.part.indices)
    rows = held.by_owner(held.rows_where(entered))
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


def border(held: Held, name: str, view: View) -> Steps:
    """Border of a view that is called by this name."""
    name = f"border of {name}"
    if name not in held.kept:
        mask = marked(held.num_rows, view.indices)
        mask &= ~held.is_owned
        wanted = held.by_owner(held.rows_where(mask))
        inbox, _ = yield [(of,) if len(of) else None for of in wanted], None
        none = view.indices[:0]
        given = [none if message is None else message[0] for message in inbox]
        held.kept[name] = Border(wanted, given)
    return held.kept[name]


def exchanged(held: Held, across: Border, values: Array, value: Any = None) -> Steps:
    """Bring the values of all wanted rows here: values[v], of rows v of others, is their owners'
    afterwards. Returns what every shard said along with it (`value`)."""
    outbox: Messages = [(values[rows],) if len(rows) else None for rows in across.given]
    inbox, said = yield outbox, value
    for rows, message in zip(across.wanted, inbox, strict=True):
        if message is not None:
            values[rows] = message[0]
    return said


def changes(held: Held, across: Border, values: Array, changed: Array, value: Any = None) -> Steps:
    """([(rows, values)] of rows of others that changed, what every shard said). changed: bool[n],
    which own rows did. A shard sends places and values, or all values where these take less."""
    inbox, said = yield [_changes(rows, values, changed) for rows in across.given], value
    came = []
    for rows, message in zip(across.wanted, inbox, strict=True):
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
