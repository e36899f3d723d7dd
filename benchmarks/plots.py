"""Line plots of an experiment, as PNG, in the style of all pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

from ingest.plots.style import COLORS, DASHES, MARKERS, drawing, log_ticks, plain

Line = tuple[Sequence[float], Sequence[float]]  # x, y


@dataclass(frozen=True)
class Panel:
    """One set of axes. `marks` are x positions drawn as faint vertical lines, by line."""

    title: str
    x: str
    y: str
    lines: Mapping[str, Line]
    log: str = ""  # "x", "y" or "xy"
    points: bool = True  # a dot at every value
    marks: Mapping[str, Sequence[float]] = field(default_factory=dict)


def save(path: Path, panels: Sequence[Panel]) -> str:
    """Draw the panels under one another into `path`, and return it as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with drawing(path, 9, 3.8 * len(panels)) as figure:
        axes = figure.subplots(len(panels), 1, squeeze=False)
        for axis, panel in zip(axes[:, 0], panels, strict=True):
            _draw(axis, panel)
    return str(path)


def _draw(axis: Any, panel: Panel) -> None:
    looks = cycle(zip(COLORS, MARKERS, cycle(DASHES), strict=False))
    for (name, (x, y)), (color, marker, dash) in zip(panel.lines.items(), looks, strict=False):
        marker = marker if panel.points else ""
        axis.plot(x, y, label=name, color=color, marker=marker, linestyle=dash)
        for mark in panel.marks.get(name, ()):
            axis.axvline(mark, color=color, linestyle=dash, alpha=0.3, linewidth=0.9)
    axis.set(xlabel=panel.x, ylabel=panel.y)
    axis.set_title(panel.title, parse_math=False)
    for letter, along in (("x", axis.xaxis), ("y", axis.yaxis)):
        if letter in panel.log:
            axis.set(**{f"{letter}scale": "log"})
            log_ticks(along, *along.get_view_interval())
        else:
            along.set_major_formatter(plain)
    if len(panel.lines) > 1:
        axis.legend(loc="upper left", bbox_to_anchor=(1, 1))  # beside the data, not over them
