"""What the demo computes on its last snapshot, each figure with the milliseconds it took, and what
these figures say about the vertices, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpma import Graph, Snapshot

from ..analyses import ANALYSES, Result, timed
from ..state.vertex_names import VertexNames, Vertices, word_of
from ..types import Array, Name
from .town import Circle

DIVERSITY_K = 4  # a social context is a connected 4-truss among a vertex's neighbours
_ANALYSES: dict[str, dict[str, Any]] = {
    "core": {}, "truss": {}, "triangles": {},
    "diversity": {"model": "truss", "k": DIVERSITY_K, "top": 1, "every": False},
}  # fmt: skip
NAMED = 4  # vertices of the largest core, in the sentence about it


@dataclass(frozen=True)
class Figures:
    """What was found. s: the snapshot, by rows; v: what its rows go by. summary: entries of the
    summary, JSON. core: the vertices of the largest core. owner, contexts: the vertex with the most
    social contexts, and these."""

    s: Snapshot
    v: Vertices
    summary: dict[str, Any]
    core: list[Name]
    owner: Name
    contexts: list[list[Name]]


def figures(graph: Graph) -> Figures:
    """All figures of a graph with a vertex."""
    taken, seconds = timed(lambda: graph.snapshot(compact=True))
    s, v = taken._with(names=None), Vertices(taken, VertexNames(graph.names))
    summary: dict[str, Any] = {"snapshot_ms": round(1000 * seconds, 2)}
    found: dict[str, Result] = {}
    for name, options in _ANALYSES.items():
        found[name], seconds = timed(lambda: ANALYSES[name](s, v, **options))  # noqa: B023
        summary[f"{name}_ms"] = round(1000 * seconds, 2)
    core, best = found["core"], found["diversity"].top(1)[0]
    members = v.list(np.flatnonzero(core.values == core.values.max()))
    return Figures(
        s, v,
        {
            **summary,
            "max_core": core.summary["max_core"],
            "max_core_vertices": len(members),
            "max_truss": found["truss"].summary["max_truss"],
            "max_truss_edges": found["truss"].summary["edges_in_it"],
            "triangles": found["triangles"].summary["triangles"],
            "most_contexts": best["score"],
        },
        members, best["vertex"], best["contexts"],
    )  # fmt: skip


# In words --------------------------------------------------------------------------------------


def called(name: Name) -> str:
    return f"user {name}" if isinstance(name, int) else word_of(name)


def circle_of(names: Sequence[Name], circles: dict[str, set[Name]]) -> tuple[str, int]:
    """The circle that most of these vertices are in, and how many are; "" and 0 if there is none.

    >>> circle_of(["Ada", "Ben"], {"the choir": {"Ada", "Ben"}, "the office": {"Ada"}})
    ('the choir', 2)
    """
    met = {name: len(members.intersection(names)) for name, members in circles.items()}
    best = max(met, key=lambda name: met[name], default="")
    return (best, met[best]) if best and met[best] else ("", 0)


def who(found: Figures, circles: Sequence[Circle], stream_names: Array) -> dict[str, Any]:
    """Entries of the summary that name vertices. stream_names: what each id in `circles` goes
    by."""
    planted = {circle.name: set(stream_names[circle.members].tolist()) for circle in circles}
    labels = [circle_of(context, planted)[0] for context in found.contexts]
    return {
        "core_members": found.core,
        "most_diverse": found.owner,
        "contexts": found.contexts,
        "context_names": labels,
        "found": [
            _core_in_words(found.summary["max_core"], found.core, planted),
            _bridge_in_words(found.owner, found.contexts, labels),
        ],
    }


def _core_in_words(number: int, core: list[Name], planted: dict[str, set[Name]]) -> str:
    return (
        f"The largest core: {len(core):,} vertices, each of them tied to {number} or more of the "
        f"others: {named(core, planted)}"
    )


def named(names: Sequence[Name], circles: dict[str, set[Name]]) -> str:
    """A few of these vertices, and the circle that most of them are in.

    >>> named(["Ada", "Ben"], {"the choir": {"Ada", "Ben"}, "the office": {"Ada"}})
    'Ada, Ben. All of them are in the choir.'
    """
    first = ", ".join(called(name) for name in names[:NAMED])
    told = f"{first} and {len(names) - NAMED:,} more." if len(names) > NAMED else f"{first}."
    circle, met = circle_of(names, circles)
    if circle:
        told += f" {'All' if met == len(names) else f'{met:,}'} of them are in {circle}."
    return told


def _bridge_in_words(owner: Name, contexts: list[list[Name]], labels: list[str]) -> str:
    if not contexts:
        return f"No vertex has two neighbours in a {DIVERSITY_K}-truss: nobody bridges anything."
    circles = ", ".join(
        f"{label or 'a group'} ({len(context):,})"
        for label, context in zip(labels, contexts, strict=True)
    )
    one = len(contexts) == 1
    return (
        f"{called(owner)} bridges the most contexts, {len(contexts)} dense "
        f"group{'' if one else 's'} of neighbours that are apart from each other: {circles}."
    )
