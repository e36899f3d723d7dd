"""Inserting where a segment is full: the smallest window with room is spread out anew."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from lpma.pma.density import bounds
from pictures.ink import Ink, canvas
from pictures.small_store import SLOTS, draw_segment, made, segments

STEP = SLOTS + 0.6
FULL = 5  # the rank of the segment that a new edge belongs to


def draw(ink: Ink) -> Figure:
    kept = segments(made(24))
    layers = len(kept).bit_length() - 1
    most, _ = bounds(layers, SLOTS)
    figure, axes = canvas(7.6, 4.1)
    chosen = None
    for layer in range(layers + 1):
        y = 8.6 - 2.3 * layer
        width = 1 << layer
        for first in range(0, len(kept), width):
            edges = sum(len(segment.edges) for segment in kept[first : first + width])
            around = first <= FULL < first + width
            fits = edges + around <= most[layer]
            takes = around and fits and chosen is None
            if takes:
                chosen = (layer, first)
            if layer == 0:
                draw_segment(axes, first * STEP, y, kept[first].edges, ink, ink.held)
                said = "full" if not fits else ""
            else:
                axes.add_patch(
                    FancyBboxPatch(
                        (first * STEP, y), width * STEP - 0.6, 1.2, boxstyle="round,pad=0.05",
                        facecolor=ink.new if takes else "none",
                        edgecolor=ink.text if around else ink.faint,
                        linewidth=1.6 if around else 0.8,
                    )
                )  # fmt: skip
                said = f"{edges} of at most {most[layer]}"
                colour = ink.on_fill if takes else ink.text
                axes.text(first * STEP + width * STEP / 2 - 0.3, y + 0.62, said, ha="center",
                          va="center", fontsize=8, color=colour)  # fmt: skip
    layer, first = chosen or (0, 0)
    u, v = kept[FULL].edges[1]
    middle = FULL * STEP + SLOTS / 2
    axes.annotate(
        f"{u}→{v + 1}", (middle, 10.5), (middle, 12.2), ha="center", weight="bold",
        arrowprops={"arrowstyle": "-|>", "color": ink.text},
    )  # fmt: skip
    axes.text(
        len(kept) * STEP / 2,
        13.5,
        f"Segment {FULL} is full. The window of ranks {first} to "
        f"{first + (1 << layer) - 1} has room: its edges are spread evenly.",
        ha="center",
    )
    axes.set_xlim(-0.3, len(kept) * STEP)
    axes.set_ylim(13.9, 1.2)
    return figure
