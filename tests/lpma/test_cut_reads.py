"""A read that is cut off leaves nothing behind that still writes to memory which is the caller's.

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


@pytest.fixture
def caller(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The caller's stream. Every kernel on another stream, a graph's, begins late."""
    from lpma.backend.cuda import listing
    from lpma.cuda import launch

    def start_late(*args: Any) -> None:
        stream = cupy.cuda.get_current_stream()
        if stream.ptr != of_caller.ptr:
            stream.launch_host_func(time.sleep, LATE_S)
        start(*args)

    of_caller, start = cupy.cuda.get_current_stream(), launch.start
    monkeypatch.setattr(launch, "start", start_late)
    monkeypatch.setattr(listing, "LOOKS", 0)  # a look is an event like others
    return of_caller


@pytest.mark.parametrize("name", READS)
def test_whoever_gets_the_memory_comes_after(name: str, caller: Any) -> None:
    config, before, batch, _ = CASES["mixed"]
    g, read = graph_of(config, "cuda", [*before, batch]), READS[name]
    backend: Any = g._stores.out.backend
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
        caller.synchronize()
        assert backend.stream.done, cut.at
    assert cut_off > count.events // 2
