"""A graph with names against dictionaries keyed by names: any batch, any query, any refusal."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lpma
from lpma import Batch, BatchError, Graph, Kind
from tests.support.strategies import QUERIES

LONG = "u" * 1024
SOME = ["a", "b", "5", 5, 0, -1, -(2**63), 2**63 - 1, 2**64 - 1, "é", "\0", "a\0", "日本語", LONG]
names = st.sampled_from(SOME) | st.integers(-(2**63), 2**64 - 1) | st.text(
    st.characters(codec="utf-8"), min_size=1, max_size=9
)  # fmt: skip
rows = st.tuples(st.sampled_from([kind for kind in Kind if kind != Kind.EXPIRE]), names, names)


class Model:
    """Edges and vertices by name, in dictionaries: what a graph with weights keeps."""

    def __init__(self) -> None:
        self.edges: dict[tuple[Any, Any], float] = {}
        self.added: set[Any] = set()

    def targets(self, u: Any) -> set[Any]:
        return {b for a, b in self.edges if a == u}

    def apply(self, kind: Kind, u: Any, v: Any) -> Any:
        """One operation; the answer to a query."""
        if kind == Kind.INSERT:
            self.edges[u, v] = self.edges.get((u, v), 0.0) + 1.0
        elif kind == Kind.SET:
            self.edges[u, v] = 1.0
        elif kind == Kind.DELETE:
            self.edges.pop((u, v), None)
        elif kind == Kind.ADD_VERTEX:
            self.added.add(u)
        elif kind == Kind.REMOVE_VERTEX:
            self.added.discard(u)
            self.edges = {e: w for e, w in self.edges.items() if u not in e}
        elif kind == Kind.EDGE:
            return self.edges.get((u, v))
        elif kind == Kind.SUCCESSORS:
            return self.targets(u)
        elif kind == Kind.PREDECESSORS:
            return {a for a, b in self.edges if b == u}
        elif kind == Kind.HOPS:
            near = self.targets(u)
            return near.union(*map(self.targets, near))
        elif kind == Kind.DEGREE:
            return len(self.targets(u))
        else:
            return u in self.vertices
        return None

    @property
    def vertices(self) -> set[Any]:
        return self.added.union(*self.edges) if self.edges else set(self.added)


def ask(batch: Batch, kind: Kind, u: Any, v: Any) -> None:
    """Put one operation into a batch."""
    if kind in (Kind.INSERT, Kind.SET, Kind.DELETE, Kind.EDGE):
        getattr(batch, kind.name.lower())(u, v)
    elif kind == Kind.HOPS:
        batch.hops(u, 2)
    else:
        getattr(batch, kind.name.lower())(u)


def plain(answer: Any) -> Any:
    """An answer as the model gives it."""
    if isinstance(answer, lpma.Edges):
        assert answer.weights is not None
        return float(answer.weights[0]) if answer.found[0] else None
    if isinstance(answer, lpma.Neighbors):
        assert len(set(answer.ids.tolist())) == len(answer.ids)
        return set(answer.ids.tolist())
    return answer if isinstance(answer, int) else answer[0].item()


def state(g: Graph) -> tuple[dict[Any, float], set[Any]]:
    """Edges with weights and vertices, by name, as a snapshot has them."""
    found = []
    for s in (g.snapshot(), g.snapshot(compact=True)):
        assert s.names is not None
        host = s.to_numpy()
        src = s.names.of(np.repeat(np.arange(s.num_rows), np.diff(host["indptr"])))
        dst = s.names.of(host["indices"])
        weights = host["weights"].tolist()
        edges = dict(zip(zip(src.tolist(), dst.tolist(), strict=True), weights, strict=True))
        present = np.flatnonzero(lpma.arrays.to_host(s.present))
        found.append((edges, set(s.names.of(present).tolist())))
    assert found[0] == found[1]
    return found[0]


@settings(max_examples=40)
@given(st.lists(st.lists(rows, min_size=1, max_size=12), max_size=8), st.data())
def test_batches_by_name_agree_with_dictionaries(
    device: str, batches: list[list[Any]], data: st.DataObject
) -> None:
    g, model = Graph(names=True, predecessors=True, device=device), Model()
    for operations in batches:
        way = data.draw(st.sampled_from(["batch", "columns", "one by one"]))
        expected = [model.apply(*operation) for operation in operations]
        expected = [
            x for x, (kind, _, _) in zip(expected, operations, strict=True) if kind in QUERIES
        ]
        if way == "one by one":
            answers = [apply_one(g, *operation) for operation in operations]
            answers = [
                x for x, (kind, _, _) in zip(answers, operations, strict=True) if kind in QUERIES
            ]
        elif way == "columns":
            kinds, src, dst = map(list, zip(*operations, strict=True))
            dst = [2 if kind == Kind.HOPS else v for kind, v in zip(kinds, dst, strict=True)]
            found = g.apply(Batch.from_columns(kinds, src, dst, names=True))
            answers = [plain(found.on_host()[i]) for i in range(len(found))]
        else:
            batch = Batch()
            for operation in operations:
                ask(batch, *operation)
            found = g.apply(batch)
            answers = [plain(found.on_host()[i]) for i in range(len(found))]
        assert answers == expected
    assert state(g) == (model.edges, model.vertices)
    g.check()
    with tempfile.TemporaryDirectory() as directory:
        g.save(Path(directory) / "g.lpma")
        loaded = Graph.load(Path(directory) / "g.lpma", device)
    assert state(loaded) == state(g)
    for name in SOME:
        loaded.insert(name, "a")
        model.apply(Kind.INSERT, name, "a")
    assert state(loaded) == (model.edges, model.vertices)


def apply_one(g: Graph, kind: Kind, u: Any, v: Any) -> Any:
    """One operation by itself, of the calls for one."""
    if kind == Kind.INSERT:
        return g.insert(u, v)
    if kind == Kind.SET:
        return g.set(u, v)
    if kind == Kind.DELETE:
        return g.delete(u, v)
    if kind == Kind.ADD_VERTEX:
        return g.add_vertices(u)
    if kind == Kind.REMOVE_VERTEX:
        return g.remove_vertices(u)
    if kind == Kind.EDGE:
        edge = g.edge(u, v)
        assert g.has_edge(u, v) == (edge is not None) == bool(g.edges(u, v).found[0])
        return edge and edge.weight
    if kind == Kind.SUCCESSORS:
        assert plain(g.successors(u)) == set(g.neighbors(u).tolist())
        return plain(g.successors(u))
    if kind == Kind.PREDECESSORS:
        return plain(g.predecessors(u))
    if kind == Kind.HOPS:
        return plain(g.hops([u], 2))
    return plain(g.degree(u) if kind == Kind.DEGREE else g.has_vertices(u))


BAD = [
    ([""], ["a"], 1.0, r"src: row 0 is text of 0 bytes"),
    (["new"], [LONG + "x"], 1.0, r"dst: row 0 is text of 1025 bytes"),
    (["new"], ["\ud800"], 1.0, r"half of a surrogate"),
    (["new", None], ["a", "b"], 1.0, r"src: row 1 is missing"),
    (["new", 1.5], ["a", "b"], 1.0, r"src: row 1 is 1\.5"),
    ([True], ["a"], 1.0, r"src: row 0 is True"),
    ([2**64], ["a"], 1.0, r"no integer of 64 bits"),
    (["new", "x"], ["a"], 1.0, r"dst has 1 rows, src has 2"),
    ([["new"]], ["a"], 1.0, r"src: row 0"),
    (["new"], ["newer"], [float("nan")], r"weight"),
    (["new"], ["newer"], [1.0, 2.0], r"weight has 2 rows"),
    (np.array([0.5]), ["a"], 1.0, r"src: .*row 0 has 0\.5"),
    ({"a"}, ["b"], 1.0, r"a set is no column"),
]


@pytest.mark.parametrize(("src", "dst", "weight", "message"), BAD)
def test_what_is_refused_leaves_no_trace(
    device: str, src: Any, dst: Any, weight: Any, message: str
) -> None:
    g = Graph(names=True, device=device)
    g.insert("a", "b")
    before = g.version, len(g.names or ()), state(g)
    with pytest.raises(BatchError, match=message):
        g.insert(src, dst, weight)
    with pytest.raises(BatchError):
        g.apply(Batch.from_columns(Kind.INSERT, src, dst, weight, names=True))
    assert (g.version, len(g.names or ()), state(g)) == before


def test_a_span_of_time_is_no_name() -> None:
    """NumPy takes it for an integer."""
    g = lpma.Graph(device="cpu", names=True)
    g.insert("ann", 1)
    span: Any = np.timedelta64(1, "s")
    assert span not in g
    for ask in (g.has_vertices, g.degree, g.neighbors):
        with pytest.raises(lpma.BatchError, match="text or by an integer"):
            ask(span)


def test_a_batch_without_memory_forgets_its_names(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    g = Graph(names=True, device=device)
    g.insert(["a", 1], ["b", 2])
    before = state(g)

    def fail(*rest: Any) -> None:
        raise MemoryError("no more")

    with monkeypatch.context() as patch:
        for step in ("stage", "apply_at_once", "launch"):  # whichever takes the columns first
            patch.setattr(g._stores.out.backend, step, fail, raising=False)
        for src, dst in ((["x"] * 3000, list(range(3000))), ("y", "z")):
            with pytest.raises(lpma.OutOfMemory):
                g.apply(Batch.from_columns(Kind.INSERT, src, dst, names=True))
    assert g.names is not None
    assert (len(g.names), g.names.find("x"), g.names.find(2999)) == (4, None, None)
    assert state(g) == before
    g.insert("z", 2999)
    assert g.names.of([4, 5]).tolist() == ["z", 2999]


def test_columns_of_every_kind_name_the_same(device: str) -> None:
    """Lists, NumPy's arrays of text, and what pandas, polars and pyarrow hold, encoded or not."""
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    src, dst = ["c", "a", "c", "日本"], ["a", "b", "c", "a"]
    encoded = pyarrow.array([*src, "unused"]).dictionary_encode()
    forms: list[tuple[Any, Any]] = [
        (src, tuple(dst)),
        (np.array(src), np.array(dst, object)),
        (np.array(src, np.dtypes.StringDType()), pandas.Series(dst)),
        (pandas.Series(src), pandas.Series(dst, dtype=object)),
        (pandas.Series(src).astype("category"), pandas.Index(dst)),
        (pyarrow.array(src), pyarrow.chunked_array([dst[:1], dst[1:]])),
        (encoded[:4], pyarrow.array(dst, pyarrow.large_string())),
        (pyarrow.array(["unused", *src])[1:], dst),
        (polars.Series(src), polars.Series(dst, dtype=polars.Categorical)),
    ]
    for src_form, dst_form in forms:
        g = Graph(names=True, device=device)
        g.insert(src_form, dst_form)
        assert g.names is not None
        assert g.names.of(np.arange(len(g.names))).tolist() == ["c", "a", "b", "日本"]
        assert state(g)[0] == dict.fromkeys(zip(src, dst, strict=True), 1.0)
    integers: list[Any] = [
        [7, -2], np.array([7.0, -2.0]), np.array([7, -2], np.int8), pandas.Series([7, -2]),
        pyarrow.array([7, -2]), polars.Series([7, -2]), (np.int64(7), -2.0),
    ]  # fmt: skip
    for column in integers:
        g = Graph(names=True, device=device)
        g.insert(column, 5)
        assert g.names is not None
        assert g.names.of([0, 1, 2]).tolist() == [7, 5, -2]
    for column in (pandas.Series(["a", None]), pyarrow.array([None, "a"]), pandas.Series([1.5, 1])):
        with pytest.raises(BatchError, match=r"src: .*row \d (is missing|has 1\.5)"):
            Graph(names=True, device=device).insert(column, "b")


