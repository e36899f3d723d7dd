"""The CUDA backend's door: nothing outside imports from further in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def open_cuda(device: str) -> tuple[str, Callable[[], Any]]:
    """(full name, maker of a graph's backends) for "auto", "cuda" or "cuda:N". Requires CuPy."""
    import cupy

    from .backend import CudaBackend
    from .context import Context

    asked = device.partition(":")[2]
    number = int(asked) if asked else int(cupy.cuda.runtime.getDevice())
    context = Context(number)
    return f"cuda:{number}", lambda: CudaBackend(context)
