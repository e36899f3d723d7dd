"""How the CUDA backend is opened, and what can be said about it without CuPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .limits import MAX_SLOTS as MAX_SLOTS
from .limits import most_levels as most_levels


def open_cuda(device: str) -> tuple[str, Any, Callable[[], Any]]:
    """(full name, place, maker of a graph's backends) for "auto", "cuda" or "cuda:N". Requires
    CuPy and the device."""
    import cupy

    from .backend import CudaBackend
    from .streams import Context, CudaPlace
    from .upload.uploader import Uploader

    asked = device.partition(":")[2]
    number = int(asked) if asked else int(cupy.cuda.runtime.getDevice())
    context = Context(number)
    upload = Uploader(context)
    return f"cuda:{number}", CudaPlace(context), lambda: CudaBackend(context, upload)
