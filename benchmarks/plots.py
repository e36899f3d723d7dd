"""Line plots of an experiment, as PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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
    from matplotlib.figure import Figure  # not pyplot: no screen and no global state

    figure = Figure(figsize=(8, 3.6 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False)
    for axis, panel in zip(axes[:, 0], panels, strict=True):
        for name, (x, y) in panel.lines.items():
            (line,) = axis.plot(x, y, label=name, lw=1.2, marker="o" if panel.points else "", ms=3)
            for mark in panel.marks.get(name, ()):
                axis.axvline(mark, color=line.get_color(), alpha=0.25, lw=1)
        axis.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
        if "x" in panel.log:
            axis.set_xscale("log")
        if "y" in panel.log:
            axis.set_yscale("log")
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return str(path)
