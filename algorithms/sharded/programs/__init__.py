"""The programs that workers run, by name.

A program is a function of a worker's `state.ShardState` and of its own arguments that returns a
generator (`types.Steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lpma.errors import BatchError

from ..runtime.state import ShardState
from ..runtime.types import Steps
from .bfs import bfs, hops
from .components import components
from .cores import cores
from .diversity import diversity, top_diversity
from .gathering import degrees, edges_into, present, rows
from .naming import number
from .pagerank import pagerank
from .triangles import triangles

Program = Callable[..., Steps]

PROGRAMS: Mapping[str, Program] = {
    "bfs": bfs,
    "connected_components": components,
    "core_numbers": cores,
    "degrees": degrees,
    "diversity": diversity,
    "edges_into": edges_into,
    "hops": hops,
    "number_names": number,
    "pagerank": pagerank,
    "present": present,
    "rows": rows,
    "top_diversity": top_diversity,
    "triangle_count": triangles,
}


def begun(state: ShardState, program: str, arguments: dict[str, Any]) -> Steps:
    """The program's supersteps, after one in which the workers agree on what they have cached: a
    new one, or one that stopped earlier than others, has less (`ShardState`, invariant 2)."""
    _, kept = yield state.nothing(), tuple(state.cache)
    common = set(kept[0]).intersection(*kept[1:])
    state.cache = {name: what for name, what in state.cache.items() if name in common}
    if state.part.names is not None and program != "number_names":
        raise BatchError("the shards' names are numbered first: `number_names`")
    return (yield from PROGRAMS[program](state, **arguments))
