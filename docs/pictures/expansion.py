"""Growing: a level is appended, every segment gets an empty neighbour, and no edge moves."""

from __future__ import annotations

from matplotlib.figure import Figure

from lpma.pma.layout import level_and_offset
from pictures.ink import Ink, canvas
from pictures.small_store import SLOTS, draw_segment, made, segments

STEP = SLOTS + 0.6


def draw(ink: Ink) -> Figure:
    kept = segments(made(14))
    levels = len(kept).bit_length() - 1
    figure, axes = canvas(7.6, 3.0)
    axes.text(0, -1.5, f"Before: {len(kept)} segments, almost full", weight="bold")
    axes.text(0, 6.0, f"After: {2 * len(kept)} segments, the new ones empty", weight="bold")
    for segment in kept:
        before = (2 * segment.rank + 0.5) * STEP
        after = 2 * segment.rank * STEP
        draw_segment(axes, before, 0, segment.edges, ink, ink.held)
        draw_segment(axes, after, 7.1, segment.edges, ink, ink.held)
        draw_segment(axes, after + STEP, 7.1, [], ink, ink.held)
        axes.text(before + SLOTS / 2, -0.4, f"rank {segment.rank}, level {segment.level}",
                  ha="center", fontsize=7.5)  # fmt: skip
        axes.annotate("", (after + SLOTS / 2, 4.6), (before + SLOTS / 2, 2.1),
                      arrowprops={"arrowstyle": "-|>", "color": ink.faint})  # fmt: skip
        for rank in (2 * segment.rank, 2 * segment.rank + 1):
            level, _ = level_and_offset(rank, levels + 1)
            axes.text(rank * STEP + SLOTS / 2, 9.6, f"rank {rank}, level {level}",
                      ha="center", fontsize=7.5,
                      weight="bold" if level == levels + 1 else "normal")  # fmt: skip
    axes.set_xlim(-0.3, 2 * len(kept) * STEP)
    axes.set_ylim(10.2, -2.4)
    return figure
