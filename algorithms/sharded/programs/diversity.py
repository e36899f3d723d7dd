"""Structural diversity over shards: each scores the vertices that it owns.

An edge of an ego network is in the oriented row (`oriented`) of one of its ends, a neighbour of the
owner. So a shard fetches the oriented rows of its vertices' neighbours, once, and keeps the graph
of its rows and these, in which the ego networks of its own vertices are complete. With few shards
that is nearly the whole graph.

The one-device programs score own vertices; the best of all are among each shard's best.
"""

from __future__ import annotations

from lpma.arrays import to_host
from lpma.errors import BatchError

from ...diversity import scores, search
from ...diversity.methods import workers
from ...triangles.ranked import MOST_EDGES
from ...views.simple import induced, symmetric
from ..runtime.state import ShardState
from ..runtime.types import Steps
from .oriented import oriented_rows, shipped
from .views import halo, marked, present_rows, simple_rows


def diversity(state: ShardState, model: str, k: int, method: str) -> Steps:
    """int32: the score of each owned row."""
    around = yield from _around(state)
    scorers = workers(method, around, model, k)
    return to_host(scores(scorers, to_host(state.owned)))


def top_diversity(state: ShardState, model: str, k: int, t: int, method: str) -> Steps:
    """[(vertex, score, contexts)]: the t best of the owned vertices, from the best down."""
    around = yield from _around(state)
    present = yield from present_rows(state)
    scorers = workers(method, around, model, k)
    return [
        (int(best.vertex), int(best.score), [to_host(context) for context in best.contexts])
        for best in search(scorers, t, vertices=present)
    ]


def _around(state: ShardState) -> Steps:
    """View: the simple graph of own rows and of all edges among the neighbours of each."""
    if "egos" not in state.cache:
        view = yield from simple_rows(state)
        oriented = yield from oriented_rows(state)
        across = yield from halo(state, "simple", view)
        rows = yield from shipped(state, oriented, across)
        near = induced(rows, marked(state.num_rows, view.indices) | state.is_owned)
        _, edges = yield state.nothing(), len(near.indices)
        if max(edges) > MOST_EDGES:
            raise BatchError(
                f"a shard scores among {max(edges)} edges, and at most {MOST_EDGES} are taken: "
                "diversity needs more shards"
            )
        state.cache["egos"] = symmetric(near)
    return state.cache["egos"]
