"""Structural diversity over shards: each scores the vertices that it owns.

The ego network of a vertex has the edges among its neighbours. Each of them is in the oriented row
(`oriented`) of one of its ends, which is a neighbour too. So a shard fetches the oriented rows of
the neighbours of its vertices, once, and keeps the graph of its rows and these: in it, the ego
networks of its own vertices are whole. That graph has m edges at most; a shard of few among many
has nearly all of them, since nearly all are near some vertex of its own.

Then the one-device programs score own vertices, and the best of all shards are the best of each
shard's best.
"""

from __future__ import annotations

from lpma.arrays import to_host
from lpma.errors import BatchError

from ...diversity import schedule, search
from ...diversity.methods import make_for, workers
from ...diversity.schedule import cost
from ...triangles.ranked import MOST_EDGES
from ...views.simple import symmetric
from ..runtime.state import ShardState
from ..runtime.types import Steps
from .oriented import inside, oriented_rows, shipped
from .views import halo, marked, present_rows, simple_rows


def diversity(state: ShardState, model: str, k: int, method: str) -> Steps:
    """int32: the score of each owned row."""
    around = yield from _around(state)
    own = to_host(state.owned)
    scorers = workers(make_for(method), around, model, k, None)
    if len(scorers) == 1 or not len(own):
        return to_host(scorers[0].scores(own))
    return schedule.scores(scorers, own, cost.estimate(scorers[0], own, len(scorers)))


def top_diversity(state: ShardState, model: str, k: int, t: int, method: str) -> Steps:
    """[(vertex, score, contexts)]: the t best of the owned vertices, from the best down."""
    around = yield from _around(state)
    present = yield from present_rows(state)
    scorers = workers(make_for(method), around, model, k, None)
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
        near = inside(rows, marked(state.num_rows, view.indices) | state.is_owned)
        _, edges = yield state.nothing(), len(near.indices)
        if max(edges) > MOST_EDGES:
            raise BatchError(
                f"a shard scores among {max(edges)} edges, and at most {MOST_EDGES} are taken: "
                "diversity needs more shards"
            )
        state.cache["egos"] = symmetric(near)
    return state.cache["egos"]
