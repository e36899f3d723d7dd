"""A small store, as pictures need it: what lies in each slot of each segment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

import lpma
from lpma.pma.layout import level_and_offset, place_in_level
from pictures.ink import Ink

Edges = list[tuple[int, int]]
SLOTS = 4  # of a segment
HEIGHT = 1.8


@dataclass
class Segment:
    rank: int
    level: int
    offset: int  # in its level's allocation
    edges: Edges  # packed left


def made(edges: int, seed: int = 1) -> lpma.Graph:
    """A graph with so many random edges among the vertices 0 … 9."""
    g = lpma.Graph(device="cpu", segment_size=SLOTS, global_merge="never")
    chosen = np.random.default_rng(seed).permutation(90)[:edges]
    for some in np.array_split(chosen, max(edges // 4, 1)):
        g.insert(some // 9, some % 9)
    return g


def segments(g: lpma.Graph) -> list[Segment]:
    """In rank order, in which the filled slots are sorted by (src, dst)."""
    kept = g._stores.out.segments
    found = []
    for rank in range(1 << kept.m):
        level, offset = level_and_offset(rank, kept.m)
        count = int(kept.counts[(1 << kept.m) + rank])
        place = place_in_level(level, offset)
        keys = kept.keys[level][place * SLOTS :][:count].tolist()
        found.append(Segment(rank, level, offset, [(k >> 32, k & 0xFFFFFFFF) for k in keys]))
    return found


def draw_segment(axes: Axes, x: float, y: float, edges: Edges, ink: Ink, fill: str) -> None:
    """A segment's slots from (x, y) on, each one wide: the source of an edge above its target."""
    for slot in range(SLOTS):
        held = slot < len(edges)
        axes.add_patch(
            Rectangle((x + slot, y), 1, HEIGHT, facecolor=fill if held else ink.empty,
                      edgecolor=ink.faint, linewidth=0.6)
        )  # fmt: skip
        if held:
            u, v = edges[slot]
            axes.text(x + slot + 0.5, y + HEIGHT / 2 + 0.05, f"{u}\n{v}", fontsize=6.5, ha="center",
                      va="center", color=ink.on_fill)  # fmt: skip
    axes.add_patch(
        Rectangle((x, y), SLOTS, HEIGHT, facecolor="none", edgecolor=ink.text, linewidth=1.1)
    )
