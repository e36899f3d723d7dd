"""`python -m tests.support.emulated.calls`: how many Python functions a call of a graph on a device
calls, counted on an emulated one and printed as JSON. Beside a thread that computes in Python the
caches are cold, and each costs more than when they are counted alone.

Functions of lpma/cuda/driver.py count; what CuPy and compiled functions do does not, nor does what
emulates them."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from . import cupy_on_host

HERE = str(Path(__file__).parent)
VERTICES, LOADED, SIZE = 1 << 14, 120_000, 1000
TIMES = 4  # the last one counts: by then memory is had, and kernels are loaded


def counted(call: Callable[[], Any]) -> list[str]:
    """The functions that it calls, as they are called."""
    found: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or (_emulates(frame) and not code.co_qualname.startswith("Driver.")):
            return
        before = frame.f_back
        while before is not None:
            if _emulates(before) and before.f_code.co_filename != __file__:
                return
            before = before.f_back
        found.append(code.co_qualname)

    gc.collect()
    gc.disable()  # finalizers call, too
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        gc.enable()
    return found


def _emulates(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(HERE)


def cases() -> dict[str, Callable[[], Callable[[], Any]]]:
    """For each kind of call, what makes the next one of new edges."""
    import lpma

    rng = np.random.default_rng(0)
    g = lpma.Graph(device="cuda")

    def fresh(n: int = SIZE) -> Any:
        return rng.integers(0, VERTICES, (2, n)).astype(np.uint32)

    g.insert(*fresh(LOADED))
    batches = [lpma.pinned_batch(SIZE) for _ in range(2)]

    def pinned() -> Callable[[], Any]:
        batch = batches.pop(0)
        batches.append(batch)
        batch.src[:], batch.dst[:] = fresh()
        return lambda: g.apply(batch)

    def finished(make: Callable[[Any], Callable[[], Any]], n: int = SIZE) -> Any:
        """The call, with no batch on its way."""

        def made() -> Callable[[], Any]:
            ends = fresh(n)
            _ = g.num_edges
            return make(ends)

        return made

    def changed() -> Callable[[], Any]:
        g.insert(*fresh(10))
        _ = g.num_edges
        return g.snapshot

    def inserted() -> Callable[[], Any]:
        ends = fresh()
        return lambda: g.insert(*ends)

    return {
        "pinned batch": pinned,
        "batch": inserted,
        "batch on the device": finished(
            lambda ends: partial(g.insert, *map(cupy_on_host.on_device, ends))
        ),
        "edges": finished(lambda ends: lambda: g.edges(*ends)),
        "successors": finished(lambda ends: lambda: g.successors(ends[0])),
        "degree": finished(lambda ends: lambda: g.degree(ends[0])),
        "snapshot": changed,
        "one edge": finished(lambda ends: partial(g.insert, *ends.ravel().tolist()), 1),
    }


def main() -> None:
    cupy_on_host.install()
    from lpma.backend.cuda.upload import staging

    staging.compiled.get_ready()
    found: dict[str, int] = {}
    for name, make in cases().items():
        for _ in range(TIMES):
            calls = counted(make())
        found[name] = len(calls)
        if name in sys.argv[1:]:
            print(*calls, sep="\n", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
