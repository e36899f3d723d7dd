"""Pictures: labels that do not overlap, plain numbers, nothing that only colours tell apart."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lpma
from algorithms.diversity.network import ego_network
from benchmarks.plots import Panel, save
from ingest import plots
from ingest.plots import style
from ingest.plots.ego import NO_CONTEXT, plot_ego
from tests.support.command_line import run

BATCHES = {
    "operations": np.ones(4, np.int64), "levels": np.array([1, 1, 2, 2]),
    "density": np.array([0.4, 0.6, 0.3, 0.4]), "queries": np.array([0, 1, 0, 0]),
}  # fmt: skip


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that are drawn from here on, which are written to no file."""
    figures: list[Any] = []
    monkeypatch.setattr(style, "write_figure", lambda figure, path: figures.append(figure))
    return figures


def labels(axis: Any) -> list[Any]:
    ticks = [*axis.get_ticklabels(), *axis.get_ticklabels(minor=True)]
    low, high = sorted(axis.get_view_interval())
    at = axis.axis_name == "y"
    return [
        label for label in ticks
        if label.get_text() and low <= label.get_position()[at] <= high
    ]  # fmt: skip


def check_ticks(figure: Any) -> None:
    """Plain numbers, two on each axis that has any, and none over another."""
    figure.canvas.draw()
    for axes in figure.axes:
        for axis, ends in ((axes.xaxis, ("x0", "x1")), (axes.yaxis, ("y0", "y1"))):
            shown = labels(axis)
            for label in shown:
                float(label.get_text().replace(",", "").replace("\N{MINUS SIGN}", "-"))
            boxes = [label.get_window_extent() for label in shown]
            spans = sorted((getattr(box, ends[0]), getattr(box, ends[1])) for box in boxes)
            assert all(end <= start for (_, end), (start, _) in pairwise(spans)), [
                label.get_text() for label in shown
            ]


@pytest.mark.parametrize(
    "span_ms, over, said",
    [(9_000, "time", "stream time (s)"), (900_000, "time", "stream time (min)"),
     (90_000_000, "time", "stream time (h)"), (10**10, "time", "stream time (days)"),
     (400, "version", "version"), (0, "version", "version")],
)  # fmt: skip
def test_what_runs_along_totals(drawn: list[Any], span_ms: int, over: str, said: str) -> None:
    series = {"max_core": ([1000, 1000 + span_ms], [1, 3]), "triangles": ([1000], [2])}
    plots.plot_totals(series, "totals.png", over=over)
    check_ticks(drawn[0])
    above, below = drawn[0].axes
    assert below.get_xlabel() == said
    assert all("." not in label.get_text() for label in labels(above.yaxis)), "these are counts"
    first = above.lines[0].get_xdata()[0]
    assert first == (1000 if over == "version" else 0)
    for axes in (above, below):  # what came all at once is seen, too
        marks = axes.lines[1]
        assert marks.get_marker() == "o"
        assert len(marks.get_xdata()) == 1
    assert "." not in "".join(label.get_text() for label in labels(below.xaxis)) or span_ms


@pytest.mark.parametrize("slowest", [0.002, 0.08, 5.0])
def test_ticks_of_the_latency(drawn: list[Any], slowest: float) -> None:
    run = {**BATCHES, "seconds": np.geomspace(0.0005, slowest, 4)}
    plots.plot_latency(run, "run.png")
    check_ticks(drawn[0])
    assert len(labels(drawn[0].axes[0].yaxis)) > 1


@pytest.mark.parametrize(
    "values",
    [np.arange(1, 6), np.arange(20, 60), np.geomspace(1e-5, 4e-5, 50), np.geomspace(3e-5, 0.02, 99),
     np.geomspace(1, 3e6, 99), np.array([7]), np.zeros(3), np.geomspace(0.2, 9, 30)],
    ids=["few", "tens", "tiny", "ranks", "millions", "one", "none", "ones"],
)  # fmt: skip
def test_ticks_of_a_distribution(drawn: list[Any], values: Any) -> None:
    plots.plot_distribution(values, "value", "a.png", "values")
    check_ticks(drawn[0])


