"""A read that is cut off leaves the caller's stream as it was, and nothing behind that still writes
to memory which is the caller's.

What a read was to return goes back to CuPy's pool while a kernel may still write it. Whoever gets
it next, on the caller's stream, must come after that kernel. Kernels mostly end before anybody
could ask, so here each of them begins late."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import lpma
from tests.support.cut_batches import CASES, Cut, graph_of

pytestmark = pytest.mark.gpu

LATE_S = 0.004
READS: dict[str, Callable[[lpma.Graph], Any]] = {
    "edges": lambda g: g.edges([1, 2], [3, 4]),
    "successors": lambda g: g.successors([1, 2]),
    "hops": lambda g: g.hops([1, 2], 3),
    "degree": lambda g: g.degree([1, 2]),
    "predecessors": lambda g: g.predecessors([1]),
    "snapshot": lambda g: g.snapshot(compact=True),
}


class Late:
    """Has every kernel on a graph's stream begin late."""

    def __init__(self, start: Callable[..., None], cupy: Any) -> None:
        self._start, self._current = start, cupy.cuda.get_current_stream
        self._callers, self._begun, self._ended = self._current(), 0, list[int]()

    def start(self, *args: Any) -> None:
        stream = self._current()
        if stream.ptr == self._callers.ptr:
            self._start(*args)
            return
        self._begun += 1
        stream.launch_host_func(time.sleep, LATE_S)
        try:
            self._start(*args)
        finally:
            stream.launch_host_func(self._ended.append, 1)

    def is_callers(self) -> bool:
        """Whether the caller's stream is the current one."""
        return bool(self._current().ptr == self._callers.ptr)

    def has_ended(self) -> bool:
        """Whether all of them have, for whoever comes now on the caller's stream."""
        self._callers.synchronize()
        return len(self._ended) == self._begun


@pytest.fixture
def late(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> Late:
    from lpma.cuda import driver, launch

    late = Late(launch.start, cupy)
    monkeypatch.setattr(launch, "start", late.start)
    monkeypatch.setattr(driver, "_kept_ns", lambda: 0)  # a look is an event like others
    monkeypatch.setattr(driver, "APART_NS", 0)
    return late


@pytest.mark.parametrize("name", READS)
def test_whoever_gets_the_memory_comes_after(name: str, late: Late) -> None:
    config, before, batch = CASES["mixed"]
    g, read = graph_of(config, "cuda", [*before, batch]), READS[name]
    read(g)
    with Cut(0, KeyboardInterrupt) as count:
        read(g)
    cut_off = 0
    for n in range(1, count.events + 1):
        with Cut(n, KeyboardInterrupt) as cut:
            try:
                read(g)
            except KeyboardInterrupt:
                cut_off += 1
        assert late.is_callers(), cut.at
        assert late.has_ended(), cut.at
    assert cut_off > count.events // 2
