"""How the CUDA backend is opened, and what can be said about it without CuPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Kernels number windows, slots of a window and filled slots in 32 bits. The root of a store of 2^31
# slots, in segments of 2 at least, is the largest in which 32 bits number all of these.
MAX_SLOTS = 1 << 31


def most_levels(segment_size: int) -> int:
    """The highest m of a store with segments of that size."""
    return (MAX_SLOTS // segment_size).bit_length() - 1


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
