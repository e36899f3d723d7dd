"""Large batches of plain arrays, as callers have them: every type of integers, every layout, and
what is refused. On a device they are staged in pieces and validated there (staging.py); the errors
are those of the host."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lpma
from lpma import Batch, BatchError, Kind
from lpma.coerce import MAX_VERTEX, NO_VERTEX
from lpma.unseen import LARGE, narrow, unseen_edges, width
from tests.support.oracles import host

Array = npt.NDArray[Any]

N = LARGE + 4321  # a whole piece, and a part of one
INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]


def rows(seed: int, n: int = N, span: int = 120) -> tuple[Array, Array, Array, Array]:
    """(src, dst, weight, time) of n edges, many of them more than once; weights in quarters."""
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(0, span, (2, n))
    return src, dst, rng.integers(-1, 9, n) / 4, rng.integers(0, 1000, n)


def held(g: lpma.Graph) -> list[Array]:
    """What a graph holds, on the host."""
    s = g.snapshot()
    return [host(a) for a in (s.indptr, s.indices, s.weights, s.times)]


def by_the_slow_way(*batches: tuple[Any, ...]) -> lpma.Graph:
    """A graph on the host given the same by validated columns, in batches too small to stage."""
    g = lpma.Graph(device="cpu")
    for kind, src, dst, weight, time in batches:
        for lo in range(0, len(src), LARGE // 2):
            part = slice(lo, lo + LARGE // 2)
            w = None if weight is None else np.asarray(weight, np.float64)[part]
            g.apply(Batch.from_columns(kind, src[part], dst[part], w, time[part]))
    return g


def assert_same_graph(g: lpma.Graph, other: lpma.Graph) -> None:
    for mine, theirs in zip(held(g), held(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    g.check()


@pytest.mark.parametrize("ids", INTEGERS)
def test_ids_as_they_come(device: str, ids: str) -> None:
    src, dst, weight, time = rows(1)
    g = lpma.Graph(device=device)
    g.insert(src.astype(ids), dst.astype(ids), weight.astype(np.float32), time)
    g.delete(dst.astype(ids), src.astype(ids), time)
    deletion = Kind.DELETE, dst, src, None, time
    assert_same_graph(g, by_the_slow_way((Kind.APPEND, src, dst, weight, time), deletion))


@pytest.mark.parametrize("weight", ["float32", "float64", "float16", "int64"])
@pytest.mark.parametrize("time", ["int64", "int32", "uint16", "uint64"])
def test_weights_and_times_as_they_come(device: str, weight: str, time: str) -> None:
    src, dst, w, t = rows(2)
    w = w.astype(weight)
    g = lpma.Graph(device=device)
    g.insert(src, dst, w, t.astype(time))
    assert_same_graph(g, by_the_slow_way((Kind.APPEND, src, dst, w, t)))


def strided(a: Array) -> Array:
    wide = np.zeros((len(a), 3), a.dtype)
    wide[:, 1] = a
    return wide[:, 1]


def backwards(a: Array) -> Array:
    return np.ascontiguousarray(a[::-1])[::-1]


def foreign(a: Array) -> Array:
    return a.astype(a.dtype.newbyteorder())


def locked(a: Array) -> Array:
    a = a.copy()
    a.flags.writeable = False
    return a


def unaligned(a: Array) -> Array:
    memory = np.zeros(a.nbytes + 1, np.uint8)
    view = memory[1:].view(a.dtype)
    view[:] = a
    return view


@pytest.mark.parametrize("form", [strided, backwards, foreign, locked, unaligned])
@pytest.mark.parametrize("ids", ["int64", "int32", "uint32"])
def test_layouts(device: str, ids: str, form: Callable[[Array], Array]) -> None:
    src, dst, weight, time = rows(3)
    g = lpma.Graph(device=device)
    g.insert(form(src.astype(ids)), form(dst.astype(ids)), form(weight), form(time))
    assert_same_graph(g, by_the_slow_way((Kind.APPEND, src, dst, weight, time)))


def test_arrays_in_files(device: str, tmp_path: Path) -> None:
    src, dst, weight, time = rows(4)
    maps = []
    for name, column in (("src", src), ("dst", dst), ("weight", weight), ("time", time)):
        np.save(tmp_path / name, column)
        maps.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    g = lpma.Graph(device=device)
    g.insert(*maps)
    assert_same_graph(g, by_the_slow_way((Kind.APPEND, src, dst, weight, time)))


def test_scalars_beside_arrays_and_several_batches(device: str) -> None:
    g, batches = lpma.Graph(device=device), []
    for seed in range(5):  # more than there are blocks, of sizes that grow and shrink
        n = (N, 3 * LARGE, 10, LARGE, N)[seed]
        src, dst, weight, time = rows(seed, n)
        g.insert(src, dst, 0.5, 7)
        g.insert(src.astype(np.int32), dst, weight, time)
        batches += [(Kind.APPEND, src, dst, np.full(n, 0.5), np.full(n, 7))]
        batches += [(Kind.APPEND, src, dst, weight, time)]
    assert_same_graph(g, by_the_slow_way(*batches))


def test_both_directions_and_a_front_of_times(device: str) -> None:
    src, dst, weight, time = rows(5)
    here = lpma.Graph(device=device, predecessors=True)
    there = lpma.Graph(device="cpu", predecessors=True)
    for g in (here, there):
        g.insert(src.astype(np.int32), dst.astype(np.int32), weight, time.astype(np.int32))
        g.expire(300)
        g.insert(dst.astype(np.int32), src, weight, time.astype(np.int32))
        g.expire(500)
    assert_same_graph(here, there)


# What is refused -------------------------------------------------------------------------------

BAD = [
    ("src", "int64", -1), ("dst", "int64", -1), ("src", "int64", -(2**63)),
    ("dst", "int64", NO_VERTEX), ("src", "int64", 2**32), ("dst", "int64", 2**32 + 5),
    ("src", "int64", 2**63 - 1), ("src", "int32", -1), ("dst", "int32", -(2**31)),
    ("src", "int16", -7), ("dst", "int8", -128), ("src", "uint32", NO_VERTEX),
    ("dst", "uint64", NO_VERTEX), ("src", "uint64", 2**64 - 1),
    ("weight", "float32", np.nan), ("weight", "float32", np.inf), ("weight", "float64", -2e30),
]  # fmt: skip


@pytest.mark.parametrize("where", [0, LARGE - 1, LARGE, N - 1])
@pytest.mark.parametrize("name, dtype, value", BAD)
def test_one_bad_row(device: str, name: str, dtype: str, value: Any, where: int) -> None:
    src, dst, weight, time = rows(6)
    given = {"src": src, "dst": dst, "weight": weight, "time": time}
    g = lpma.Graph(device=device)
    g.insert(src[:100], dst[:100], 1.0, 0)
    before = held(g), g.version
    given[name] = given[name].astype(dtype)
    given[name][where] = value
    with pytest.raises(BatchError) as here:
        g.insert(**given)
    with pytest.raises(BatchError) as there:
        lpma.Graph(device="cpu").insert(**given)
    assert str(here.value) == str(there.value)
    assert g.version == before[1]
    for now, then in zip(held(g), before[0], strict=True):
        np.testing.assert_array_equal(now, then)
    g.check()
    given[name][where] = 1  # and the next batch is none the worse for it
    g.insert(**given)
    g.check()


@pytest.mark.parametrize("name", ["src", "dst", "weight", "time"])
@pytest.mark.parametrize("dtype", ["bool", "object", "U3", "complex128", "M8[ms]", "m8[ms]"])
def test_types_that_are_refused_or_read(device: str, name: str, dtype: str) -> None:
    src, dst, weight, time = rows(7)
    given = {"src": src, "dst": dst, "weight": weight, "time": time}
    given[name] = given[name].astype(np.int64).astype(dtype)
    outcomes = []
    for where in (device, "cpu"):
        g = lpma.Graph(device=where)
        try:
            g.insert(**given)
            outcomes.append((g.num_edges, ""))
        except BatchError as error:
            outcomes.append((g.num_edges, str(error)))
    assert outcomes[0] == outcomes[1]


def test_floats_where_they_are_whole(device: str) -> None:
    src, dst, weight, time = rows(8)
    g = lpma.Graph(device=device)
    g.insert(src.astype(np.float64), dst, weight, time)
    assert_same_graph(g, by_the_slow_way((Kind.APPEND, src, dst, weight, time)))
    for bad in (0.5, np.nan, -1.0, 2.0**60):
        broken = src.astype(np.float64)
        broken[LARGE] = bad
        with pytest.raises(BatchError, match="src"):
            g.insert(broken, dst, weight, time)


def test_lengths_that_differ(device: str) -> None:
    src, dst, weight, time = rows(9)
    g = lpma.Graph(device=device)
    for columns in (
        (src, dst[1:], 1.0, 0), (src, dst, weight[1:], 0), (src, dst, weight, time[1:]),
    ):  # fmt: skip
        with pytest.raises(BatchError, match="rows"):
            g.insert(*columns)
    assert g.num_edges == g.version == 0


def test_arrays_that_another_thread_writes_to(device: str) -> None:
    """Each value is read once: whatever a batch finds, it is refused or holds vertices only."""
    src, dst, weight, _ = rows(10)
    stop = threading.Event()

    def disturb() -> None:
        while not stop.is_set():
            src[::97] = -1
            src[::97] = 5

    thread = threading.Thread(target=disturb)
    thread.start()
    g = lpma.Graph(device=device, times=False)
    try:
        for _ in range(20):
            with suppress(BatchError):
                g.insert(src, dst, weight)
    finally:
        stop.set()
        thread.join()
    g.check()
    assert g.num_vertices <= 120


@pytest.mark.gpu
@pytest.mark.parametrize("part", ["src", "weight"])
def test_a_piece_that_cannot_be_copied(
    cupy: Any, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """The batch is refused as a whole, and the next goes the same way again."""
    from lpma.backend.cuda import staging

    def fail(name: str, column: Array, into: Array) -> None:
        if name == part:
            raise MemoryError("no room")
        narrow(name, column, into)

    src, dst, weight, time = rows(11)
    g = lpma.Graph(device="cuda")
    g.insert(src[:100], dst[:100], 1.0, 0)
    before = held(g)
    with monkeypatch.context() as broken:
        broken.setattr(staging, "narrow", fail)
        for _ in range(3):
            with pytest.raises(lpma.OutOfMemory):
                g.insert(src, dst, weight, time)
    for now, then in zip(held(g), before, strict=True):
        np.testing.assert_array_equal(now, then)
    g.delete(src[:100], dst[:100], 1)
    g.insert(src, dst, weight, time)
    assert_same_graph(g, by_the_slow_way((Kind.APPEND, src, dst, weight, time)))


# The pieces themselves --------------------------------------------------------------------------


@given(
    st.sampled_from(INTEGERS), st.lists(st.integers(-(2**63), 2**64 - 1), max_size=20),
    st.sampled_from([1, -1, 2]),
)  # fmt: skip
@settings(max_examples=200)
def test_narrowing_an_id(dtype: str, values: list[int], step: int) -> None:
    bounds = np.iinfo(dtype)
    column = np.array([v for v in values if bounds.min <= v <= bounds.max], dtype)[::step]
    into = np.empty(width("src", column) * len(column), np.uint8)
    narrow("src", column, into)
    expected = [v if 0 <= v <= MAX_VERTEX else NO_VERTEX for v in column.tolist()]
    assert into.view(np.uint32).tolist() == expected


def test_small_batches_and_those_of_other_types_are_looked_at() -> None:
    large = np.arange(LARGE)
    assert unseen_edges(Kind.APPEND, large, large, None, None) is not None
    assert unseen_edges(Kind.APPEND, large[1:], large[1:], None, None) is None
    for other in (large.astype(bool), large.astype(float), large.astype(">i8"), large.tolist()):
        assert unseen_edges(Kind.APPEND, other, large, None, None) is None
