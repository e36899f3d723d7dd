"""Where a graph's stores are, for the host's logic: a device made current, and streams in order.

The stores have a stream of their own (context.py); a caller's is CuPy's current stream on their
device. An `apply` that was given device arrays may return while its slots are still being moved;
the caller's stream then waits for the last kernel that reads those arrays (`CudaBackend.trim`).
"""

from __future__ import annotations

from typing import Any

import cupy

from ...arguments.convert import as_cupy_if_on_device
from ...arrays import on_device, to_host
from .context import Context


class CudaPlace:
    """See lpma.backend.Place."""

    def __init__(self, context: Context) -> None:
        self._context = context
        # What was current when it was entered: a device, and the stream of this one.
        self._before: tuple[int, Any] = context.number, None

    def __enter__(self) -> CudaPlace:
        before = cupy.cuda.runtime.getDevice()
        if before != self._context.number:
            cupy.cuda.runtime.setDevice(self._context.number)
        self._before = before, cupy.cuda.get_current_stream()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        device, stream = self._before
        try:
            if kind is not None:  # which may have cut off a `hand_out`
                self._context.hand_out(stream)
        finally:
            self._context.leave(stream)
        if device != self._context.number:
            cupy.cuda.runtime.setDevice(device)

    def localize(self, values: Any) -> Any:
        """Arrays on this device as they are; those on another travel through the host."""
        array = as_cupy_if_on_device(values)
        here = not on_device(array) or array.device.id == self._context.number
        return array if here else to_host(array)

    def wait_for_caller(self) -> None:
        """See lpma.backend.Place."""
        self._context.take_in(cupy.cuda.get_current_stream())
