"""Arrays that lie on a device, and devices that are not the current one: what callers give is used
where it lies and in order with their streams, and what graphs hand out is theirs to keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import lpma
from lpma import Batch, BatchError, Kind
from lpma.arrays import on_device
from tests.support.oracles import agree, assert_same
from tests.support.strategies import Config, columns_of

pytestmark = pytest.mark.gpu

Array = npt.NDArray[Any]


def rows(seed: int, n: int, span: int = 200) -> tuple[Array, Array, Array, Array]:
    """(src, dst, weight, time) of n edges; weights in quarters."""
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(0, span, (2, n))
    return src, dst, rng.integers(-4, 25, n) / 4, rng.integers(0, 1000, n)


# In -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", ["uint32", "int64", "int32", "uint64", "uint16"])
@pytest.mark.parametrize("weight", ["float32", "float64", "float16", "int32"])
def test_updates_from_the_device(device: str, cupy: Any, ids: str, weight: str) -> None:
    config = Config(predecessors=True)
    g, model = config.graph(device), config.model()
    for seed in range(3):
        src, dst, w, time = rows(seed, 500)
        w = w.astype(weight).astype(np.float64)
        u, v = cupy.asarray(src.astype(ids)), cupy.asarray(dst.astype(ids))
        g.insert(u, v, cupy.asarray(w.astype(weight)), cupy.asarray(time))
        model.insert(src, dst, w, time)
        g.insert(u, 7, 0.25, 5)
        model.insert(src, np.full(500, 7), 0.25, 5)
        g.insert(3, v[:90], time=cupy.asarray(time[:90].astype(np.int32)))
        model.insert(np.full(90, 3), dst[:90], 1.0, time[:90])
        g.delete(u[100:200], dst[100:200], time=6)
        model.delete(src[100:200], dst[100:200], 6)
        kind = np.where(np.arange(500) % 3 == 0, Kind.DELETE, Kind.INSERT).astype(np.uint8)
        g.apply(Batch.from_columns(cupy.asarray(kind), u, v, cupy.asarray(w), time))
        model.apply(Batch.from_columns(kind, src, dst, w, time))
        g.add_vertices(cupy.asarray([1000 + seed]), 7)
        model.add_vertices([1000 + seed], 7)
        agree(g, model)


def test_nothing_from_the_device(device: str, cupy: Any) -> None:
    g, model = Config().graph(device), Config().model()
    nothing = cupy.empty(0, np.uint32)
    g.insert(nothing, nothing)
    g.apply(Batch.from_columns(0, cupy.empty(0), nothing, cupy.empty(0), cupy.empty(0, np.int64)))
    model.insert([], [])
    model.insert([], [])
    agree(g, model)
    assert len(g.degree(nothing)) == len(g.successors(nothing).ids) == 0


def test_queries_from_the_device(device: str, cupy: Any) -> None:
    g = lpma.Graph(device=device, predecessors=True)
    g.insert(*rows(1, 3000))
    src, dst, *_ = rows(2, 400, 300)
    u, v = cupy.asarray(src), cupy.asarray(dst.astype(np.uint32))
    for name, here, there in (
        ("edges", (src, dst), (u, v)),
        ("edges", (src, dst), (u, dst)),
        ("successors", (src,), (u,)),
        ("predecessors", (dst,), (v,)),
        ("degree", (src,), (u,)),
        ("has_vertices", (dst,), (v,)),
        ("hops", (src[:20], 2), (u[:20], 2)),
    ):
        query = getattr(g, name)
        expected = query(*here)
        assert_same(query(*there), _on_host(expected), name)
    strided = cupy.asarray(np.repeat(src, 2))[::2]
    assert_same(g.degree(strided), _on_host(g.degree(src)))


def _on_host(answer: Any) -> Any:
    """An answer as NumPy's arrays."""
    if on_device(answer):
        return answer.get()
    if isinstance(answer, np.ndarray):
        return answer
    return type(answer)(*(None if a is None else _on_host(a) for a in vars(answer).values()))


def test_mixed_batches_from_the_device(device: str, cupy: Any) -> None:
    config = Config(predecessors=True)
    g, model = config.graph(device), config.model()
    rng = np.random.default_rng(4)
    n = 600
    kind = rng.choice([Kind.INSERT] * 12 + [Kind.DELETE, Kind.REMOVE_VERTEX, *config.queries], n)
    src, dst = rng.integers(0, 30, (2, n))
    columns = columns_of(kind, src, dst, rng.integers(-8, 25, n), np.arange(n))
    named = (columns.kind, columns.src, columns.dst, columns.weight, columns.time)
    there = Batch.from_columns(*map(cupy.asarray, named))
    assert_same(g.apply(there).on_host(), model.apply(columns))
    assert_same(g.apply(there).on_host(), model.apply(columns))
    agree(g, model)


