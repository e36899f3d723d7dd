"""The CUDA backend's door: nothing outside imports from further in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def open_cuda(device: str) -> tuple[str, Any, Callable[[], Any]]:
    """(full name, place, maker of a graph's backends) for "auto", "cuda" or "cuda:N". Requires
    CuPy and the device."""
    import cupy

    from .backend import CudaBackend
    from .context import Context
    from .place import CudaPlace

    asked = device.partition(":")[2]
    number = int(asked) if asked else int(cupy.cuda.runtime.getDevice())
    context = Context(number)
    return f"cuda:{number}", CudaPlace(context), lambda: CudaBackend(context)
