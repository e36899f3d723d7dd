"""What a caller may give by mistake: a clear error that says what to do, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sparse

import lpma
from lpma import Batch, BatchError
from tests.support.oracles import host

# What a graph might be thought to be made of, and what the error advises.
CONTENTS: list[tuple[Any, str]] = [
    (nx.path_graph(4), r"a Graph: .* made empty and filled .* lpma.from_networkx\(G\)"),
    (nx.MultiDiGraph(), r"a MultiDiGraph: .* lpma.from_networkx\(G\)"),
    (sparse.csr_matrix((3, 3)), r"a csr_matrix: .* lpma.from_scipy\(A\)"),
    (np.array([[0, 1], [1, 2]]), r"a ndarray: .* lpma.from_edge_index\(edge_index\)"),
    (np.array(True), r"a ndarray: .* lpma.from_edges\(src, dst\)"),
    ([(0, 1), (1, 2)], r"a list: .* lpma.from_edges\(src, dst\)"),
    ({0: [1]}, "a dict: "),
    (4, "a int: "),
    (None, "a NoneType: "),
    ("graph.lpma", "'graph.lpma': lpma.Graph.load reads a file"),
    (Path("graph.lpma"), ".*: lpma.Graph.load reads a file"),
]


@pytest.mark.parametrize("given, advice", CONTENTS, ids=lambda x: type(x).__name__)
def test_a_graph_is_made_of_nothing(given: Any, advice: str) -> None:
    with pytest.raises(BatchError, match=f"directed: True or False, not {advice}"):
        lpma.Graph(given)
    with pytest.raises(BatchError, match="directed"):
        lpma.Graph(directed=given)


@pytest.mark.parametrize("options", [
    {"predecessors": "yes"}, {"predecessors": 1}, {"times": None}, {"times": 0}, {"weight": 64},
    {"weight": np.ones(2)}, {"weight": "int32"}, {"strategy": ["hybrid"]}, {"global_merge": True},
    {"segment_size": "32"}, {"segment_size": 24}, {"segment_size": True},
])  # fmt: skip
def test_options_of_a_graph(options: dict[str, Any]) -> None:
    with pytest.raises(BatchError, match=next(iter(options))):
        lpma.Graph(device="cpu", **options)


def test_options_of_a_graph_are_keywords() -> None:
    make: Any = lpma.Graph
    assert not make(False, device="cpu").directed
    assert make(np.bool_(True), device="cpu").directed
    for arguments in ((True, False), (False, True, "float64")):
        with pytest.raises(TypeError, match="positional"):
            make(*arguments)
    with pytest.raises(TypeError, match="weights"):
        make(weights="float64")


DAY = datetime(2020, 1, 1)

# (src, dst, weight, time) and what the error says.
ROWS: list[tuple[tuple[Any, ...], str]] = [
    (([1, 2], [2]), "dst has 1 rows, src has 2: .* a plain number, not in a list"),
    (([1], [2, 3]), "dst has 2 rows, src has 1"),
    (([], [2]), "dst has 1 rows, src has 0"),
    (([1, 2], np.array([2])), "dst has 1 rows"),
    (([1, 2], (3,)), "dst has 1 rows"),
    (([1, 2], [2, 3], [0.5]), "weight has 1 rows, src has 2: .* plain number"),
    (([1, 2], [2, 3], np.ones(1)), "weight has 1 rows"),
    ((1, 2, [0.5, 1.0]), "weight has 2 rows, src has 1"),
    (([1, 2], [2, 3], 1.0, [7]), "time has 1 rows"),
    (([1, 2], [2, 3], 1.0, [7, 8, 9]), "time has 3 rows"),
    (([1, 2], None), "dst: a NoneType is no array"),
    ((None, [1]), "src: a NoneType"),
    (({1, 2}, [1, 2]), "src: a set is no array: give a number, a list or an array"),
    (([1, 2], (v for v in (1, 2))), "dst: a generator is no array"),
    (({1: 2}, [1]), "src: a dict"),
    (({1: 2}.keys(), [1]), "src: a dict_keys"),
    ((nx.path_graph(3), [1]), "src"),
    ((sparse.eye(3).tocsr(), [1]), "src: a csr_matrix|src: a dia_matrix|src"),
    ((True, 2), "src: expected integers, got bool"),
    (([True, False], [1, 2]), "src: expected numbers, and row 0 has True, a boolean"),
    (([1, True], [1, 2]), "src: expected numbers, and row 1 has True, a boolean"),
    ((np.array([True]), [1]), "src: expected integers, got bool, booleans: give integers"),
    (([1, 2**64 - 1], [1, 2]), f"src: vertex ids go .*, and row 1 has {2**64 - 1}"),
    (([1.0, 2.5], [1, 2]), "src: .* row 1 has 2.5: floats are taken only .* whole numbers"),
    ((1, 2.5), "dst: .* row 0 has 2.5"),
    ((np.array([1.0, np.nan]), [1, 2]), "src: .* row 1 has nan: leave out"),
    (([1, 2.0**54], [1, 2]), "src: .* row 1 has 1.8.* beyond 2.53"),
    (([1, -np.inf], [1, 2]), "src: .* row 1 has -inf, beyond"),
    ((-1.0, 1), "src: vertex ids go from 0 to 4294967294"),
    ((2.0**32, 1), "src: vertex ids go from 0 to 4294967294"),
    (([1, None], [1, 2]), "src: expected integers, and row 1 has None: leave out"),
    (([1, 2, "c"], [1, 2, 3]), "src: expected integers, got <U21: vertices go by numbers"),
    ((np.array([1, 2, "c"], object), [1, 2, 3]), "src: .* row 2 has 'c': convert its values"),
    ((np.array([1, 2], object), [1, 2]), "src: expected integers, got object: convert its values"),
    ((["1", "2"], [1, 2]), "src: expected integers, got <U1: vertices go by numbers"),
    (("ab", "cd"), "src: expected integers"),
    ((b"ab", 1), "src: expected integers"),
    (([1 + 0j], [1]), "src: expected integers"),
    ((np.array(["2020-01-01"], "datetime64[s]"), [1]), "src: expected integers.* are times"),
    (([-1], [1]), "src: vertex ids go from 0 to 4294967294"),
    (([1], [-1]), "dst: vertex ids go from 0 to 4294967294"),
    ((-1, 1), "src: vertex ids go from 0 to 4294967294"),
    (([2**32 - 1], [1]), "src: vertex ids go from 0 to 4294967294"),
    (([1], [2**32]), "dst: vertex ids go from 0 to 4294967294"),
    (([1, 2**64], [1, 2]), f"src: vertex ids go from 0 to 4294967294, and row 1 has {2**64}"),
    (
        ([1], [-(2**63) - 1]),
        f"dst: vertex ids go from 0 to 4294967294, and row 0 has {-(2**63) - 1}",
    ),
    ((np.array([2**63], np.uint64), [1]), "src: vertex ids go from 0 to 4294967294"),
    (([[1, 2], [3, 4]], [1, 2]), r"src: expected one dimension, got shape \(2, 2\)"),
    (([[1], [2, 3]], [1, 2]), "src: cannot be read as an array"),
    ((np.ma.masked_array([1, 2], [False, True]), [1, 2]), "src: some values are masked"),
    (([1, 2], [1, 2], np.ma.masked_array([1.0, 2.0], [True, False])), "weight: some values are"),
    (([1], [2], "heavy"), "weight: expected numbers"),
    (([1], [2], [True]), "weight: expected numbers, and row 0 has True, a boolean"),
    (([1], [2], True), "weight: expected numbers, got bool"),
    (([1], [2], {0.5}), "weight: a set is no array"),
    (([1, 2], [2, 3], [0.5, None]), "weight: expected numbers, and row 1 has None"),
    (([1], [2], [1j]), "weight: expected numbers"),
    (([1], [2], np.nan), "weight: finite values .*, and this is nan"),
    (([1, 2], [2, 3], [1.0, np.nan]), "weight: finite values .*, and row 1 has nan"),
    (([1, 2], [2, 3], np.array([-np.inf, 1.0], np.float32)), "weight: .*, and row 0 has -inf"),
    (([1], [2], 1.0, 1.5), "time: a time is an integer, and row 0 has 1.5: floats are taken only"),
    (([1, 2], [2, 3], 1.0, [7.0, np.nan]), "time: .* row 1 has nan: leave out the rows"),
    (([1], [2], 1.0, 2.0**54), "time: .* beyond 2.53"),
    (([1], [2], 1.0, True), "time: expected integers, got bool"),
    (([1], [2], 1.0, "now"), "time: .* text is no time here"),
    (([1], [2], 1.0, 2**63), "time: "),
    (([1], [2], 1.0, [None]), "time: .* another type is no time here: give datetimes"),
    (([1], [2], 1.0, np.array(["NaT"], "M8[us]")), "time: row 0 has no time"),
    (([1], [2], 1.0, np.datetime64("NaT")), "time: a datetime64 without a unit"),
    (([1], [2], 1.0, [DAY, None]), "time: None is no time"),
    (([1], [2], 1.0, np.array([2**62], "M8[s]")), "time: a time lies outside"),
    (([1], [2], 1.0, np.array([1], "m8[s]")), "time: .* spans of time"),
    (([1], [2], 1.0, [DAY - DAY]), "time: expected integers"),
]


@pytest.mark.parametrize("rows, message", ROWS, ids=lambda x: x if isinstance(x, str) else "")
def test_rows_that_are_none(device: str, rows: tuple[Any, ...], message: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([0], [1])
    src, dst, weight, time = rows + (1.0, None)[len(rows) - 2 :]
    calls: list[Callable[[], Any]] = [
        lambda: g.insert(src, dst, weight, time),
        lambda: g.apply(Batch.from_columns(0, src, dst, weight, time)),
    ]
    if len(rows) == 2:
        calls.append(lambda: g.delete(src, dst))
        with pytest.raises(BatchError):
            g.edges(src, dst)
    for call in calls:
        with pytest.raises(BatchError, match=message):
            call()
    assert (g.version, g.num_edges, g.num_rows) == (1, 1, 2)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint64, np.uint32, np.float64])
def test_the_row_of_a_number_that_is_no_id_is_told(dtype: Any) -> None:
    g = lpma.Graph(device="cpu")
    for bad in (-1, 2**32 - 1, 2**32, 2**40):
        with np.errstate(all="ignore"):
            if np.array(bad, np.float64) != np.array(bad, np.float64).astype(dtype):
                continue
        column = np.array([1, 2, bad, 3]).astype(dtype)
        told = f"u: vertex ids go from 0 to 4294967294, and row 2 has {bad}"
        with pytest.raises(BatchError, match=told):
            g.degree(column)
        with pytest.raises(BatchError, match=f"and this is {bad}"):
            g.degree(bad)


@pytest.mark.parametrize("kind", ["append", ["append"], [None]])
def test_a_kind_that_is_none_is_told_what_kinds_are(kind: Any) -> None:
    with pytest.raises(BatchError, match=r"kind: expected integers.*: one of lpma\.Kind, such as"):
        Batch.from_columns(kind, [1], [2])


@pytest.mark.parametrize("bad", [None, {1}, True, [True], 1.5, [0.5], "a", [-1], 2**32 - 1, [[1]]])
def test_vertices_that_are_none(device: str, bad: Any) -> None:
    g = lpma.Graph(device=device, predecessors=True)
    g.insert([0], [1])
    for call in (
        g.add_vertices, g.remove_vertices, g.successors, g.predecessors, g.degree, g.has_vertices,
        lambda v: g.hops(v, 2),
    ):  # fmt: skip
        with pytest.raises(BatchError):
            call(bad)
    assert (g.version, g.num_edges) == (1, 1)


@pytest.mark.parametrize("src, dst, weight, time, edges", [
    (0, [1, 2], 1.0, None, 2),
    ([0, 1], 2, 1.0, None, 2),
    (0, 1, 2.5, 7, 1),
    (0, 1, 2.5, 7.0, 1),
    ([0, 1], [1, 2], 2.5, [7.0, -3.0], 2),
    (np.array(0), [1, 2], np.array(0.5), np.array(7), 2),
    (np.uint32(0), np.array([1, 2]), np.float32(0.5), np.int64(7), 2),
    ([0, 1], [1, 2], 3, 7, 2),
    ([0], [1], [0.5], [7], 1),
    (0, 1, [0.5], [7], 1),
    (range(3), (1, 2, 3), 1.0, None, 3),
    (np.array([0, 1], np.int8), np.array([1, 0], np.uint64), np.ones(2, np.float16), None, 2),
    ([0.0, 1.0], np.array([1, 2], np.float32), 1.0, None, 2),
    (np.array([0, 1], ">f8"), 2.0, 1.0, None, 2),
    ([], [], 1.0, None, 0),
    ([], 5, 1.0, 7, 0),
    (np.ma.masked_array([0, 1]), [1, 2], 1.0, None, 2),
])  # fmt: skip
def test_scalars_are_every_rows(
    device: str, src: Any, dst: Any, weight: Any, time: Any, edges: int
) -> None:
    g = lpma.Graph(device=device)
    g.insert(src, dst, weight, time)
    assert g.num_edges == edges
    s = g.snapshot()
    wanted = np.broadcast_to(np.asarray(weight, np.float32), edges)
    assert np.array_equal(host(s.weights), wanted)
    if time is not None:
        assert set(host(s.times).tolist()) <= set(np.ravel(time).tolist())
    g.delete(src, dst)
    assert g.num_edges == 0


@pytest.mark.gpu
def test_columns_on_a_device(cupy: Any) -> None:
    g = lpma.Graph(device="cuda")
    two, one = cupy.array([1, 2]), cupy.array([3])
    for arguments in ((two, one), (one, two), (two, two, cupy.ones(1)), (two, two, 1.0, one)):
        with pytest.raises(BatchError, match="must agree"):
            g.insert(*arguments)
    assert g.version == 0
    g.insert(two, cupy.array(3), cupy.array(0.5), cupy.array(7))
    s = g.snapshot()
    assert (g.num_edges, host(s.weights).tolist(), host(s.times).tolist()) == (
        2, [0.5, 0.5], [7, 7]
    )  # fmt: skip


def test_steps_are_no_name() -> None:
    """Vertices of a batch may be text, the number of steps may not: told at once."""
    batch = lpma.Batch()
    with pytest.raises(lpma.BatchError, match="k: expected an integer, got 'two'"):
        batch.hops(1, "two")  # type: ignore[arg-type]
    assert len(batch) == batch.num_queries == 0


def test_operations_one_by_one_name_the_argument_and_what_to_give() -> None:
    batch: Any = lpma.Batch()
    batch.insert(np.float32(3), 2.0)
    arrays = "a Batch takes one operation at a time, Batch.from_columns takes arrays"
    for call, message in (
        (lambda: batch.insert(np.float32(3.5), 2), r"u: .* got np.float32\(3.5\)$"),
        (lambda: batch.insert([1, 2**64 - 1], 2), f"u: .*: {arrays}"),
        (lambda: batch.degree(np.array([1])), f"u: .*: {arrays}"),
        (lambda: batch.edge(1, True), "v: .* got True, a boolean"),
        (lambda: batch.hops(1, np.bool_(True)), "k: .* a boolean"),
    ):  # fmt: skip
        with pytest.raises(lpma.BatchError, match=message):
            call()
    assert batch.columns().src.tolist() == [3]


@pytest.mark.parametrize(
    "before", [1.5, True, "now", None, [1, 2], [1], np.array([1]), 2**63, np.nan]
)
def test_an_expiry_takes_one_time(before: Any, device: str) -> None:
    message = "before: one time, in integer milliseconds or a datetime, not "
    graph, batch = lpma.Graph(device=device), lpma.Batch()
    for expire in (graph.expire, batch.expire):
        with pytest.raises(lpma.BatchError, match=message):
            expire(before)
    assert (graph.version, len(batch)) == (0, 0)
    for good in (
        5,
        5.0,
        np.int64(5),
        np.float32(5),
        np.array(5),
        datetime(2020, 1, 1),
        np.datetime64("2020-01-01"),
    ):
        batch.expire(good)
        graph.expire(good)
    assert len(batch) == 7
