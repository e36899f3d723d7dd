"""What is shared cannot be written to: a write to an array that a snapshot hands out raises, or on
a device changes nothing else."""

from __future__ import annotations

import copy
import importlib.util
import pickle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import algorithms
import lpma
from lpma.arrays import on_device
from tests.conftest import missing
from tests.support.compiled import compile_kernels
from tests.support.oracles import host

ARRAYS = ("indptr", "indices", "weights", "times", "ids", "added", "present")
FILL = 1  # a row that is there, so that whoever reads it goes astray, but not out of bounds


@pytest.fixture(autouse=True)
def compiled(request: pytest.FixtureRequest) -> None:
    """Rows follow each other, and columns are late, where compiled kernels keep the store."""
    drawn = getattr(request.node, "callspec", None)
    if drawn is None or drawn.params.get("device") == "cpu":
        compile_kernels()


def graph(device: str, directed: bool = True) -> lpma.Graph:
    g = lpma.Graph(directed, device=device)
    src, dst = np.random.default_rng(5).integers(0, 40, (2, 300))
    g.insert(src, dst, src % 7 + 0.5, time=dst)
    g.add_vertices([44, 47])
    return g


def arrays_of(s: lpma.Snapshot) -> dict[str, Any]:
    found = {name: getattr(s, name) for name in ARRAYS}
    return {name: array for name, array in found.items() if array is not None}


def spoil(array: Any) -> None:
    """Write to an array, if that is possible: on the host it must not be."""
    if on_device(array):
        array[:] = FILL
        return
    with pytest.raises(ValueError, match="read-only"):
        array[:] = FILL
    for view in (array, np.asarray(array), array[1:], array.view(np.uint8)):
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True


def contents(s: lpma.Snapshot) -> dict[str, Any]:
    """What exports and algorithms read of a snapshot."""
    return {
        **{name: host(array).tolist() for name, array in s.to_numpy().items()},
        "edges": host(s.to_edge_index()).tolist(),
        "vertices": s.num_vertices,
        "core": host(algorithms.core_numbers(s)).tolist(),
        "component": host(algorithms.connected_components(s)).tolist(),
        "hops": host(algorithms.bfs(s, 1)).tolist(),
        "ranks": host(algorithms.pagerank(s, tol=0, max_iter=3, weighted=True)).tolist(),
        "triangles": host(algorithms.triangles(s)).tolist(),
    }


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("is_used", [False, True])
@pytest.mark.parametrize("directed", [True, False])
def test_a_write_changes_no_other_snapshot_and_no_view(
    device: str, directed: bool, is_used: bool, name: str
) -> None:
    g = graph(device, directed)
    s, same = g.snapshot(compact=name == "ids"), g.snapshot()
    if is_used:  # algorithms have left their views on it
        contents(s)
    right = contents(graph(device, directed).snapshot(compact=name == "ids"))
    spoil(getattr(s, name))
    assert contents(s) == right
    g.insert(5, 6, time=9)
    other = graph(device, directed)
    assert contents(same) == contents(other.snapshot())
    other.insert(5, 6, time=9)
    assert contents(g.snapshot()) == contents(other.snapshot())


def test_the_case_that_was_found(device: str) -> None:
    g = graph(device)
    s = g.snapshot()
    spoil(s.indices)
    g.insert(5, 6)
    assert host(g.snapshot().indices).max() > FILL


def test_what_is_derived_from_a_snapshot_shares_nothing_that_can_be_written_to(device: str) -> None:
    s = graph(device, directed=False).snapshot()
    right = contents(s)
    core, truss = algorithms.k_core(s, 0), algorithms.k_truss(s, 2)
    for other in (core, truss, replace(s, version=9), copy.copy(s)):
        for array in arrays_of(other).values():
            spoil(array)
    assert contents(s) == right


# -- copies ---------------------------------------------------------------------------------------


def test_a_copy_is_written_to_and_read_as_it_then_is(device: str) -> None:
    s = graph(device).snapshot()
    right = contents(s)
    c: Any = s.copy()
    assert contents(c) == right
    c.weights *= 2
    c.times[:] = 3
    assert set(c.to_numpy()["times"].tolist()) == {3}
    assert c.to_numpy()["weights"].tolist() == (s.to_numpy()["weights"] * 2).tolist()
    first = algorithms.pagerank(c, weighted=True)
    c.weights[: int(c.indptr[9])] = 99
    assert (host(algorithms.pagerank(c, weighted=True)) != host(first)).any()
    assert contents(s) == right
    assert contents(c.copy()) == contents(c)


