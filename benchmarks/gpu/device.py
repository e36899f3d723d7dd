"""The device: whether there is one, our own kernels on it, and the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from lpma.cuda import sources
from lpma.cuda.sources import Options


def why_none() -> str | None:
    """Why nothing can run on a CUDA device here; None where it can."""
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
    """The compiled benchmarks/cuda/NAME.cu, each of `defines` a macro."""
    import cupy

    code, options = given(name, defines)
    return cupy.RawModule(code=code, options=options, enable_cooperative_groups=cooperative)


def given(name: str, defines: Mapping[str, int]) -> tuple[str, Options]:
    """What the compiler is given: the source and the options."""
    return sources.given(
        f"benchmarks/cuda/{name}.cu", tuple(f"-D{k}={v}" for k, v in defines.items())
    )


def blocks_for(items: int, per_block: int) -> int:
    return -(-items // per_block)


def synchronize() -> None:
    import cupy

    cupy.cuda.runtime.deviceSynchronize()


def seconds(action: Callable[[], Any]) -> float:
    """Wall clock of `action` on an idle device, until the device is idle again."""
    synchronize()
    start = time.perf_counter()
    action()
    synchronize()
    return time.perf_counter() - start


def memory_used() -> int:
    """Bytes of the device taken by anyone, after CuPy's pool has given back what it can."""
    import cupy

    synchronize()
    cupy.get_default_memory_pool().free_all_blocks()
    free, total = cupy.cuda.runtime.memGetInfo()
    return int(total - free)


def name() -> str:
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return str(properties["name"].decode())
