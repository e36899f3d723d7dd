"""A graph as an object: counted, shown, copied, pickled and completed; a snapshot shown."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma.display import graphs
from lpma.display.words import moment_of, size_of
from lpma.snapshot import display
from tests.support.oracles import host

EDGES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=20)


def contents(g: lpma.Graph) -> Any:
    s = g.snapshot()
    arrays = {name: host(array).tolist() for name, array in s.to_numpy().items()}
    return arrays, host(s.added).tolist(), s.version, s.time, s.num_edges, list(g)


# -- a collection of vertices ---------------------------------------------------------------------


@given(EDGES, EDGES, st.lists(st.integers(0, 20)), st.lists(st.integers(0, 20)), st.booleans())
def test_vertices_as_networkx_has_them(
    inserted: Any, deleted: Any, added: Any, removed: Any, directed: bool
) -> None:
    g, G = lpma.Graph(directed, device="cpu"), nx.DiGraph() if directed else nx.Graph()
    for edges, change in ((inserted, g.insert), (deleted, g.delete)):
        change([u for u, _ in edges], [v for _, v in edges])
    g.add_vertices(added)
    g.remove_vertices(removed)
    G.add_edges_from(inserted)
    G.remove_edges_from(deleted)
    G.remove_nodes_from(list(nx.isolates(G)))  # here, a vertex goes with its last edge
    ends = {v for edge in G.edges for v in edge}
    G.add_nodes_from(added)
    G.remove_nodes_from(removed)
    left = {v for edge in G.edges for v in edge} | (set(added) - set(removed))
    assert ends >= left - set(added)
    for _ in range(2):  # before and after the vertices are counted
        assert [v in g for v in range(-1, 22)] == [v in left for v in range(-1, 22)]
        assert (len(g), list(g), bool(g)) == (len(left), sorted(left), bool(left))


MANY: list[Any] = [[1], [], (1, 2), {1}, np.array([1]), np.array([1, 2]), [[1], 2]]


def test_what_can_be_a_vertex(device: str) -> None:
    g = lpma.Graph(device=device)
    assert not g
    assert (len(g), list(g)) == (0, [])
    g.insert([1, 2], [2, 2**32 - 2])
    for _ in range(2):
        assert 2 in g
        assert np.uint8(2) in g
        assert 2.0 in g
        assert np.array(2) in g
        assert 2**32 - 2 in g
        for other in (0, -1, 2**32 - 1, 2**70, 2.5, np.nan, "2", None, True, b"2", object()):
            assert other not in g
        for many in MANY:
            assert many not in g
            assert type(many) is np.ndarray or many not in nx.Graph([(1, 2)])
        assert list(g) == [1, 2, 2**32 - 2]


def test_iteration_sees_one_version(device: str) -> None:
    g = lpma.from_edges(np.arange(70_000), np.arange(70_000) + 1, device=device)
    seen = iter(g)
    assert next(seen) == 0
    g.remove_vertices(np.arange(0, 70_001, 2))
    assert list(seen) == list(range(1, 70_001))
    assert len(g) == g.num_vertices == 0


def test_vertices_by_name(device: str) -> None:
    g = lpma.from_edges(["a", "b", "a"], ["b", "c", "d"], device=device)
    g.delete("a", "d")
    for _ in range(2):
        assert "a" in g
        assert "d" not in g
        assert "e" not in g
        assert 0 not in g
        assert None not in g
        for many in (*MANY, ["a"], ("a", "b"), np.array(["a"])):
            assert many not in g
        assert (len(g), list(g)) == (3, ["a", "b", "c"])


def test_a_graph_is_itself_alone() -> None:
    g, h = (lpma.from_edges([1], [2], time=1, device="cpu") for _ in range(2))
    assert g == g
    assert g != h
    assert len({g, h}) == 2


# -- shown ----------------------------------------------------------------------------------------

LINE = re.compile(r"<lpma.(Graph|Snapshot) on (cpu|cuda:\d+): [^<>\n]*>")


def test_a_line(device: str) -> None:
    g = lpma.Graph(device=device, directed=False)
    plain = ", kept by NumPy" if g._stores.is_provisional else ""
    where = f"on {g.device}"
    assert repr(g) == f"<lpma.Graph {where}: undirected, 0 vertices, 0 edges, version 0{plain}>"
    assert repr(g.snapshot()) == (
        f"<lpma.Snapshot {where}: undirected, 0 vertices, 0 edges, version 0>"
    )
    g.insert(1, 2)
    assert "2 vertices, 1 edge, version 1" in repr(g)
    assert "2 vertices, 1 edge, version 1" in repr(g.snapshot())
    named = lpma.from_edges("a", "b", device=device)
    assert ": directed, named, 2 vertices, 1 edge, " in repr(named)
    for shown in (g, named, g.snapshot(), named.snapshot(), g.snapshot(compact=True)):
        assert LINE.fullmatch(repr(shown))
        assert str(shown) == repr(shown)


def test_a_line_counts_nothing(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large graph, it says how many rows there are, or vertices once they are counted."""
    g = lpma.Graph(device=device)
    g.insert(np.arange(0, 300_000, 3), np.arange(0, 300_000, 3) + 1)
    s = g.snapshot()

    def refuse(*args: Any, **options: Any) -> Any:
        raise AssertionError("the whole graph was read")

    backend = g._stores.out.backend
    with monkeypatch.context() as patch:
        for name in ("slots", "csr_rows", "largest_vertex"):
            patch.setattr(backend, name, refuse)
        assert "299,999 rows, 100,000 edges" in repr(g)
        assert "299,999 rows, 100,000 edges" in repr(s)
    assert len(g) == s.num_vertices == 200_000
    for name in ("slots", "csr_rows", "largest_vertex"):
        monkeypatch.setattr(backend, name, refuse)
    assert "200,000 vertices, 100,000 edges" in repr(g)
    assert "200,000 vertices, 100,000 edges" in repr(s)
    g.delete(0, 1)  # the largest id must be searched for, if it is wanted
    if g._stores.out.largest is None:
        assert "directed, 99,999 edges" in repr(g)


