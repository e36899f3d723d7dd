"""What the demo computes on its last snapshot, each figure with the milliseconds it took, and what
these figures say about the vertices, by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import algorithms
from lpma import Snapshot
from lpma.arrays import to_host

from ..state.vertex_names import word_of
from ..types import Array, Name
from .town import Circle

DIVERSITY_K = 4  # a social context is a connected 4-truss among a vertex's neighbours
NAMED = 4  # vertices of the largest core, in the sentence about it


@dataclass
class Figures:
    """summary: entries of the summary, JSON. core: the rows of the largest core. bridge: the vertex
    with the most social contexts, by rows."""

    summary: dict[str, Any] = field(default_factory=dict)
    core: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    bridge: algorithms.Diverse = field(default_factory=lambda: algorithms.Diverse(0, 0, []))


def figures(s: Snapshot) -> Figures:
    """All figures of a snapshot. A figure's time includes reading its arrays on the host, so that
    no device work is left to the next figure. REQUIRES: a snapshot without names, so that rows are
    found; and what this calls is loaded, if no time of that is to be in the figures."""
    found = Figures()
    for name, compute in _FIGURES.items():
        started = time.perf_counter()
        compute(s, found)
        found.summary[f"{name}_ms"] = round(1000 * (time.perf_counter() - started), 2)
    return found


def _core(s: Snapshot, found: Figures) -> None:
    numbers = to_host(algorithms.core_numbers(s))
    largest = int(numbers.max(initial=0))
    found.core = np.flatnonzero((numbers == largest) & to_host(s.present))
    found.summary |= {"max_core": largest, "max_core_vertices": len(found.core)}


def _truss(s: Snapshot, found: Figures) -> None:
    numbers = to_host(algorithms.truss_numbers(s).truss)
    largest = int(numbers.max(initial=0))
    edges = int(np.count_nonzero(numbers == largest))
    found.summary |= {"max_truss": largest, "max_truss_edges": edges}


def _triangles(s: Snapshot, found: Figures) -> None:
    found.summary["triangles"] = algorithms.triangle_count(s)


def _diversity(s: Snapshot, found: Figures) -> None:
    vertex, score, contexts = algorithms.top_diversity(s, "truss", DIVERSITY_K, 1)[0]
    found.bridge = algorithms.Diverse(vertex, score, [to_host(context) for context in contexts])
    found.summary["most_contexts"] = score


_FIGURES: dict[str, Callable[[Snapshot, Figures], None]] = {
    "core": _core,
    "truss": _truss,
    "triangles": _triangles,
    "diversity": _diversity,
}


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


def who(
    found: Figures, names: Array, circles: Sequence[Circle], stream_names: Array
) -> dict[str, Any]:
    """Entries of the summary that name vertices. names: what each row of the snapshot goes by;
    stream_names: what each id in `circles` goes by."""
    planted = {circle.name: set(stream_names[circle.members].tolist()) for circle in circles}
    core = names[found.core].tolist()
    contexts = [names[np.sort(context)].tolist() for context in found.bridge.contexts]
    owner = names[[found.bridge.vertex]].tolist()[0]
    labels = [circle_of(context, planted)[0] for context in contexts]
    return {
        "core_members": core,
        "most_diverse": owner,
        "contexts": contexts,
        "context_names": labels,
        "found": [
            _core_in_words(found.summary["max_core"], core, planted),
            _bridge_in_words(owner, contexts, labels),
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
