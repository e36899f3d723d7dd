"""Every edge of the simple view once, in the row of its end of lower rank: what is shipped where
neighbours' neighbours matter.

Vertices are ranked as in `triangles.ranked`: from the highest degree down, ties by ascending id.
The *upper* rows hold the neighbours of higher rank, so none is longer than sqrt(2m) (Chiba and
Nishizeki, "Arboricity and subgraph listing algorithms", SIAM J. Comput. 14, 1985), and hubs, which
most shards look at, have the shortest. A shard knows the degrees of its own rows and of their
neighbours, which is all that it takes.
"""

from __future__ import annotations

import numpy as np

from lpma.arrays import device_of
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows

from ..views.simple import View, device_module
from ..views.simple_cpu import packed as together
from .held import Held
from .rows import joined, packed
from .types import Array, Messages, Steps
from .views import Border, border, exchanged, simple_rows


def degrees_around(held: Held) -> Steps:
    """int64[n]: the degree, in the simple view, of own rows and their neighbours; 0 of others."""
    if "degrees" not in held.kept:
        view = yield from simple_rows(held)
        across = yield from border(held, "simple", view)
        degree = held.xp.diff(view.indptr)
        yield from exchanged(held, across, degree)
        held.kept["degrees"] = degree
    return held.kept["degrees"]


def upper_rows(held: Held) -> Steps:
    """View: of every own row the neighbours of higher rank, by their ids, rising."""
    degree = yield from degrees_around(held)
    view = yield from simple_rows(held)
    if not view.on_device:
        kept, lengths = np.empty(len(view.indices), np.uint32), np.zeros(len(degree) + 1, np.int64)
        by_rows(_keep_upper, view.indptr, view.indptr, view.indices, degree, kept, lengths)
        return View(*together(view.indptr, kept, lengths))
    from .cuda import keep_upper

    return View(*keep_upper(view.indptr, view.indices, degree))


def shipped(held: Held, upper: View, across: Border) -> Steps:
    """View: the upper rows of own vertices, and of those that are wanted in `across`."""
    outbox: Messages = [
        (*packed(upper.indptr, rows, [upper.indices]),) if len(rows) else None
        for rows in across.given
    ]
    inbox, _ = yield outbox, None
    own = held.rows_where(upper.indptr[1:] > upper.indptr[:-1])
    parts = [(own, *packed(upper.indptr, own, [upper.indices]))]
    for rows, message in zip(across.wanted, inbox, strict=True):
        if message is not None:
            parts.append((rows, *message))
    return View(*joined(held.num_rows, upper.indptr, parts, 1))


def inside(view: View, mask: Array) -> View:
    """The rows of a view with only the entries in a bool[n], from rows in it."""
    with device_of(mask):
        return View(*device_module(mask).induced(view.indptr, view.indices, mask))


@compiled
def _keep_upper(
    first: int, last: int, indptr: Array, indices: Array, degree: Array, kept: Array, lengths: Array
) -> None:
    for u in range(first, last):
        place = indptr[u]
        of_u = degree[u]
        for i in range(indptr[u], indptr[u + 1]):
            v = indices[i]
            kept[place] = v
            place += (degree[v] > of_u) | ((degree[v] == of_u) & (v < u))
        lengths[u + 1] = place - indptr[u]