@pytest.mark.filterwarnings("ignore:Data has no positive values")
@pytest.mark.parametrize("edges", [0, 1, 300, 40_000])
def test_ticks_of_degrees(drawn: list[Any], edges: int) -> None:
    g = lpma.Graph(device="cpu")
    src, dst = (np.random.default_rng(1).random((2, edges)) ** 3 * edges / 2).astype(np.int64)
    g.insert(src, dst)
    plots.plot_degrees(g.snapshot(), "a.png")
    check_ticks(drawn[0])


def test_lines_differ_in_more_than_colour(drawn: list[Any], tmp_path: Path) -> None:
    lines = {name: ([1.0, 2.0, 50.0], [1.0, 2.0, 1000.0 * len(name)]) for name in ("a", "bb", "c")}
    for log in ("", "x", "y", "xy"):
        for points in (True, False):
            panels = [Panel("title", "x", "y", lines, log, points, {"a": [2.0]})] * 2
            save(tmp_path / "a.png", panels)
            figure = drawn.pop()
            check_ticks(figure)
            for axes in figure.axes:
                shown = [line for line in axes.lines if not line.get_label().startswith("_")]
                assert len({line.get_color() for line in shown}) == 3
                assert len({line.get_linestyle() for line in shown}) == 3
                box = axes.get_legend().get_window_extent()
                assert box.x0 >= axes.get_window_extent().x1  # beside the data


def test_an_ego_network(drawn: list[Any]) -> None:
    """Contexts differ in shape, what is in none is faint, and text is as it was given."""
    g = lpma.Graph(directed=False, device="cpu")
    for first in (1, 5):
        src, dst = np.nonzero(np.triu(np.ones((4, 4), bool), 1))
        g.insert(src + first, dst + first)
    g.insert(np.zeros(9, int), np.arange(1, 10))
    g.insert([1, 9], [5, 1])
    s = g.snapshot()
    names = np.array([f"${v}^2" for v in range(10)], object)
    contexts = [np.arange(1, 5), np.arange(5, 9)]
    plot_ego(ego_network(s, 0), 0, contexts, names, "a.png", "of $0^2", ["four", "five"])
    (axes,) = drawn[0].axes
    drawn[0].canvas.draw()
    shapes = [
        len(points.get_paths()[0].vertices) for points in axes.collections
        if hasattr(points, "get_sizes") and len(points.get_offsets()) == 4
    ]  # fmt: skip
    assert len(set(shapes)) == 2
    from matplotlib.colors import to_hex

    faint = [
        lines
        for lines in axes.collections
        if not hasattr(lines, "get_sizes") and to_hex(lines.get_colors()[0]) == NO_CONTEXT
    ]
    assert [len(lines.get_segments()) for lines in faint] == [2]
    assert faint[0].get_alpha() < 0.5
    texts = [text.get_text() for text in axes.texts]
    assert {"four", "five", *names} == set(texts)
    assert drawn[0].get_suptitle() == "of $0^2"
    boxes = [text.get_window_extent() for text in axes.texts]
    assert all(box.y1 < drawn[0].bbox.y1 for box in boxes)


def test_titles_name_no_folder(drawn: list[Any], edge_store: Path) -> None:
    out = edge_store.parent / "a.png"
    run("run", "diversity", edge_store, "--model", "component", "--k", 1, "--plot", out)
    run("run", "core", edge_store, "--plot", out)
    ego, core = drawn
    assert core.axes[0].get_title(loc="left") == "core of two"
    assert "diversity (model component, k 1) of two" in ego.get_suptitle()


@pytest.fixture
def edge_store(tmp_path: Path) -> Path:
    g = lpma.Graph(device="cpu")
    g.insert([0, 0, 1], [1, 2, 2])
    g.save(tmp_path / "two.lpma")
    return tmp_path / "two.lpma"


@pytest.mark.parametrize("suffix, begins", [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_pictures_are_files(tmp_path: Path, suffix: str, begins: bytes) -> None:
    path = tmp_path / f"a{suffix}"
    plots.plot_distribution(np.arange(1, 9), "x", path, "title")
    assert path.read_bytes().startswith(begins)
