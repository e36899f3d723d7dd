"""Structural diversity over shards: each scores the vertices that it owns.

The ego network of a vertex has the edges among its neighbours. Each of them is in the upper row
(`upper`) of one of its ends, which is a neighbour too. So a shard fetches the upper rows of the
neighbours of its vertices, once, and keeps the graph of its rows and these: in it, the ego networks
of its own vertices are whole. That graph has m edges at most; a shard of few among many has nearly
all of them, since nearly all are near some vertex of its own.

Then the one-device programs score own vertices, and the best of all shards are the best of each
shard's best.
"""

from __future__ import annotations

from lpma.arrays import to_host
from lpma.errors import BatchError

from ..ego import cost, schedule, search
from ..ego.methods import make_for, workers
from ..triangles.types import MOST_EDGES
from ..views.simple import symmetric
from .held import Held
from .types import Steps
from .upper import inside, shipped, upper_rows
from .views import border, marked, present_rows, simple_rows


def diversity(held: Held, model: str, k: int, method: str) -> Steps:
    """int32: the score of each owned row."""
    around = yield from _around(held)
    own = to_host(held.owned)
    scorers = workers(make_for(method), around, model, k, None)
    if len(scorers) == 1 or not len(own):
        return to_host(scorers[0].scores(own))
    return schedule.scores(scorers, own, cost.estimate(scorers[0], own, len(scorers)))


def top_diversity(held: Held, model: str, k: int, t: int, method: str) -> Steps:
    """[(vertex, score, contexts)]: the t best of the owned vertices, from the best down."""
    around = yield from _around(held)
    present = yield from present_rows(held)
    scorers = workers(make_for(method), around, model, k, None)
    return [
        (int(best.vertex), int(best.score), [to_host(context) for context in best.contexts])
        for best in search(scorers, t, vertices=present)
    ]


def _around(held: Held) -> Steps:
    """View: the simple graph of own rows and of all edges among the neighbours of each."""
    if "egos" not in held.kept:
        view = yield from simple_rows(held)
        upper = yield from upper_rows(held)
        across = yield from border(held, "simple", view)
        rows = yield from shipped(held, upper, across)
        near = inside(rows, marked(held.num_rows, view.indices) | held.is_owned)
        _, edges = yield held.nothing(), len(near.indices)
        if max(edges) > MOST_EDGES:
            raise BatchError(
                f"a shard scores among {max(edges)} edges, and at most {MOST_EDGES} are taken: "
                "diversity needs more shards"
            )
        held.kept["egos"] = symmetric(near)
    return held.kept["egos"]