def test_names_stay_when_the_graph_goes_on(device: str) -> None:
    g = Graph(names=True, device=device)
    g.insert(["a", "b"], ["b", 3])
    s, compact = g.snapshot(), g.snapshot(compact=True)
    g.remove_vertices("a")
    g.insert([f"n{i}" for i in range(5000)], "b")
    for frozen in (s.names, compact.names):
        assert frozen is not None
        assert frozen.of([2, 0]).tolist() == [3, "a"]
        assert (frozen.find("b"), frozen.find("n7"), len(frozen)) == (1, None, 3)
        with pytest.raises(IndexError):
            frozen.of([3])
    now = g.snapshot(compact=True).names
    assert now is not None
    assert (now.find("a"), now.row("b")) == (None, 0)
    with pytest.raises(BatchError, match="there is no vertex '3'; the integer is there"):
        now.row("3")


def test_changes_are_told_by_name(device: str) -> None:
    g = Graph(names=True, device=device)
    g.insert(["x", "y"], ["y", 2**63])
    since = g.version
    g.delete("x", "y")
    g.delete("nobody", "y")
    g.insert("y", "x")
    changes = g.changes(since)
    assert changes is not None
    told = zip(changes.src.tolist(), changes.dst.tolist(), changes.inserted.tolist(), strict=True)
    assert set(told) == {("x", "y", False), ("y", "x", True)}


def test_graphs_without_names_refuse_text() -> None:
    g, batch = Graph(device="cpu"), Batch()
    batch.insert("a", 1)
    for bad in (batch, Batch.from_columns(Kind.INSERT, [1], [2], names=True)):
        with pytest.raises(BatchError, match=r"lpma\.Graph\(names=True\)"):
            g.apply(bad)
    with pytest.raises(BatchError, match=r"names=True"):
        g.insert("a", "b")


def test_columns_of_integers_are_names(device: str) -> None:
    """Batches made without a word about names, and those filled in pinned memory."""
    g = Graph(names=True, device=device)
    g.apply(Batch.from_columns(Kind.INSERT, [70, 71], [71, 70]))
    pinned = lpma.pinned_batch(1)
    pinned.src[:], pinned.dst[:] = 71, 99
    g.apply(pinned)
    assert set(state(g)[0]) == {(70, 71), (71, 70), (71, 99)}
