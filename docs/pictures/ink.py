"""Colours for light and for dark pages, and how a picture is written.

Fills differ in brightness as well as in hue (Okabe and Ito's palette), so that they can be told
apart in grey and by the colour-blind; where a colour means something, a word or a shape says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

mpl.use("Agg")


@dataclass(frozen=True)
class Ink:
    name: str
    text: str  # words and outlines
    faint: str  # what is beside the point
    empty: str  # a free slot
    held: str  # a slot that holds an edge
    new: str  # what has just come
    moved: str  # what is moved for it
    on_fill: str  # words upon one of the three


LIGHT = Ink("light", "#24292f", "#8c959f", "#eef1f4", "#7db8dc", "#f0b33a", "#d3e8f5", "#10202e")
DARK = Ink("dark", "#e6edf3", "#768390", "#2d333b", "#5fa8d8", "#f0b83c", "#b6d9ef", "#10202e")


def save(draw: Callable[[Ink], Figure], ink: Ink, path: Path) -> None:
    """Draw and write an SVG that is the same, byte for byte, whenever it is drawn again."""
    settings = {
        "svg.hashsalt": path.stem.split("-")[0], "font.size": 9, "text.color": ink.text,
        "axes.edgecolor": ink.faint, "axes.labelcolor": ink.text, "xtick.color": ink.text,
        "ytick.color": ink.text,
    }  # fmt: skip
    with mpl.rc_context(settings):
        figure = draw(ink)
        figure.savefig(path, transparent=True, bbox_inches="tight", metadata={"Date": None})


def canvas(width: float, height: float) -> tuple[Figure, mpl.axes.Axes]:
    """A figure in inches without axes, whose y runs down."""
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.invert_yaxis()
    return figure, axes
