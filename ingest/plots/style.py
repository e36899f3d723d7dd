"""How every picture of the project looks: colours, sizes, ticks, and the file it goes to.

Colours are Okabe and Ito's ("Color universal design", 2008), which colour-blind eyes tell apart.
Lines differ in more than colour (dashes, markers), so that a picture can be read in grey. Ticks are
plain numbers, never powers. Grids, and all that is beside the point, are faint.

matplotlib is imported when a picture is drawn, on its Agg canvas directly: no screen is needed, and
pyplot's global state is not touched. Settings hold within `drawing` and are no program's but ours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lpma.dependencies import optional_import
from lpma.file.atomic import atomic_write

StrPath = str | os.PathLike[str]

BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
SKY, GOLD, INK = "#56b4e9", "#e69f00", "#000000"
COLORS = (BLUE, ORANGE, GREEN, PURPLE, SKY, GOLD, INK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # one for each colour
DASHES = ("-", "--", ":", "-.")
BESIDE = "#9a9a9a"  # what is beside the point
DPI = 130

_SETTINGS: dict[str, Any] = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
}


@contextmanager
def drawing(path: StrPath, width: float, height: float) -> Iterator[Any]:
    """A matplotlib figure, in inches, to draw on within; it is written to `path` afterwards, as
    .svg if the name says so, else as PNG. Raises PathError, MissingPackage.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with drawing(f"{folder}/a.png", 4, 3) as figure:
    ...         axes = figure.add_subplot()
    ...     Path(f"{folder}/a.png").is_file()
    True
    """
    matplotlib = optional_import("matplotlib", "matplotlib", "a plot")
    figures = optional_import("matplotlib.figure", "matplotlib", "a plot")
    canvas = optional_import("matplotlib.backends.backend_agg", "matplotlib", "a plot")
    with matplotlib.rc_context(_SETTINGS):
        figure = figures.Figure(figsize=(width, height), dpi=DPI, layout="constrained")
        canvas.FigureCanvasAgg(figure)
        yield figure
        write_figure(figure, path)


def write_figure(figure: Any, path: StrPath) -> None:
    """Write a figure as .svg if the name says so, else as PNG. Raises PathError."""
    kind = Path(path).suffix if Path(path).suffix == ".svg" else ".png"
    with atomic_write(path, suffix=kind) as file:
        figure.savefig(file, format=kind[1:])


def plain(value: float, place: int | None = None) -> str:
    """A tick's label, without exponents. place: which tick it is, which matplotlib gives.

    >>> plain(10_000), plain(0.5), plain(0.00001)
    ('10,000', '0.5', '0.00001')
    """
    return f"{value:,.0f}" if abs(value) >= 1 and value == round(value) else _fraction(value)


def _fraction(value: float) -> str:
    return f"{value:,.9f}".rstrip("0").rstrip(".") if value else "0"


def log_ticks(axis: Any, low: float, high: float) -> None:
    """Plain labels for a logarithmic axis from `low` to `high`: at powers of ten and, where there
    is room for them, at 2 and 5 times these, or at all multiples. More would overlap."""
    shown = _multiples(high / low, axis.axis_name == "x", axis.axis_name == "x" and low < 0.01)

    def minor(value: float, place: int) -> str:
        return plain(value) if f"{value:e}"[0] in shown else ""

    axis.set_major_formatter(plain)
    axis.set_minor_formatter(minor)


def _multiples(ratio: float, side_by_side: bool, long: bool) -> str:
    """Which multiples of powers of ten have a label. long: labels have many digits."""
    if ratio < 10:
        return "25" if long else "123456789"
    return "25" if ratio < (100 if side_by_side else 1000) and not long else ""
