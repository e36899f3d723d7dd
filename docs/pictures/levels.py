"""The same segments twice: in the order of their ranks, and in the levels that hold them."""

from __future__ import annotations

from matplotlib.figure import Figure

from pictures.ink import Ink, canvas
from pictures.small_store import HEIGHT, SLOTS, draw_segment, made, segments

STEP = SLOTS + 0.6


def draw(ink: Ink) -> Figure:
    kept = segments(made(24))
    figure, axes = canvas(7.6, 4.4)
    axes.text(0, -1.5, "In rank order: one sorted array with gaps", weight="bold")
    levels = max(segment.level for segment in kept)
    top = {level: 6.0 + 2.8 * level for level in range(levels + 1)}
    axes.text(0, 5.0, "In memory: each level is an allocation of its own", weight="bold")
    for segment in kept:
        x = segment.rank * STEP
        draw_segment(axes, x, 0, segment.edges, ink, ink.held)
        axes.text(x + SLOTS / 2, -0.5, f"rank {segment.rank}", ha="center", fontsize=7.5)
        under, y = 4 + segment.offset * SLOTS, top[segment.level]
        draw_segment(axes, under, y, segment.edges, ink, ink.held)
        axes.text(x + SLOTS / 2, HEIGHT + 0.6, f"level {segment.level}", ha="center", va="center",
                  fontsize=7.5, color=ink.text)  # fmt: skip
        axes.text(under + SLOTS / 2, y + HEIGHT + 0.4, f"rank {segment.rank}", ha="center",
                  va="center", fontsize=6.5, color=ink.text)  # fmt: skip
    for level, y in top.items():
        name = "head" if level == 0 else f"level {level}"
        axes.text(3.6, y + HEIGHT / 2, name, ha="right", va="center", fontsize=8.5)
    axes.set_xlim(-0.3, len(kept) * STEP)
    axes.set_ylim(top[levels] + 2.8, -2.4)
    return figure
