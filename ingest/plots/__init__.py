"""Pictures of a run and of a graph: PNG files, or SVG if the name ends with .svg.

`plot_latency` follows Figure 9 of the LPMA paper: how long each batch took and, on a second axis,
how dense the structure was; density climbs until an expansion halves it, and latency with it.

matplotlib is imported when a picture is drawn, on its Agg canvas directly: no screen is needed, and
pyplot's global state is not touched.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma import Snapshot
from lpma.files import atomic_write
from lpma.optional import optional_import

Array = npt.NDArray[Any]
StrPath = str | os.PathLike[str]

LATENCY, WITH_QUERIES, DENSITY, MARK = "#1f5aa6", "#7fb0e6", "#c8501e", "#8a8a8a"


def new_figure(width: float, height: float) -> Any:
    """An empty matplotlib figure, in inches."""
    figure = optional_import("matplotlib.figure", "matplotlib", "a plot").Figure(
        figsize=(width, height), dpi=120, layout="constrained"
    )
    optional_import("matplotlib.backends.backend_agg", "matplotlib", "a plot").FigureCanvasAgg(
        figure
    )
    return figure


def write_figure(figure: Any, path: StrPath) -> None:
    """Write a figure as .svg if the name says so, else as PNG. Raises PathError."""
    kind = Path(path).suffix if Path(path).suffix == ".svg" else ".png"
    with atomic_write(path, suffix=kind) as file:
        figure.savefig(file, format=kind[1:])


def expansions(levels: Array) -> Array:
    """int64: the batches, counted from 0, after which the structure had more levels than before.

    >>> expansions(np.array([2, 2, 3, 3, 4]))
    array([2, 4])
    """
    return np.flatnonzero(np.diff(levels) > 0) + 1


def plot_latency(run: dict[str, Array], path: StrPath, title: str = "") -> None:
    """Latency of each batch (ms, logarithmic) and density after it, expansions marked.

    run: columns as `ingest.run_log.read_run` returns them; `seconds`, `operations`, `density` and
    `levels` are needed, all of one length. path: .png or .svg. Raises PathError, MissingPackage.

    >>> import tempfile
    >>> run = {"seconds": [0.01, 0.02], "operations": [100, 100], "density": [0.4, 0.6],
    ...        "levels": [3, 3]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_latency({name: np.array(values) for name, values in run.items()},
    ...                  f"{folder}/run.png")
    """
    figure = new_figure(9, 4.5)
    left = figure.add_subplot()
    right = left.twinx()
    batch = np.arange(1, len(run["seconds"]) + 1)
    marks = batch[expansions(run["levels"])]
    label = f"expansion ({len(marks)})"
    for mark in marks:
        right.axvline(mark, color=MARK, linewidth=0.9, linestyle=":", label=label)
        label = "_again"
    right.plot(batch, run["density"], color=DENSITY, linewidth=1.2, label="density")
    milliseconds = 1000 * run["seconds"]
    # Batches with queries cost more, and often alternate with others: as dots, they do not hide
    # the line.
    asked = run["queries"] > 0 if "queries" in run else np.zeros(len(batch), bool)
    for rows, line, color, label in (
        (~asked, "-", LATENCY, "latency"),
        (asked, "none", WITH_QUERIES, "latency, with queries"),
    ):
        if rows.any():
            left.plot(batch[rows], milliseconds[rows], linestyle=line, color=color, linewidth=0.9,
                      marker=".", markersize=4, label=label)  # fmt: skip
    left.set_zorder(right.get_zorder() + 1)  # the latency above, the axes' order kept
    left.patch.set_visible(False)
    left.set(xlabel="batch", yscale="log", xlim=(0, len(batch) + 1))
    bottom, top = left.get_ylim()
    left.yaxis.set_major_formatter("{x:g}")  # 10, not 10^1
    left.yaxis.set_minor_formatter("{x:g}" if top < 10 * bottom else _twos_and_fives)
    left.set_ylabel("latency of a batch (ms)", color=LATENCY)
    right.set_ylabel("density (filled slots / slots)", color=DENSITY)
    right.set_ylim(0, 1)
    left.set_title(title or f"{len(batch)} batches, {int(run['operations'].sum()):,} operations")
    lines = [*left.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    shown = [line for line in lines if not line.get_label().startswith("_")]
    figure.legend(handles=shown, loc="outside lower center", ncols=4, frameon=False)
    write_figure(figure, path)


def _twos_and_fives(value: float, place: int) -> str:
    """The label of a minor tick of a logarithmic axis that spans decades. Nine labels a decade
    would overlap."""
    return f"{value:g}" if f"{value:e}"[0] in "25" else ""


def degree_distribution(degrees: Array, vertices: int) -> tuple[Array, Array]:
    """The degrees above 0 that occur, ascending, and for each the share of all `vertices`, those of
    degree 0 among them, that have at least that degree: int64[k], float64[k].

    >>> degree_distribution(np.array([0, 1, 1, 3]), 4)
    (array([1, 3]), array([0.75, 0.25]))
    """
    counts = np.bincount(degrees[degrees > 0])
    at_least = np.cumsum(counts[::-1])[::-1]
    occurring = np.flatnonzero(counts)
    return occurring, at_least[occurring] / max(vertices, 1)


def plot_degrees(s: Snapshot, path: StrPath, title: str = "") -> None:
    """The complementary distribution of degrees, out and in for a directed graph, on two
    logarithmic axes. path: .png or .svg. Raises PathError, MissingPackage."""
    figure = new_figure(6, 4.5)
    axes = figure.add_subplot()
    sides = {"out-degree" if s.directed else "degree": np.diff(s.indptr)}
    if s.directed:
        sides["in-degree"] = np.bincount(s.indices, minlength=s.num_rows)
    for (label, degrees), color in zip(sides.items(), (LATENCY, DENSITY), strict=False):
        x, y = degree_distribution(degrees, s.num_present)
        axes.loglog(x, y, color=color, marker=".", markersize=4, linewidth=0.8, label=label)
    axes.set(xlabel="degree d", ylabel="share of vertices with degree ≥ d")
    axes.set_title(title or f"{s.num_present:,} vertices, {s.num_edges:,} edges")
    if s.num_edges:
        axes.legend(frameon=False)
    axes.grid(alpha=0.3, which="major")
    write_figure(figure, path)


def distribution(values: Array) -> tuple[Array, Array]:
    """The values that occur, ascending, and for each the share of all values that are at least as
    large, float64[k].

    >>> distribution(np.array([5, 2, 2, 2]))
    (array([2, 5]), array([1.  , 0.25]))
    """
    occurring, counts = np.unique(values, return_counts=True)
    return occurring, np.cumsum(counts[::-1])[::-1] / max(len(values), 1)


def plot_distribution(values: Array, name: str, path: StrPath, title: str = "") -> None:
    """The complementary distribution of a value per vertex or edge, on logarithmic axes, which
    leave out values of 0 or less. name: what the value is called. path: .png or .svg. Raises
    PathError, MissingPackage."""
    figure = new_figure(6, 4.5)
    axes = figure.add_subplot()
    x, y = distribution(values)
    axes.loglog(x[x > 0], y[x > 0], color=LATENCY, marker=".", markersize=4, linewidth=0.8)
    axes.set(xlabel=name, ylabel=f"share with {name} ≥ x")
    axes.set_title(title)
    axes.grid(alpha=0.3, which="major")
    write_figure(figure, path)