USES: dict[str, Callable[[Any], object]] = {
    "core": algorithms.core_numbers,
    "k-core": lambda c: algorithms.k_core(c, 1),
    "components": algorithms.connected_components,
    "triangles": algorithms.triangles,
    "ranks": algorithms.pagerank,
    "hops": lambda c: algorithms.bfs(c, 1),
    "similar": lambda c: algorithms.similar(c, 1, 2),
    "vertices": lambda c: c.num_vertices,
    "present": lambda c: c.present,
    "numpy": lambda c: c.to_numpy(),
    "scipy": lambda c: c.to_scipy(),
    "frozen": lambda c: replace(c),
}


@pytest.mark.parametrize("name, value", [("indices", 1 << 30), ("indices", 0), ("indptr", 5)])
@pytest.mark.parametrize("use", USES)
def test_a_copy_that_is_no_graph_any_more_is_refused(
    device: str, use: str, name: str, value: int
) -> None:
    c = graph(device).snapshot().copy()
    USES[use](c)
    getattr(c, name)[:] = value
    with pytest.raises(lpma.BatchError, match=name):
        USES[use](c)


def test_a_copy_with_vertices_that_are_none_is_refused(device: str) -> None:
    c: Any = graph(device).snapshot().copy()
    c.added[:] = 99
    for use in (algorithms.connected_components, lambda c: c.present, lambda c: c.num_vertices):
        with pytest.raises(lpma.BatchError, match="added"):
            use(c)


def test_only_a_copy_can_be_set() -> None:
    s = graph("cpu").snapshot()
    with pytest.raises(AttributeError, match=r"never changes; write to its copy\(\)"):
        s.version = 3
    with pytest.raises(AttributeError, match="never changes"):
        del s.version
    c: Any = s.copy()
    c.weights = c.weights.astype(np.float64)
    c.version = 3
    assert (c.to_numpy()["weights"].dtype, c.version) == (np.float64, 3)
    with pytest.raises(AttributeError, match="nothing"):
        c.nothing = 3
    c.weights = c.weights[1:]
    with pytest.raises(lpma.BatchError, match="for each entry of indices"):
        algorithms.pagerank(c, weighted=True)


@pytest.mark.parametrize("is_copy", [False, True])
def test_a_pickled_snapshot_is_the_same(device: str, is_copy: bool) -> None:
    s = graph(device).snapshot()
    s = s.copy() if is_copy else s
    arrays_of(s)  # handed out
    again = pickle.loads(pickle.dumps(s))  # noqa: S301
    assert contents(again) == contents(s)
    if not is_copy:
        for array in arrays_of(again).values():
            spoil(array)
    plain = pickle.loads(pickle.dumps(s.indices))  # noqa: S301
    assert on_device(plain) or type(plain) is np.ndarray
    assert plain.tolist() == s.indices.tolist()


# -- other libraries ------------------------------------------------------------------------------


def old_torch(array: Any) -> Any:
    """What torch.from_dlpack asked for until 2.8."""
    array.__dlpack_device__()
    return array.__dlpack__()


def new_torch(array: Any) -> Any:
    """What it asks for since."""
    array.__dlpack_device__()
    try:
        return array.__dlpack__(max_version=(1, 0))
    except TypeError:
        return array.__dlpack__()


