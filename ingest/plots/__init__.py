"""Pictures of a run and of a graph: PNG files, or SVG if the name ends with .svg.

`plot_latency` follows Figure 9 of the LPMA paper: how long each batch took and, below it, how dense
the structure was; density climbs until an expansion halves it, and latency with it. How pictures
look is in `style.py`.
"""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np

from lpma import Snapshot

from ..types import Array
from .style import BESIDE, BLUE, COLORS, ORANGE, SKY, StrPath, drawing, log_ticks, plain

_FEW = 20  # points that are marked


def expansions(levels: Array) -> Array:
    """int64: the batches, counted from 0, after which the structure had more levels than before.

    >>> expansions(np.array([2, 2, 3, 3, 4]))
    array([2, 4])
    """
    return np.flatnonzero(np.diff(levels) > 0) + 1


def plot_latency(run: dict[str, Array], path: StrPath, title: str = "") -> None:
    """Latency of each batch (ms, logarithmic) and, below, density after it, expansions marked.

    run: columns as `run_log.read_run` returns them; `seconds`, `operations`, `density` and `levels`
    are needed, all of one length. path: .png or .svg. Raises PathError, MissingPackage.

    >>> import tempfile
    >>> run = {"seconds": [0.01, 0.02], "operations": [100, 100], "density": [0.4, 0.6],
    ...        "levels": [3, 3]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_latency({name: np.array(values) for name, values in run.items()},
    ...                  f"{folder}/run.png")
    """
    batch = np.arange(1, len(run["seconds"]) + 1)
    milliseconds = 1000 * run["seconds"]
    asked = run["queries"] > 0 if "queries" in run else np.zeros(len(batch), bool)
    marks = batch[expansions(run["levels"])]
    with drawing(path, 9, 5.4) as figure:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        for axes in (above, below):
            for mark in marks:
                axes.axvline(mark, color=BESIDE, linewidth=0.9, linestyle=":", zorder=1,
                             label="expansion" if mark == marks[0] else "_again")  # fmt: skip
        # Batches with queries cost more, and often alternate with others: as rings, they do not
        # hide the line.
        above.plot(batch[~asked], milliseconds[~asked], color=BLUE, linewidth=1, marker=".",
                   label="batch")  # fmt: skip
        if asked.any():
            above.plot(batch[asked], milliseconds[asked], "o", color=SKY, fillstyle="none",
                       label="batch with queries")  # fmt: skip
        above.set(yscale="log", ylabel="latency (ms)", xlim=(0, len(batch) + 1))
        log_ticks(above.yaxis, *above.get_ylim())
        below.plot(batch, run["density"], color=ORANGE)
        below.set(xlabel="batch", ylabel="density", ylim=(0, 1))
        title = title or f"{len(batch):,} batches, {int(run['operations'].sum()):,} operations"
        above.set_title(title, parse_math=False)
        figure.align_ylabels()
        figure.legend(*above.get_legend_handles_labels(), loc="outside lower center", ncols=3)


def plot_degrees(s: Snapshot, path: StrPath, title: str = "") -> None:
    """The complementary distribution of degrees, out and in for a directed graph, on two
    logarithmic axes. path: .png or .svg. Raises PathError, MissingPackage."""
    sides = {"out-degree" if s.directed else "degree": np.diff(s._indptr)}
    if s.directed:
        sides["in-degree"] = np.bincount(s._indices, minlength=s.num_rows)
    with drawing(path, 6.5, 4.8) as figure:
        axes = figure.add_subplot()
        looks = ((BLUE, "o", "-"), (ORANGE, "s", "--"))
        for (label, degrees), (color, marker, line) in zip(sides.items(), looks, strict=False):
            x, y = distribution(degrees[degrees > 0], s.num_vertices)
            axes.loglog(
                x, y, color=color, marker=marker, linestyle=line, linewidth=0.8, label=label
            )
        axes.set(xlabel="degree d", ylabel="share of vertices with degree ≥ d")
        _plain_ticks(axes)
        title = title or f"{s.num_vertices:,} vertices, {s.num_edges:,} edges"
        axes.set_title(title, parse_math=False)
        if s.num_edges:
            axes.legend(loc="lower left")


