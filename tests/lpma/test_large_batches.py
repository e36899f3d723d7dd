"""A batch of more than ONE_LAUNCH_ROWS rows is launched step by step, without a look in between."""

from __future__ import annotations

import sys
from itertools import count
from typing import Any

import numpy as np
import pytest

import lpma
from lpma import Kind
from lpma.backend.overlapping import ONE_LAUNCH_ROWS
from lpma.backend.values import Costs
from tests.support.plain_arrays import assert_same_graph

pytestmark = pytest.mark.gpu

STEPS = ["sort_batch", "locate", "decide", "move_leaves", "move_windows"]
ROWS = ONE_LAUNCH_ROWS + 1


@pytest.fixture
def launched(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is launched from here on."""
    from lpma.cuda import launch

    def note(name: str, *args: Any) -> None:
        names.append(name)
        start(name, *args)

    names: list[str] = []
    start = launch.start
    monkeypatch.setattr(launch, "start", note)
    return names


def pair(src: Any, dst: Any, **options: Any) -> tuple[lpma.Graph, lpma.Graph]:
    """The same graph on the device and on the host."""
    graphs = lpma.Graph(device="cuda", **options), lpma.Graph(device="cpu", **options)
    for g in graphs:
        g.insert(src, dst, time=1)
    return graphs


def test_no_report_is_read(launched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from lpma.backend.cuda.store.work import Work

    rng = np.random.default_rng(1)
    there, here = pair(*rng.integers(0, 1 << 20, (2, 10 * ROWS)))
    for change in ("insert", "delete", "set"):
        src, dst = rng.integers(0, 1 << 20, (2, ROWS))
        getattr(here, change)(src, dst, time=2)
        launched.clear()
        with monkeypatch.context() as patched:
            patched.setattr(Work, "read_report", pytest.fail)
            getattr(there, change)(src, dst, time=2)
        assert launched == STEPS
        assert_same_graph(there, here)


@pytest.mark.parametrize("options", [{}, {"weight_dtype": None, "times": False}])
def test_windows_that_had_no_room_have_it_the_next_time(
    options: dict[str, Any], launched: list[str]
) -> None:
    """All rows fall between two sources, where most of the store has to make room for them."""
    rng = np.random.default_rng(2)
    there, here = pair(*rng.integers(0, 1 << 20, (2, 6 * ROWS)), **options)
    src, dst = np.full(ROWS, 1 << 19), rng.permutation(1 << 20)[:ROWS]
    declined = []
    for change in ("insert", "delete", "set"):
        getattr(here, change)(src, dst, time=2)
        launched.clear()
        getattr(there, change)(src, dst, time=2)
        declined.append("plan_batch" in launched)
        assert_same_graph(there, here)
    assert declined == [True, False, False]


def test_buffers_that_are_much_for_a_store_are_given_back(
    launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    there, here = pair(*rng.integers(0, 1 << 20, (2, 6 * ROWS)))
    monkeypatch.setattr("lpma.backend.cuda.backend.KEPT_BYTES", 1 << 20)
    backend: Any = there._stores.out.backend
    for change in ("insert", "delete"):
        src, dst = rng.integers(0, 1 << 20, (2, ROWS))
        launched.clear()
        for g in (there, here):
            getattr(g, change)(src, dst, time=2)
        assert launched == STEPS
        assert backend.work.rows == 0
        assert_same_graph(there, here)


@pytest.mark.parametrize("rows", [1000, ROWS])
def test_marks_that_there_was_no_memory_for(
    cupy: Any, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is as it was, but the marks of its tree are gone: they are had anew."""
    rng = np.random.default_rng(4)
    there, here = pair(*rng.integers(0, 1 << 20, (2, 6 * ROWS)), global_merge="never")
    for g in (there, here):
        g.insert(*np.divmod(np.arange(rows), 1000), time=1)
    backend: Any = there._stores.out.backend

    def fail(*_: Any) -> None:
        raise MemoryError("no room for marks")

    def reserve_tree(self: Any, m: int) -> None:
        if m == self._m:
            return
        with monkeypatch.context() as full:
            full.setattr(cupy, "zeros", fail)
            reserve(self, m)

    reserve = type(backend.work).reserve_tree
    with monkeypatch.context() as patched:
        patched.setattr(type(backend.work), "reserve_tree", reserve_tree)
        with pytest.raises(lpma.OutOfMemory):
            there.insert(*rng.integers(0, 1 << 20, (2, 20 * ROWS)))
    assert not backend.work._m > 0
    src, dst = rng.integers(0, 1 << 20, (2, rows))
    for g in (there, here):
        g.insert(src, dst, time=2)
    assert backend.work._m > 0
    assert_same_graph(there, here)


@pytest.mark.parametrize("name", ["next_plan", "_refused", "launch"])
def test_an_error_between_two_lines(cupy: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch is not there or the graph is broken. What comes next is whole, and so is what was
    on its way before, which the device declines."""
    from lpma.backend.cuda.store.work import Work
    from lpma.backend.cuda.update.fused import FusedPath

    code = getattr(Work if name == "next_plan" else FusedPath, name).__code__
    if name == "launch":
        monkeypatch.setattr("lpma.store.pending.SHARE", 0)  # whatever its size, a batch follows
        monkeypatch.setattr("lpma.backend.cuda.backend.CudaBackend.costs", Costs(10.0, 2.0, 0.05))
    options = {"global_merge": "auto" if name == "launch" else "never", "strategy": "bottom-up"}
    rng, ended = np.random.default_rng(5), set()
    for at in count(1):
        there, here = pair(*rng.integers(0, 3000, (2, 4000)), **options)
        lines = count(1)

        def trace(frame: Any, event: str, _: Any, at: int = at, lines: Any = lines) -> Any:
            if frame.f_code is code and event != "call" and next(lines) == at:
                raise TimeoutError("a signal's handler")
            return trace

        for g in (there, here):
            g.insert(*np.divmod(np.arange(3 * 450, step=3), 90), time=1)
        n = 12_000 if name == "_refused" else 500  # so many make the store grow
        src, dst = rng.integers(0, 3000, (2, n))
        sys.settrace(trace)
        try:
            there.insert(src, dst, time=2)
            here.insert(src, dst, time=2)
            ended.add("applied")
        except TimeoutError:
            ended.add("not there")
        except lpma.BrokenStore:
            ended.add("broken")
            continue
        finally:
            sys.settrace(None)
        kinds = rng.choice([Kind.INSERT, Kind.DEGREE], 600)
        src, dst = rng.integers(0, 3000, (2, 600))
        batch = lpma.Batch.from_columns(kinds, src, dst, weight=1.0, time=3)
        for g in (there, here):
            g.apply(batch)
        assert_same_graph(there, here)
        if "applied" in ended:
            break
    assert ended == {"applied", "not there", *([] if name == "next_plan" else ["broken"])}
