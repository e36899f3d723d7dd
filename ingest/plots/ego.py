"""A picture of one ego network and its contexts, as PNG or SVG.

Contexts are discs around the owner, each in its colour and shape, their vertices spread over the
disc like the seeds of a sunflower (Vogel, "A better way to construct the sunflower head", Math.
Biosciences 44, 1979). Neighbours in no context are spread in the same way around all of them.

A picture is bounded however large the network is: MOST_VERTICES vertices, each with its line to the
owner, and MOST_EDGES edges. The title says how many of each are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from algorithms.diversity.network import EgoNetwork
from lpma.dependencies import optional_import

from ..state.vertex_names import word_of
from ..types import Array, Name
from .style import COLORS, INK, MARKERS, StrPath, drawing

MOST_VERTICES = 4_000  # drawn
MOST_EDGES = 20_000  # drawn
APART = 2.2  # between two discs, where a label fits
NAMED = 80  # neighbours whose names are written, at most
GOLDEN = np.pi * (3 - 5**0.5)
NO_CONTEXT, FAINT = "#b8b8b8", 0.35


def place(sizes: Sequence[int], others: int) -> tuple[list[Array], Array]:
    """float64[size, 2] for each context, and float64[others, 2]: the positions of their vertices,
    about 1 apart, around the owner at (0, 0)."""
    radii = np.sqrt(np.array(sizes, np.float64)) * 0.7
    upto = np.cumsum(2 * radii + APART)
    around = upto[-1] if len(upto) else 0.0
    ring = max(around / (2 * np.pi), max(radii, default=-1.0) + 1)
    discs = []
    for radius, end, size in zip(radii, upto, sizes, strict=True):
        angle = 2 * np.pi * (end - radius - APART / 2) / around
        i = np.arange(size)
        spread, turn = radius * np.sqrt((i + 0.5) / size), i * GOLDEN
        center = ring * np.array([np.cos(angle), np.sin(angle)])
        discs.append(center + spread[:, None] * np.stack((np.cos(turn), np.sin(turn)), axis=1))
    i = np.arange(others)
    inner = ring + max(radii, default=0.0) + 1
    spread, turn = np.sqrt(inner**2 + i * 0.4), i * GOLDEN
    return discs, spread[:, None] * np.stack((np.cos(turn), np.sin(turn)), axis=1)


def plot_ego(
    ego: EgoNetwork, owner: int, contexts: Sequence[Array], names: Array, path: StrPath,
    title: str = "", labels: Sequence[str] = (),
) -> None:  # fmt: skip
    """Draw an ego network and its contexts, which are arrays of its vertices.

    names: what each vertex of the graph goes by. labels: what to call each context; none: nothing.
    path: .png or .svg. Raises PathError, MissingPackage."""
    whole, (ego, kept) = ego, thinned(ego, contexts)
    d = len(ego.vertices)
    places = [np.searchsorted(ego.vertices, context) for context in kept]
    context_of = np.full(d, -1)
    for number, its in enumerate(places):
        context_of[its] = number
    alone = np.flatnonzero(context_of < 0)
    discs, ring = place([len(its) for its in places], len(alone))
    at = np.zeros((d, 2))
    for its, disc in zip([*places, alone], [*discs, ring], strict=True):
        at[its] = disc

    with drawing(path, 8.5, 8.8) as figure:
        axes = figure.add_subplot()
        axes.set_aspect("equal")
        axes.set_axis_off()
        drawn = _draw_edges(axes, ego, at, context_of)
        size = max(8, min(40, 8000 / max(d, 1)))
        axes.scatter(*at[alone].T, s=0.3 * size, c=NO_CONTEXT, linewidths=0, zorder=3)
        for number, its in enumerate(places):
            look = number % len(COLORS)
            axes.scatter(*at[its].T, s=size, c=COLORS[look], marker=MARKERS[look], linewidths=0,
                         zorder=3)  # fmt: skip
        axes.scatter([0], [0], s=120, c=INK, marker="*", zorder=4)
        _write_name(axes, names[[owner]].tolist()[0], np.zeros(2), 7, zorder=6, weight="bold")
        if d <= NAMED:
            for name, point in zip(names[ego.vertices].tolist(), at, strict=True):
                _write_name(axes, name, point, 3, fontsize=8)
        if kept is contexts:  # thinned ones come in another order
            _write_labels(axes, labels, discs)
        about = _said(len(whole.vertices), d, "neighbours") + ", "
        about += _said(len(whole.src), drawn, "edges among them")
        axes.set_title(about, loc="center", weight="normal", parse_math=False)
        if title:
            figure.suptitle(title, size=13, weight="bold", parse_math=False)


def _write_labels(axes: Any, labels: Sequence[str], discs: Sequence[Array]) -> None:
    """Write what contexts are called, each above its disc, on a ground that lets it be read."""
    ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1}
    for label, disc in zip(labels, discs, strict=False):
        top = np.array([disc[:, 0].mean(), disc[:, 1].max()])
        axes.annotate(label, top, xytext=(0, 7), textcoords="offset points", ha="center",
                      fontsize=9, parse_math=False, bbox=ground, zorder=5)  # fmt: skip


def _write_name(axes: Any, name: Name, at: Array, apart: float, **how: Any) -> None:
    """Write what a vertex goes by, verbatim: a dollar sign does not begin a formula."""
    axes.annotate(word_of(name), at, xytext=(apart, apart), textcoords="offset points",
                  parse_math=False, **how)  # fmt: skip


def thinned(ego: EgoNetwork, contexts: Sequence[Array]) -> tuple[EgoNetwork, Sequence[Array]]:
    """The part of an ego network that is drawn, and its contexts: all of it, or MOST_VERTICES
    vertices, those of the largest contexts first and those of no context last."""
    if len(ego.vertices) <= MOST_VERTICES:
        return ego, contexts
    room, parts = MOST_VERTICES, []
    for context in sorted(contexts, key=len, reverse=True):
        if room == 0:
            break
        parts.append(context[:room])
        room -= len(parts[-1])
    alone = np.setdiff1d(ego.vertices, np.concatenate((ego.vertices[:0], *contexts)))
    kept = np.isin(ego.vertices, np.concatenate((alone[:room], *parts)))
    number, inside = np.cumsum(kept) - 1, kept[ego.src] & kept[ego.dst]
    src, dst = number[ego.src[inside]], number[ego.dst[inside]]
    return EgoNetwork(ego.vertices[kept], src, dst), parts


def _said(count: int, drawn: int, what: str) -> str:
    return f"{count:,} {what}" + (f" ({drawn:,} drawn)" if drawn < count else "")


def _draw_edges(axes: Any, ego: EgoNetwork, at: Array, context_of: Array) -> int:
    """Draw edges within a context in its colour, the others faint. Returns how many are drawn."""
    collections = optional_import("matplotlib.collections", "matplotlib", "a plot")
    step = -(-len(ego.src) // MOST_EDGES) or 1
    src, dst = ego.src[::step], ego.dst[::step]
    within = np.where(context_of[src] == context_of[dst], context_of[src], -1)
    lines = np.stack((at[src], at[dst]), axis=1)
    ends = at[context_of >= 0]
    spokes = np.stack((np.zeros_like(ends), ends), axis=1)
    alpha = min(0.6, 40 / max(len(src), 1) ** 0.5)
    inside = within >= 0
    colors = [COLORS[context % len(COLORS)] for context in within[inside].tolist()]
    for segments, look in (
        (spokes, {"colors": INK, "linewidths": 0.3, "alpha": 0.1}),
        (lines[~inside], {"colors": NO_CONTEXT, "linewidths": 0.4, "alpha": FAINT}),
        (lines[inside], {"colors": colors, "linewidths": 0.6, "alpha": alpha}),
    ):
        axes.add_collection(collections.LineCollection(segments, zorder=2, **look))
    return len(src)