BAD: dict[str, Callable[[Any, lpma.Graph], Any]] = {
    "marker as source": lambda cp, g: g.insert(cp.asarray([1, 2**32 - 1]), cp.asarray([2, 3])),
    "marker as target": lambda cp, g: g.delete([1, 2], cp.asarray([1, 2**32 - 1], np.uint32)),
    "negative": lambda cp, g: g.insert(cp.asarray([1, -1]), cp.asarray([2, 3])),
    "negative int32": lambda cp, g: g.insert(cp.asarray([1, -(2**31)], np.int32), [2, 3]),
    "beyond 32 bits": lambda cp, g: g.insert(cp.asarray([1, 2]), cp.asarray([2**40, 3])),
    "beyond 63 bits": lambda cp, g: g.insert(cp.asarray([1, 2**64 - 1], np.uint64), [2, 3]),
    "fraction": lambda cp, g: g.insert(cp.asarray([0.5]), cp.asarray([2])),
    "bool": lambda cp, g: g.insert(cp.asarray([True]), cp.asarray([2])),
    "two dimensions": lambda cp, g: g.insert(cp.ones((2, 2), int), cp.ones((2, 2), int)),
    "unequal": lambda cp, g: g.insert(cp.arange(3), cp.arange(2)),
    "unequal weights": lambda cp, g: g.insert(cp.arange(3), cp.arange(3), cp.ones(2)),
    "unequal times": lambda cp, g: g.insert(cp.arange(3), cp.arange(3), 1.0, cp.arange(2)),
    "NaN": lambda cp, g: g.insert(cp.arange(2), cp.arange(2), cp.asarray([1.0, np.nan])),
    "infinity": lambda cp, g: g.insert([0, 1], [2, 3], cp.asarray([np.inf, 1], np.float32)),
    "heavy": lambda cp, g: g.insert(cp.arange(2), cp.arange(2), cp.asarray([1e31, 1])),
    "complex": lambda cp, g: g.insert(cp.arange(2), cp.arange(2), cp.asarray([1j, 1])),
    "NaN for all": lambda cp, g: g.insert(cp.arange(2), cp.arange(2), np.nan),
    "late time": lambda cp, g: g.insert([1], [2], 1.0, cp.asarray([2**63], np.uint64)),
    "edge of nobody": lambda cp, g: g.edges(cp.asarray([1]), cp.asarray([2**32 - 1])),
    "edges of nobody": lambda cp, g: g.edges(cp.asarray([2**32 - 1] * 999, np.uint32), [1] * 999),
    "degree of a debt": lambda cp, g: g.degree(cp.asarray([-1])),
    "in-degree of nobody": lambda cp, g: (g.in_degree if g.directed else g.degree)(
        cp.asarray([1, 2**32 - 1])
    ),
    "presence of nobody": lambda cp, g: g.has_vertices(cp.asarray([7, 2**40])),
    "neighbours of nobody": lambda cp, g: g.successors(cp.asarray([1, 2**32 - 1], np.uint32)),
    "rest of a row of nobody": lambda cp, g: g.successors_after(cp.asarray([-7])),
    "one edge of nobody": lambda cp, g: g.has_edge(cp.asarray(2**32 - 1), 1),
    "unknown kind": lambda cp, g: g.apply(Batch.from_columns(cp.asarray([12]), [1], [2])),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("config", [Config(predecessors=True, segment_size=2),
                                    Config(directed=False, weight_dtype=None)])  # fmt: skip
def test_bad_input_changes_nothing(device: str, cupy: Any, name: str, config: Config) -> None:
    g, model = config.graph(device), config.model()
    for graph in (g, model):
        graph.insert([1, 2, 3, 0], [2, 3, 1, 0], [1, 2, 3, 4], 9)
    with pytest.raises(BatchError) as caught:
        BAD[name](cupy, g)
    assert len(str(caught.value)) > 15
    agree(g, model)
    for graph in (g, model):
        graph.insert([1, 5], [2, 6], [1.0, 2.0], 10)
    agree(g, model)


def test_after_the_callers_stream(cupy: Any) -> None:
    """What a caller's stream still writes is seen; what was given may be overwritten at once."""
    busy = cupy.ones((4000, 4000), np.float32)
    g, model = lpma.Graph(device="cuda"), Config().model()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        src, dst = cupy.zeros(5000, np.uint32), cupy.zeros(5000, np.int64)
        time = cupy.zeros(5000, np.int64)
        for turn in range(1, 6):
            u, v, _, t = rows(turn, 5000)
            for _ in range(8):
                busy = busy @ busy
                busy *= 1 / 4000
            src[...], dst[...], time[...] = cupy.asarray(u), cupy.asarray(v), cupy.asarray(t)
            g.insert(src, dst, time=time)
            model.insert(u, v, 1.0, t)
            src.fill(9)
            dst.fill(2**32)
            time.fill(-1)
        agree(g, model)
        found = g.edges(cupy.asarray(u), cupy.asarray(v)).found
        assert bool(found.all())


class Offering:
    """An array that offers nothing but CUDA's array interface."""

    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__
        self.array = array


def test_other_libraries_arrays(device: str, cupy: Any) -> None:
    g, model = Config().graph(device), Config().model()
    src, dst, w, time = rows(5, 300)
    there = [Offering(cupy.asarray(column)) for column in (src, dst, w, time)]
    g.insert(*there)
    model.insert(src, dst, w, time)
    agree(g, model)
    assert_same(g.degree(Offering(cupy.asarray(src))), model.degree(src))


def test_torch(device: str, cupy: Any) -> None:
    """Tensors in, and snapshots out, through DLPack, without a copy and in order with streams."""
    torch = pytest.importorskip("torch")
    g, model = Config().graph(device), Config().model()
    src, dst, w, time = rows(6, 400)
    with torch.cuda.stream(torch.cuda.Stream()):
        g.insert(*(torch.as_tensor(column, device="cuda") for column in (src, dst, w, time)))
    model.insert(src, dst, w, time)
    g.delete(torch.as_tensor(src[:50]), torch.as_tensor(dst[:50], device="cuda"), time=3)
    model.delete(src[:50], dst[:50], 3)
    agree(g, model)
    with pytest.raises(BatchError, match=r"a vertex is an integer|vertex ids go from 0"):
        g.degree(torch.full((3,), 0.5, device="cuda"))
    s = g.snapshot()
    for name in ("indptr", "weights", "times"):
        array = s.to_dlpack()[name]
        tensor = torch.from_dlpack(array)
        assert tensor.is_cuda == on_device(array)
        assert_same(tensor.cpu().numpy(), getattr(model.snapshot(), name))
        pointer = array.data.ptr if on_device(array) else array.ctypes.data
        assert tensor.data_ptr() == pointer
    pairs = torch.from_dlpack(s.to_edge_index())
    assert tuple(pairs.shape) == (2, len(s.indices))


# Out ------------------------------------------------------------------------------------------


def test_what_is_handed_out_is_on_the_device(cupy: Any) -> None:
    g = lpma.Graph(device="cuda")
    g.insert(*rows(7, 1000))
    s: Any = g.snapshot()
    assert all(on_device(array) for array in s.to_dlpack().values())
    again = cupy.from_dlpack(s.indptr)
    assert again.data.ptr == s.indptr.data.ptr
    matrix = s.to_cupy()
    assert on_device(matrix.data)
    assert on_device(g.edges([1], [2]).found)
    assert on_device(g.degree([1]))
    assert isinstance(g.snapshot().to_scipy().data, np.ndarray)


def test_saved_on_one_loaded_on_the_other(cupy: Any, tmp_path: Any) -> None:
    for config in (Config(predecessors=True), Config(directed=False, weight_dtype="float64"),
                   Config(weight_dtype=None, times=False, segment_size=4)):  # fmt: skip
        graphs = {name: config.graph(name) for name in ("cpu", "cuda")}
        src, dst, w, time = rows(8, 4000)
        for name, g in graphs.items():
            g.insert(src, dst, w, time)
            g.add_vertices([500, 9], 8)
            g.save(tmp_path / name)
        assert (tmp_path / "cpu").read_bytes() == (tmp_path / "cuda").read_bytes()
        there = lpma.Graph.load(tmp_path / "cpu", device="cuda")
        here = lpma.Graph.load(tmp_path / "cuda", device="cpu")
        assert (there.device[:4], here.device) == ("cuda", "cpu")
        for g in (there, here):
            g.insert(dst, src, w, time)
            g.check()
        assert_same(there.snapshot(), here.snapshot())


LATE_FILL = """
extern "C" __global__ void late_fill(unsigned* words, long long n) {
  long long begin = clock64();
  while (clock64() - begin < 40000000) {}
  for (long long i = threadIdx.x; i < n; i += blockDim.x) words[i] = 0xFFFFFFFFu;
}
"""


def test_a_graph_gone_while_its_device_works(cupy: Any) -> None:
    """Its memory is not another graph's before the work is done."""
    late_fill = cupy.RawKernel(LATE_FILL, "late_fill")
    config = Config(predecessors=True)
    for seed in range(4):
        gone = config.graph("cuda")
        backend: Any = gone._stores.out.backend
        with backend.context.stream:
            words = cupy.empty(1 << 22, cupy.uint32)
            late_fill((1,), (1024,), (words, words.size))
            del words
        del gone, backend
        g, model = config.graph("cuda"), config.model()
        for part in range(3):
            src, dst, w, time = rows(10 * seed + part, 3000)
            g.insert(src, dst, w, time)
            model.insert(src, dst, w, time)
        agree(g, model)


# The second device ----------------------------------------------------------------------------


def test_a_device_that_is_not_there(cupy: Any) -> None:
    number = cupy.cuda.runtime.getDeviceCount()
    with pytest.raises(lpma.DeviceError, match=f"{number} CUDA device"):
        lpma.Graph(device=f"cuda:{number}")


@pytest.fixture
def second(cupy: Any) -> str:
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one CUDA device; this needs two")
    return "cuda:1"


@pytest.mark.parametrize("config", [Config(predecessors=True, segment_size=4), Config(),
                                    Config(directed=False, weight_dtype=None)])  # fmt: skip
def test_every_method_on_the_second_device(
    cupy: Any, second: str, config: Config, tmp_path: Any
) -> None:
    """With the first device current all along, and inputs on the host and on both devices."""
    assert cupy.cuda.runtime.getDevice() == 0
    g, model = config.graph(second), config.model()
    assert g.device == second
    for seed, place in enumerate((None, 0, 1)):
        src, dst, w, time = rows(seed, 800, 60)

        def given(column: Array, place: int | None = place) -> Any:
            if place is None:
                return column
            with cupy.cuda.Device(place):
                return cupy.asarray(column)

        g.insert(*map(given, (src, dst, w, time)))
        model.insert(src, dst, w, time)
        g.delete(given(src[:90]), given(dst[:90]), time=3)
        model.delete(src[:90], dst[:90], 3)
        g.add_vertices(given(np.array([70 + seed])), 4)
        model.add_vertices([70 + seed], 4)
        g.remove_vertices(given(np.array([seed])), 5)
        model.remove_vertices([seed], 5)
        agree(g, model)
        u, v = given(np.arange(40)), given(np.arange(20, 60))
        assert_same(g.edges(u, v), model.edges(range(40), range(20, 60)))
        assert_same(g.successors(u), model.successors(range(40)))
        assert_same(g.hops(u[:5], 3), model.hops(range(5), 3))
        assert_same(g.degree(u), model.degree(range(40)))
        assert_same(g.has_vertices(u), model.has_vertices(range(40)))
        if g.has_predecessors:
            assert_same(g.predecessors(u), model.predecessors(range(40)))
        assert cupy.cuda.runtime.getDevice() == 0
    rng = np.random.default_rng(9)
    kind = rng.choice([Kind.INSERT] * 12 + [Kind.DELETE, *config.queries], 500)
    src, dst = rng.integers(0, 60, (2, 500))
    columns = columns_of(kind, src, dst, rng.integers(1, 9, 500), np.arange(500))
    answers = g.apply(columns)
    expected = model.apply(columns)
    assert_same(answers, expected)
    assert_same(answers.on_host(), expected)
    assert_same(g.changes(g.version - 1), model.changes(g.version - 1))
    s = g.snapshot(compact=True)
    assert all(array.device.id == 1 for array in s.to_dlpack().values())
    assert_same(s.to_numpy()["indices"], model.snapshot(compact=True).indices)
    pairs: Any = s.to_edge_index()
    assert pairs.device.id == 1
    assert s.to_scipy().shape == (s.num_rows, s.num_rows)
    g.save(tmp_path / "g")
    loaded = lpma.Graph.load(tmp_path / "g", device=second)
    agree(loaded, model)
    assert (g.num_rows, loaded.levels >= 0, loaded.nbytes > 0) == (
        model.num_rows, True, True
    )  # fmt: skip
    assert cupy.cuda.runtime.getDevice() == 0
