"""Where a graph's stores are, for the host's logic: a device made current, and streams in order.

The stores have a stream of their own (context.py); a caller's is CuPy's current stream on their
device. An `apply` that was given device arrays may return while its moving goes on, but what it
was given has been read by then: locating, which the host waits for, is the last to read it.
"""

from __future__ import annotations

from typing import Any

import cupy

from ...arrays import on_device, to_host
from ...coerce import where_it_lies
from .context import Context


class CudaPlace:
    """See lpma.backend.Place."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._before = context.number  # the current device when entered

    def __enter__(self) -> CudaPlace:
        self._before = cupy.cuda.runtime.getDevice()
        if self._before != self._context.number:
            cupy.cuda.runtime.setDevice(self._context.number)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before != self._context.number:
            cupy.cuda.runtime.setDevice(self._before)

    def near(self, values: Any) -> Any:
        """Arrays on this device as they are; those on another travel through the host."""
        array = where_it_lies(values)
        here = not on_device(array) or array.device.id == self._context.number
        return array if here else to_host(array)

    def take_in(self) -> None:
        self._context.take_in(cupy.cuda.get_current_stream())

    def hand_out(self) -> None:
        self._context.hand_out(cupy.cuda.get_current_stream())
