"""Oriented rows, with every edge of the simple view once: what is shipped where neighbours'
neighbours matter.

Vertices are ranked as in `triangles.ranked`: from the highest degree down, ties by ascending id. An
*oriented* row holds the neighbours of higher degree, so none is longer than sqrt(2m) (Chiba and
Nishizeki, "Arboricity and subgraph listing algorithms", SIAM J. Comput. 14, 1985), and those of
hubs, which most shards read, are shortest. It takes the degrees of own rows and their neighbours.
"""

from __future__ import annotations

from lpma.cpu.jit import compiled

from ...arrays import Array
from ...views.simple import View
from ...views.simple_cpu import chosen
from ..runtime.rows import joined, packed
from ..runtime.state import ShardState
from ..runtime.types import Messages, Steps
from .views import Halo, exchanged, halo, simple_rows


def degrees_around(state: ShardState) -> Steps:
    """int64[n]: the degrees of own rows and their neighbours in the simple view; 0 of others."""
    if "degrees" not in state.cache:
        view = yield from simple_rows(state)
        across = yield from halo(state, "simple", view)
        degree = state.xp.diff(view.indptr)
        yield from exchanged(state, across, degree)
        state.cache["degrees"] = degree
    return state.cache["degrees"]


def oriented_rows(state: ShardState) -> Steps:
    """View: the oriented rows of own vertices, sorted by id."""
    degree = yield from degrees_around(state)
    view = yield from simple_rows(state)
    if not view.on_device:
        return View(*chosen(_keep_oriented, view.indptr, view.indices, degree))
    from .cuda import keep_oriented

    return View(*keep_oriented(view.indptr, view.indices, degree))


def shipped(state: ShardState, oriented: View, across: Halo) -> Steps:
    """View: the oriented rows of own vertices, and of those to be received by `across`."""
    outbox: Messages = [
        (*packed(oriented.indptr, rows, [oriented.indices]),) if len(rows) else None
        for rows in across.send
    ]
    inbox, _ = yield outbox, None
    own = state.rows_where(oriented.indptr[1:] > oriented.indptr[:-1])
    parts = [(own, *packed(oriented.indptr, own, [oriented.indices]))]
    for rows, message in zip(across.receive, inbox, strict=True):
        if message is not None:
            parts.append((rows, *message))
    return View(*joined(state.num_rows, oriented.indptr, parts, 1))


@compiled
def _keep_oriented(
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