def distribution(values: Array, of: int | None = None) -> tuple[Array, Array]:
    """The values that occur, ascending, and for each the share, of as many as that or of all
    values, that are at least as large, float64[k].

    >>> distribution(np.array([5, 2, 2, 2]))
    (array([2, 5]), array([1.  , 0.25]))
    """
    occurring, counts = np.unique(values, return_counts=True)
    return occurring, np.cumsum(counts[::-1])[::-1] / max(len(values) if of is None else of, 1)


def plot_distribution(values: Array, name: str, path: StrPath, title: str = "") -> None:
    """The complementary distribution of a value per vertex or edge, on logarithmic axes, which
    leave out values of 0 or less. name: what the value is called. path: .png or .svg. Raises
    PathError, MissingPackage."""
    x, y = distribution(values)
    with drawing(path, 6.5, 4.8) as figure:
        axes = figure.add_subplot()
        axes.loglog(x[x > 0], y[x > 0], color=BLUE, marker="o", linewidth=0.8)
        axes.set(xlabel=name, ylabel=f"share with {name} ≥ x")
        _plain_ticks(axes)
        axes.set_title(title, parse_math=False)


def plot_totals(
    series: dict[str, tuple[Any, Any]], path: StrPath, title: str = "", over: str = "time"
) -> None:  # fmt: skip
    """Totals of figures over the stream's time, one below the other, each as steps.

    series: by figure, stamps (ms since 1970, not falling) and the values from then on, of equal
    length and at least one. over: "version" if versions take the place of stamps. path: .png or
    .svg. Raises PathError, MissingPackage.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_totals({"triangles": ([1000, 2000], [1, 4])}, f"{folder}/totals.png")
    """
    first = min(places[0] for places, _ in series.values())
    last = max(places[-1] for places, _ in series.values())
    unit, length = ("", 1) if over == "version" else _unit_of(last - first)
    zero = 0 if over == "version" else first
    with drawing(path, 9, 1.2 + 1.8 * len(series)) as figure:
        rows = figure.subplots(len(series), 1, sharex=True, squeeze=False)[:, 0]
        for axes, color, (name, (places, values)) in zip(
            rows, cycle(COLORS), series.items(), strict=False
        ):
            along = (np.array([*places, last], float) - zero) / length
            steps = [*values, values[-1]]
            axes.step(along, steps, where="post", color=color)
            changed = np.flatnonzero(np.diff(steps)) + 1
            if len(changed) <= _FEW:  # a line without length, or all at once, is hard to see
                marked = changed if len(changed) else [len(steps) - 1]
                axes.plot(along[marked], np.array(steps)[marked], "o", color=color)
            axes.set(ylabel=name.replace("_", " "))
            axes.yaxis.get_major_locator().set_params(integer=True)
            axes.yaxis.set_major_formatter(plain)
        rows[-1].set(xlabel=f"stream time ({unit})" if unit else over)
        rows[-1].xaxis.set_major_formatter(plain)
        if over == "version":
            rows[-1].xaxis.get_major_locator().set_params(integer=True)
        if first == last:
            rows[-1].set_xticks([first - zero])
        rows[0].set_title(title, parse_math=False)
        figure.align_ylabels()


def _unit_of(span_ms: int) -> tuple[str, int]:
    """The unit in which people say how long this is, and its length in ms."""
    units = (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000))
    return next((unit for unit in units if span_ms >= 3 * unit[1]), ("s", 1000))


def _plain_ticks(axes: Any) -> None:
    log_ticks(axes.xaxis, *axes.get_xlim())
    log_ticks(axes.yaxis, *axes.get_ylim())
