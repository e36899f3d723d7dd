"""Batches of plain arrays, as callers have them: every type of integers, every layout. A device
takes large ones as they are (admission.py)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lpma
from lpma import Batch, BatchError, Kind
from lpma.backend.cuda.upload import staging
from lpma.cpu import threads
from lpma.engine.admission import unvalidated
from tests.support.plain_arrays import (
    LARGE,
    LAYOUTS,
    N,
    assert_same_graph,
    by_the_slow_way,
    foreign,
    gaps,
    held,
    rows,
    unaligned,
)

Array = npt.NDArray[Any]

INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
READ_IN_PLACE = 1 << 14  # rows: lpma/backend/cuda/upload/zero_copy.py, which needs CuPy
LENGTHS = (1, READ_IN_PLACE - 1, READ_IN_PLACE, READ_IN_PLACE + 1, N, LARGE)


@pytest.fixture(scope="module", autouse=True)
def kernel(device: str) -> None:
    staging.compiled.get_ready()


@pytest.fixture
def staged(device: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The lengths of the batches that are staged as they were given. On a device there must be
    one."""
    lengths: list[int] = []
    begin, put_here = staging.Staging.__init__, staging.put_here

    def noted(self: staging.Staging, names: Any, columns: Any, *where: Any) -> None:
        lengths.append(len(columns[0]))
        begin(self, names, columns, *where)

    def noted_here(names: Any, columns: Any, into: Any, looks: bool) -> None:
        if looks:
            lengths.append(len(columns[0]))
        put_here(names, columns, into, looks)

    monkeypatch.setattr(staging.Staging, "__init__", noted)
    monkeypatch.setattr(staging, "put_here", noted_here)
    yield lengths
    assert bool(lengths) == (device != "cpu")


@given(
    n=st.sampled_from(LENGTHS), seed=st.integers(0, 99),
    ids=st.tuples(st.sampled_from(INTEGERS), st.sampled_from(INTEGERS)),
    weight=st.sampled_from(["float32", "float64", "float16", "int64", None]),
    time=st.sampled_from(["int64", "int32", "uint16", "uint64"]),
    layouts=st.tuples(*[st.sampled_from(LAYOUTS)] * 4), directed=st.booleans(),
)  # fmt: skip
@settings(max_examples=30)
def test_any_types_any_layout_any_length(
    device: str, n: int, seed: int, ids: tuple[str, str], weight: str | None, time: str,
    layouts: tuple[Callable[[Array], Array], ...], directed: bool,
) -> None:  # fmt: skip
    src, dst, w, t = rows(seed, n)
    g = lpma.Graph(device=device, directed=directed)
    types = (*ids, weight or "float32", time)
    given = [
        form(column.astype(dtype))
        for form, column, dtype in zip(layouts, (src, dst, w, t), types, strict=True)
    ]
    kept = given[2].astype(np.float64) if weight else None
    g.insert(given[0], given[1], given[2] if weight else 1.0, given[3])
    g.delete(given[1][::2], given[0][::2], given[3][::2])
    g.set(given[0][::3], given[1][::3], given[2][::3] if weight else 1.0, given[3][::3])
    some = None if kept is None else kept[::3]
    put = Kind.SET, src[::3], dst[::3], some, t[::3]
    deletion = Kind.DELETE, dst[::2], src[::2], None, t[::2]
    insertion = Kind.INSERT, src, dst, kept, t
    assert_same_graph(g, by_the_slow_way(insertion, deletion, put, directed=directed))