class Capsule:
    """What a consumer has in its hands, for NumPy to look at."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize("consumer", [old_torch, new_torch])
@pytest.mark.parametrize("name", ARRAYS)
def test_whoever_takes_an_attribute_by_dlpack_has_a_copy(name: str, consumer: Any) -> None:
    s = graph("cpu").snapshot(compact=name == "ids")
    array = getattr(s, name)
    array = np.asarray(s.num_rows) if array is None else array
    for part in (array, array[1:], array[::2]):
        taken = np.from_dlpack(Capsule(consumer(part)))
        assert taken.tolist() == part.tolist()
        assert not np.shares_memory(taken, array)


def test_numpy_takes_an_attribute_by_dlpack() -> None:
    for array in arrays_of(graph("cpu").snapshot()).values():
        assert np.from_dlpack(array).tolist() == array.tolist()


def test_a_consumer_that_wants_no_copy_has_none_that_it_could_write_to() -> None:
    s = graph("cpu").snapshot()
    with pytest.raises(BufferError):
        s.indices.__dlpack__(copy=False)
    shared = np.from_dlpack(s.indices, copy=False)
    assert np.shares_memory(shared, s.indices)
    assert not shared.flags.writeable


def test_torch_takes_every_attribute(device: str) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    torch: Any = importlib.import_module("torch")
    s = graph(device).snapshot()
    right = contents(s)
    for array in arrays_of(s).values():
        tensor = torch.from_dlpack(array)
        assert tensor.tolist() == array.tolist()
        tensor.fill_(FILL)
        assert torch.as_tensor(array).tolist() == array.tolist()
    assert contents(s) == right


@pytest.mark.gpu
@pytest.mark.parametrize("of_device", ["cpu", "cuda"])
def test_cupy_takes_every_attribute(cupy: Any, of_device: str) -> None:
    s = graph(of_device).snapshot()
    right = contents(s)
    for array in arrays_of(s).values():
        taken = cupy.asarray(array)
        assert taken.tolist() == array.tolist()
        taken[:] = FILL
    assert contents(s) == right


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "numba"])
def test_tables_and_compilers_take_every_attribute(library: str) -> None:
    if importlib.util.find_spec(library) is None:
        missing("frames", f"{library} is not installed")
    module: Any = importlib.import_module(library)
    s = graph("cpu").snapshot()
    right = contents(s)
    for name, array in arrays_of(s).items():
        if library == "pandas":
            for column in (module.Series(array), module.DataFrame({name: array})[name]):
                assert column.tolist() == array.tolist()
                assert column.sort_values().iloc[0] == array.min()
                assert len(column[column > 0]) == (array > 0).sum()
                with suppress(ValueError):  # before pandas 3, which copies first
                    column.iloc[0] = column.iloc[-1]
            assert module.Index(array).tolist() == array.tolist()
        elif library == "polars":
            column = module.Series(array)
            assert column.to_list() == array.tolist()
            column[0] = column[-1]
        elif library == "pyarrow":
            assert module.array(array).to_pylist() == array.tolist()
        else:
            total = module.njit(lambda values: values.sum())
            assert total(array) == array.sum()
    assert contents(s) == right


def test_scipy_takes_every_attribute() -> None:
    sparse: Any = pytest.importorskip("scipy.sparse")
    s = graph("cpu").snapshot()
    right = contents(s)
    shape = (s.num_rows,) * 2
    matrix = sparse.csr_matrix((s.weights, s.indices, s.indptr), shape=shape)
    assert matrix.toarray().tolist() == s.to_scipy().toarray().tolist()
    assert (matrix.T @ matrix).sum() == pytest.approx((s.to_scipy().T @ s.to_scipy()).sum())
    assert matrix.tocsc().sorted_indices().sum() == matrix.sum()
    matrix.sum_duplicates()
    assert sparse.csgraph.connected_components(matrix)[0] > 0
    assert host(algorithms.core_numbers(matrix)).tolist() == right["core"]
    assert contents(s) == right


def test_results_of_arithmetic_may_be_written_to() -> None:
    s: Any = graph("cpu").snapshot()
    for array in (s.weights * 2, s.weights.copy(), s.indices.astype(np.int64), np.sort(s.indices)):
        array[:] = FILL
    assert repr(s.indptr) == repr(np.array(s.indptr))
    assert str(s.indptr[:3]) == str(np.array(s.indptr[:3]))


def test_attributes_are_arguments_like_any_others(device: str) -> None:
    s: Any = graph(device).snapshot()
    row = s.indices[int(s.indptr[3]) : int(s.indptr[4])]
    g = lpma.Graph(device=device)
    g.insert(row, row, weight=s.weights[: len(row)], time=s.times[: len(row)])
    assert bool(g.edges(row, row).found.all())
    assert len(g.successors(row).ids) == len(row)
    g.delete(row, row)
    assert g.num_edges == 0
    assert len(algorithms.common_neighbors(s, row, row)) == len(row)


# -- on a device ----------------------------------------------------------------------------------


@pytest.mark.gpu
def test_an_attribute_is_whole_on_whichever_stream_reads_it_first(cupy: Any) -> None:
    """The copy is made on the stream for which the snapshot was taken; the reader's waits."""
    g = graph("cuda")
    right = contents(graph("cpu").snapshot())
    mine, yours = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    for _ in range(20):
        with mine:
            s = g.snapshot()
        with yours:
            for name in ("indptr", "indices", "weights", "times"):
                assert getattr(s, name).tolist() == right[name]
                assert getattr(s, name) is getattr(s, name)


@pytest.mark.gpu
def test_snapshots_of_a_version_hand_out_no_common_memory(cupy: Any) -> None:
    g = graph("cuda")
    first, second = g.snapshot(), g.snapshot()
    for name in ("indptr", "indices", "weights", "times", "added", "present"):
        one, other = getattr(first, name), getattr(second, name)
        assert one.data.ptr != other.data.ptr
        assert one.data.ptr != getattr(first, f"_{name}").data.ptr
