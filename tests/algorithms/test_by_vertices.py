"""Results over rows say which vertices these are: in graphs with names, in compact snapshots, and
in plain ones."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import algorithms
import lpma
from lpma.arrays import to_host
from lpma.snapshot import export

SRC, DST = ["ann", "ann", 7, "bob", "dan"], ["bob", 7, "bob", "cem", "ann"]
NAMES = ["ann", "bob", 7, "cem", "dan"]  # in the order in which they came: of rows 0, 1, …
IDS = {"ann": 10, "bob": 20, 7: 30, "cem": 40, "dan": 50}

RESULTS: dict[str, Callable[[Any], Any]] = {
    "similar": lambda s: algorithms.similar(s, _first(s), 9),
    "truss_numbers": algorithms.truss_numbers,
    "edge_support": algorithms.edge_support,
    "shortest_path_tree": lambda s: algorithms.shortest_path_tree(s, _first(s)),
    "top_diversity": lambda s: algorithms.top_diversity(s, "component", 1, 2)[0],
    "list_bicliques": lambda s: next(algorithms.list_bicliques(_without_triangles(s), 1, 2)),
}


def _first(s: lpma.Snapshot) -> Any:
    return 0 if s.names is None else s.names.of([0]).tolist()[0]


def _without_triangles(s: lpma.Snapshot) -> lpma.Snapshot:
    kept = ["ann", "bob", "cem", "dan"]
    if s.names is None:
        kept = [IDS[name] for name in kept]  # type: ignore[misc]
    return s.subgraph(kept)


def named(device: str) -> lpma.Snapshot:
    return lpma.from_edges(SRC, DST, device=device, directed=False).snapshot()


def compact(device: str) -> lpma.Snapshot:
    src, dst = ([IDS[name] for name in end] for end in (SRC, DST))
    return lpma.from_edges(src, dst, device=device, directed=False).snapshot(compact=True)


def as_vertices(rows: Any, of: list[Any]) -> Any:
    """The rows with what they go by in their place, in plain Python."""
    if isinstance(rows, list | tuple):
        return type(rows)(as_vertices(one, of) for one in rows)
    if np.ndim(rows) == 0:
        return of[int(rows)]
    return [None if row < 0 else of[row] for row in to_host(rows).tolist()]


def plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(plain(one) for one in value)
    return to_host(value).tolist() if hasattr(value, "dtype") and np.ndim(value) else value


@pytest.mark.parametrize("function", RESULTS)
def test_every_result_knows_its_vertices(device: str, function: str) -> None:
    """The same columns with vertices in place of rows; it unpacks to the same fields."""
    rows = RESULTS[function](lpma.from_edges(
        *([NAMES.index(name) for name in end] for end in (SRC, DST)), device=device, directed=False
    ).snapshot()) if function != "list_bicliques" else None  # fmt: skip
    for make, of in ((named, NAMES), (compact, [IDS[name] for name in NAMES])):
        found = RESULTS[function](make(device))
        by_vertex = found.vertices
        assert type(by_vertex) is type(found)
        assert by_vertex._fields == found._fields
        assert by_vertex.vertices is by_vertex
        fields = by_vertex._asdict()
        if rows is not None:
            for name, values in rows._asdict().items():
                expected = as_vertices(values, of) if name in rows.row_fields else plain(values)
                assert plain(fields[name]) == expected, (function, name)
        assert len([*found]) == len(found._fields)
        again = copy.deepcopy(found)
        assert plain(tuple(again.vertices)) == plain(tuple(by_vertex))
    if rows is not None:
        assert rows.vertices is rows


def test_lists_of_a_few_are_by_name_at_once(device: str) -> None:
    best = algorithms.top_diversity(named(device), "component", 1, 1)[0]
    assert best.vertex == "ann"
    assert plain(best.contexts) == [["bob", 7], ["dan"]]
    assert best.vertices is best
    found = list(algorithms.list_bicliques(_without_triangles(named(device)), 1, 2))
    assert found[0].left == ("ann",)
    assert found[0].right == ("bob", "dan")
    few = list(algorithms.list_bicliques(_without_triangles(compact(device)), 1, 2))
    assert few[0].left == (0,)
    assert few[0].vertices.left == (10,)


def test_a_frame_of_a_result(device: str) -> None:
    s, numbered = named(device), compact(device)
    both = s.frame("arrow", algorithms.similar(s, "ann", 9)).to_pydict()
    assert [*both] == ["vertex", "vertex_number", "jaccard"]  # names are of two types
    found = numbered.frame("arrow", algorithms.truss_numbers(numbered)).to_pydict()
    assert found["src"] == [10, 10, 10, 20, 20]
    assert found["dst"] == [20, 30, 50, 30, 40]
    assert found["truss"] == [3, 3, 2, 3, 2]
    support = numbered.frame("arrow", algorithms.edge_support(numbered)).to_pydict()
    assert support == {"src": found["src"], "dst": found["dst"], "support": [1, 1, 0, 1, 0]}
    tree = algorithms.shortest_path_tree(numbered, 0)
    assert numbered.frame("arrow", tree).to_pydict() == {
        "vertex": [10, 20, 30, 40, 50],
        "distance": [0.0, 1.0, 1.0, 2.0, 1.0],
        "predecessor": [None, 10, 10, 20, 10],
    }
    text = lpma.from_edges(["a", "b"], ["b", "c"], device=device).snapshot()
    by_name = text.frame("arrow", algorithms.shortest_path_tree(text, "a")).to_pydict()
    assert by_name["vertex"] == ["a", "b", "c"]
    assert by_name["predecessor"] == [None, "a", "b"]
    assert isinstance(s.frame("arrow", algorithms.similar(s, "cem", 0)), pa.Table)
    with pytest.raises(export.ExportError, match="a result or columns, not both: core"):
        s.frame(tree, core=algorithms.core_numbers(s))
    with pytest.raises(export.ExportError, match="found: a result that has `vertices`, not 7"):
        s.frame("arrow", 7)
    with pytest.raises(export.ExportError, match="dst has rows that this snapshot has not"):
        lpma.from_edges([0], [1], device=device).snapshot().frame(algorithms.truss_numbers(s))


def test_rows_of_a_tracker(device: str) -> None:
    graph = lpma.Graph(names=True, device=device)
    graph.insert(SRC, DST)
    tracker = algorithms.Tracker(graph, ["core"])
    assert tracker.vertices.tolist() == NAMES
    graph.insert("eve", "ann")
    assert tracker.vertices.tolist() == NAMES
    tracker.update()
    assert tracker.vertices.tolist() == [*NAMES, "eve"]
    by_name = dict(zip(tracker.vertices, to_host(tracker.core_numbers).tolist(), strict=True))
    assert by_name == {"ann": 2, "bob": 2, 7: 2, "cem": 1, "dan": 1, "eve": 1}
    ids = lpma.from_edges([0, 1], [1, 3], device=device)
    assert algorithms.Tracker(ids, "core").vertices.tolist() == [0, 1, 2, 3]