@pytest.mark.parametrize("ids", ["uint32", "int32", "uint64", "int64"])
@pytest.mark.parametrize("n", [N, LARGE])
@pytest.mark.parametrize("predecessors", [False, True])
def test_ids_as_they_come(
    device: str, staged: list[int], ids: str, n: int, predecessors: bool
) -> None:
    src, dst, weight, time = rows(1, n)
    g = lpma.Graph(device=device, predecessors=predecessors)
    g.insert(src.astype(ids), dst.astype(ids), weight.astype(np.float32), time)
    g.delete(dst[:N].astype(ids), src[:N].astype(ids), time[:N])
    g.set(src[:N].astype(ids), dst[:N].astype(ids), 3.0, time[:N])
    put = Kind.SET, src[:N], dst[:N], np.full(N, 3.0), time[:N]
    deletion = Kind.DELETE, dst[:N], src[:N], None, time[:N]
    insertion = Kind.INSERT, src, dst, weight, time
    assert_same_graph(g, by_the_slow_way(insertion, deletion, put, predecessors=predecessors))
    assert not staged or staged == [n, N, N]


def test_arrays_in_files(device: str, staged: list[int], tmp_path: Path) -> None:
    src, dst, weight, time = rows(4)
    maps = []
    for name, column in (("src", src), ("dst", dst), ("weight", weight), ("time", time)):
        np.save(tmp_path / name, column)
        maps.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    g = lpma.Graph(device=device)
    g.insert(*map(np.asarray, maps))
    g.insert(*maps)
    batch = Kind.INSERT, src, dst, weight, time
    assert_same_graph(g, by_the_slow_way(batch, batch))


def test_scalars_beside_arrays_and_batches_that_follow(device: str, staged: list[int]) -> None:
    g, batches = lpma.Graph(device=device), []
    for seed, n in enumerate((N, 3 * N, 10, LARGE, READ_IN_PLACE, N)):  # more than there are blocks
        src, dst, weight, time = rows(seed, n)
        g.insert(src, dst, 0.5, 7)
        g.insert(src.astype(np.int32), dst, weight, time)
        batches += [(Kind.INSERT, src, dst, np.full(n, 0.5), np.full(n, 7))]
        batches += [(Kind.INSERT, src, dst, weight, time)]
    assert_same_graph(g, by_the_slow_way(*batches))


@pytest.mark.parametrize("n", [N, LARGE])
def test_arrays_are_the_callers_again(device: str, staged: list[int], n: int) -> None:
    """Whatever is written to them once the call has returned does not matter."""
    g, batches = lpma.Graph(device=device), []
    for seed in range(4):
        given = rows(seed, n)
        batches.append((Kind.INSERT, *(column.copy() for column in given)))
        g.insert(*given)
        for column in given:
            column[:] = 77
    assert_same_graph(g, by_the_slow_way(*batches))