def parsed(page: str) -> Any:
    return ElementTree.fromstring(page)


def rows_of(page: str) -> dict[str, str]:
    return {row[0].text: row[1].text for row in parsed(page).iter("tr")}


def test_a_table(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([0, 0, 0, 1], [1, 2, 3, 2], time=1_700_000_000_000)
    for page in (g._repr_html_(), g.snapshot()._repr_html_()):
        rows = rows_of(page)
        assert rows["device"].startswith(g.device)
        assert rows["size"] == "4 vertices, 4 edges"
        assert rows["edges are"] == "directed, float32 weights, times"
        assert rows["version"] == "1"
        assert rows["last update at"] == "1700000000000 (2023-11-14 22:13:20 UTC)"
        assert "1 vertex of degree 2 to 3" in page
    assert rows_of(g._repr_html_())["most edges out"] == "0 (3), 1 (1)"
    empty = lpma.Graph(device=device)
    assert "svg" in empty._repr_html_()  # the density of its one level
    assert "0 vertices" in rows_of(empty.snapshot()._repr_html_())["size"]


def test_names_are_escaped(device: str) -> None:
    wicked = ["<script>alert(1)</script>", "&amp;", '"><img src=x>', "x" * 100]
    g = lpma.from_edges(wicked, wicked[1:] + wicked[:1], device=device)
    for page in (g._repr_html_(), g.snapshot()._repr_html_()):
        assert {element.tag.rpartition("}")[2] for element in parsed(page).iter()} <= {
            "div", "strong", "table", "tr", "th", "td", "svg", "text", "rect", "title", "line"
        }  # fmt: skip
        assert "<script>" not in page
    assert rows_of(g._repr_html_())["names"] == "4"
    assert "x" * 41 not in g._repr_html_()


def test_densities_are_those_of_the_levels(device: str) -> None:
    g = lpma.Graph(device=device, segment_size=4)
    rng = np.random.default_rng(2)
    g.insert(rng.integers(0, 50, 400), rng.integers(0, 50, 400))
    page = g._repr_html_()
    for level, density in enumerate(g.level_densities().tolist()):
        assert f"level {level}: {density:.1%} of its slots are filled" in page


def test_large_graphs_are_sampled(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    g = lpma.from_edges(np.arange(1000), np.arange(1000) // 2, device=device)
    monkeypatch.setattr(graphs, "SAMPLED_ROWS", 100)
    monkeypatch.setattr(display, "SAMPLED_ROWS", 100)
    assert "degrees of 100 rows" in g._repr_html_()
    assert "most edges out (of a sample)" in rows_of(g._repr_html_())
    assert "degrees of 100 rows" in g.snapshot()._repr_html_()


def test_a_broken_graph_can_be_shown() -> None:
    g = lpma.Graph(device="cpu", clock=lambda: 1 / 0)
    g._lock._whole = False
    assert repr(g) == "<lpma.Graph on cpu: directed, BrokenStore>"
    assert "in the middle of a batch" in rows_of(g._repr_html_())["BrokenStore"]


def test_a_graph_in_use_by_this_thread_can_be_shown() -> None:
    told = []

    def clock() -> float:
        told.append(repr(g))
        return 0.0

    g = lpma.Graph(device="cpu", clock=lambda: 0.0)
    g._stores.out.clock = clock
    g.insert(1, 2)
    assert set(told) == {"<lpma.Graph on cpu: directed, ConcurrentWrite>"}


def test_words() -> None:
    assert [size_of(n) for n in (0, 999, 1024, 5 * 2**30)] == ["0 B", "999 B", "1 KiB", "5 GiB"]
    assert [moment_of(t) for t in (0, -5, 7, 2**62)] == ["0", "-5", "7", str(2**62)]


# -- copied ---------------------------------------------------------------------------------------


def pickled(g: lpma.Graph) -> lpma.Graph:
    data = pickle.dumps(g)
    again: lpma.Graph = pickle.loads(data)  # noqa: S301
    return again


OPTIONS: list[dict[str, Any]] = [
    {},
    {"directed": False},
    {"predecessors": True, "weight_dtype": "float64", "segment_size": 8, "strategy": "top-down"},
    {"weight_dtype": None, "times": False, "global_merge": "never"},
    {"names": True},
]


@pytest.mark.parametrize("make", [lpma.Graph.copy, copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_copy_is_independent(device: str, make: Any, options: dict[str, Any]) -> None:
    g = lpma.Graph(device=device, **options)
    rng = np.random.default_rng(5)
    g.insert(rng.integers(0, 30, 100), rng.integers(0, 30, 100), rng.random(100), 7)
    g.add_vertices(99)
    g.delete(1, 2)
    h = make(g)
    assert contents(h) == contents(g)
    assert type(h) is lpma.Graph
    assert (h.device, h._options) == (g.device, g._options)
    h.check()
    before = contents(g)
    h.insert([1, 40], [2, 41])
    h.remove_vertices(3)
    assert contents(g) == before
    g.insert(50, 51)
    assert 50 not in h
    assert 41 not in g
    h.check()
    changes = h.changes(h.version - 1)
    assert changes is not None
    assert h.changes(0) is None
    if options.get("names"):
        g.insert("new", "newer")
        assert "new" not in h
        h.insert("other", "new")
        assert h.neighbors("other").tolist() == ["new"]


def test_where_a_pickle_goes(device: str) -> None:
    g = lpma.from_edges([1, 2], [2, 3], device=device)
    assert pickled(g).device == g.device


def test_a_pickle_says_what_it_is_not(tmp_path: Any) -> None:
    g = lpma.from_edges([1, 2], [2, 3], device="cpu")
    restore, (data, device) = g.__reduce__()
    assert restore(data, device).num_edges == 2
    with pytest.raises(lpma.FormatError):
        restore(data[:-1], device)
    path = tmp_path / "g.lpma"
    g.save(path)
    assert path.read_bytes() == data


# -- completed ------------------------------------------------------------------------------------


def completions(text: str, namespace: dict[str, Any]) -> set[str]:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.user_ns.update(namespace)
    with warnings.catch_warnings(action="ignore"):  # IPython calls this way of asking provisional
        return {c.text for c in shell.Completer.completions(text, len(text))}


def test_completion_lists_what_is_public() -> None:
    g = lpma.from_edges([1, 2], [2, 3], device="cpu")
    public = {name for name in dir(g) if not name.startswith("_")}
    assert public >= {"insert", "delete", "successors", "snapshot", "copy", "num_edges", "save"}
    for name in public:
        value = getattr(lpma.Graph, name, None)
        assert value is None or value.__doc__, name
    assert {text.lstrip(".") for text in completions("g.", {"g": g})} == public
    assert {text.lstrip(".") for text in completions("g.succ", {"g": g})} == {
        "successors", "successors_after"
    }  # fmt: skip
    s = g.snapshot()
    found = {text.lstrip(".") for text in completions("s.", {"s": s})}
    assert found == {name for name in dir(s) if not name.startswith("_")}
    assert "device=" in completions("lpma.Graph(de", {"lpma": lpma})
    assert "from_dataframe" in {t.lstrip(".") for t in completions("lpma.from_", {"lpma": lpma})}
