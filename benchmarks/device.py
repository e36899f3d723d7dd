"""The CUDA device: whether there is one, what it is, and our own kernels on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from .stopwatch import synchronize

T = TypeVar("T")


def why_none() -> str | None:
    """Why nothing can run on a CUDA device here; None if it can."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no CUDA device ({error})"
    return None if count else "no CUDA device"


@lru_cache(maxsize=32)
def module(name: str, cooperative: bool = False, **defines: int) -> Any:
    """The compiled kernels of a `.cu` of benchmarks/, each entry of `defines` being a macro."""
    import cupy

    code, options = given(name, defines)
    return cupy.RawModule(code=code, options=options, enable_cooperative_groups=cooperative)


def given(name: str, defines: Mapping[str, int]) -> tuple[str, tuple[str, ...]]:
    """The source and the options that the compiler gets."""
    from lpma.cuda import sources

    return sources.given(f"benchmarks/{name}.cu", tuple(f"-D{k}={v}" for k, v in defines.items()))


def blocks_for(items: int, per_block: int) -> int:
    return -(-items // per_block)


def count() -> int:
    import cupy

    return int(cupy.cuda.runtime.getDeviceCount())


def on_each(devices: int, of: Callable[[int], T]) -> list[T]:
    """What `of` gives with each of so many devices as the current one."""
    import cupy

    found = []
    for number in range(devices):
        with cupy.cuda.Device(number):
            found.append(of(number))
    return found


def memory_used() -> int:
    """Bytes of the device in use by anyone, after CuPy's pool has freed what it can."""
    import cupy

    synchronize()
    cupy.get_default_memory_pool().free_all_blocks()
    return memory_held()


def memory_held() -> int:
    """Bytes of the device in use by anyone, CuPy's pool included. The pool keeps what it has once
    taken, so after a call this is the most that the device held since `memory_used`."""
    import cupy

    synchronize()
    free, total = cupy.cuda.runtime.memGetInfo()
    return int(total - free)


def describe() -> dict[str, Any]:
    """Its name and size, and the versions of the driver and of the runtime."""
    import cupy

    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(cupy.cuda.Device().id)
    return {
        "name": str(properties["name"].decode()),
        "count": count(),
        "compute capability": cupy.cuda.Device().compute_capability,
        "memory": int(properties["totalGlobalMem"]),
        "driver": _driver() or runtime.driverGetVersion(),
        "runtime": runtime.runtimeGetVersion(),
    }


def _driver() -> str | None:
    """The driver's version as the system reports it, such as 550.54.15."""
    told = Path("/proc/driver/nvidia/version")
    found = re.search(r"\d+\.\d+(\.\d+)?", told.read_text()) if told.is_file() else None
    return found[0] if found else None