def test_columns_validated_before(
    device: str, staged: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a large mixed batch are copied by threads too. What its deletions weigh does not
    matter."""
    monkeypatch.setattr(threads, "THREADS", 4)
    n = 2 * staging.HELPED // 21 + 1000  # of 21 bytes
    src, dst, weight, time = rows(12, n)
    kind = (np.arange(n) % 3 == 0).astype(np.uint8)
    weight[kind == Kind.DELETE] = np.nan
    batch = Batch.from_columns(kind, src, dst, weight.astype(np.float32), time)
    graphs = [lpma.Graph(device=name) for name in (device, "cpu")]
    for g in graphs:
        g.insert(src[:500], dst[:500], 1.0, 3)
        g.apply(batch)
    assert_same_graph(*graphs)


def test_a_front_of_times(device: str) -> None:
    src, dst, weight, time = rows(5)
    graphs = [lpma.Graph(device=name, predecessors=True) for name in (device, "cpu")]
    for g in graphs:
        g.insert(src.astype(np.int32), dst.astype(np.int32), weight, time)
        g.expire(300)
        g.insert(dst.astype(np.int32), src, weight, gaps(time))
        g.expire(500)
        with pytest.raises(BatchError, match="dst"):
            g.insert(src, np.where(src == 3, -1, dst), weight, time)
        g.expire(600)
    assert_same_graph(*graphs)


def test_two_stores_from_two_threads(device: str, staged: list[int]) -> None:
    graphs = [lpma.Graph(device=device) for _ in range(2)]
    batches = [[(Kind.INSERT, *rows(10 * i + j, N + 5000 * j)) for j in range(4)] for i in range(2)]
    wrong: list[BaseException] = []

    def work(g: lpma.Graph, mine: list[tuple[Any, ...]]) -> None:
        try:
            for _, *columns in mine:
                g.insert(*columns)
        except BaseException as error:  # noqa: BLE001 - told below
            wrong.append(error)

    workers = [
        threading.Thread(target=work, args=both) for both in zip(graphs, batches, strict=True)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    for g, mine in zip(graphs, batches, strict=True):
        assert_same_graph(g, by_the_slow_way(*mine))


def test_arrays_that_another_thread_writes_to(device: str) -> None:
    """Each value is read once: whatever a batch finds, it is refused or holds vertices only."""
    src, dst, weight, _ = rows(10)
    stop = threading.Event()

    def disturb() -> None:
        while not stop.wait(0.0001):
            src[::97] = -1
            src[::97] = 5

    thread = threading.Thread(target=disturb)
    thread.start()
    g, refused = lpma.Graph(device=device, times=False), 0
    try:
        for _ in range(20):
            try:
                g.insert(src, dst, weight)
            except BatchError:
                refused += 1
    finally:
        stop.set()
        thread.join()
    g.check()
    assert g.version == 20 - refused
    assert g.num_rows <= 120


def test_until_the_kernel_is_read_the_slow_way_is_taken(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging.compiled, "ready", False)
    monkeypatch.setattr(staging.compiled, "is_ready", lambda: False)
    monkeypatch.setattr(staging.Staging, "__init__", None)
    src, dst, weight, time = rows(11, LARGE)
    g = lpma.Graph(device=device)
    g.insert(src, dst, weight, time)
    assert_same_graph(g, by_the_slow_way((Kind.INSERT, src, dst, weight, time)))


@pytest.mark.gpu
@pytest.mark.parametrize("column", ["src", "dst", "weight", "time"])
def test_a_column_that_cannot_be_sent(
    cupy: Any, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    """The batch is refused as a whole, and the next goes the same way again."""
    from lpma.backend.cuda.upload.blocks import StagedCopy

    send = StagedCopy.send

    def fail(self: Any, name: str, to: Any) -> None:
        if name == column:
            raise MemoryError("no room")
        send(self, name, to)

    src, dst, weight, time = rows(11, LARGE)
    g = lpma.Graph(device="cuda")
    g.insert(src[:100], dst[:100], 1.0, 0)
    before = held(g)
    with monkeypatch.context() as broken:
        broken.setattr(StagedCopy, "send", fail)
        for _ in range(3):
            with pytest.raises(lpma.OutOfMemory):
                g.insert(src, dst, weight, time)
    for now, then in zip(held(g), before, strict=True):
        np.testing.assert_array_equal(now, then)
    g.delete(src[:100], dst[:100], 1)
    g.insert(src, dst, weight, time)
    assert_same_graph(g, by_the_slow_way((Kind.INSERT, src, dst, weight, time)))


def test_what_is_left_as_it_is(device: str) -> None:
    """The rule, without a store: types, layouts and lengths."""
    many = np.arange(READ_IN_PLACE)
    weight, time = np.ones(len(many), np.float32), many.copy()

    def taken(*columns: Any, least: int = len(many)) -> bool:
        return unvalidated(lambda n: n >= least, Kind.INSERT, *columns) is not None

    assert taken(many, many, weight, time)
    assert taken(many[::-1], gaps(many), gaps(weight), time)
    assert taken(many, many, 2.0, 5)
    assert taken(many.astype(np.uint32), many.astype(np.int32), None, None)
    assert not taken(many, many, weight, time, least=len(many) + 1)
    for other in (many.astype(bool), many.astype(float), foreign(many), unaligned(many),
                  many.astype(np.int16), many.tolist(), many[1:], 3):  # fmt: skip
        assert not taken(other, many, weight, time)
        assert not taken(many, other, weight, time)
