"""Where a graph's stores work, and in what order with their callers: a device and streams.

The stores have a stream of their own; a caller's is CuPy's current stream on their device. An
`apply` that was given device arrays may return while its slots are still being moved; the caller's
stream then waits for the last kernel that reads those arrays (`Uploader.done`).
"""

from __future__ import annotations

import weakref
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, TypeVar

import cupy

from ...arguments.convert import as_cupy_if_on_device
from ...arrays import on_device, to_host
from ...cuda import driver

Result = TypeVar("Result")

# Streams of graphs that are gone, by device: (of work, of copies). They are used again rather than
# destroyed, because CuPy's pool keeps what was freed by the stream's address: a new stream at the
# address of one destroyed would get memory that the old one's kernels still write to.
_idle: dict[int, deque[tuple[Any, Any]]] = defaultdict(deque)


def _streams(number: int) -> tuple[Any, Any]:
    """A pair of streams on the current device, number `number`, with nothing going on in them."""
    try:
        return _idle[number].popleft()
    except IndexError:
        return tuple(cupy.cuda.Stream(non_blocking=True) for _ in range(2))


def _give_back(number: int, streams: tuple[Any, Any], written: list[Any]) -> None:
    """`written`: memory of the host that kernels in the streams may write to: kept until now."""
    try:
        for stream in streams:
            stream.synchronize()
    except cupy.cuda.runtime.CUDARuntimeError:
        return  # the device failed: whoever uses it next gets the error
    _idle[number].append(streams)


class Context:
    """Shared by the stores of one graph. As a context manager: on this device, on its stream.

    The stores' work runs on a stream of its own, so that it goes on while algorithms read what the
    stores handed out. `take_in` puts it after a caller's, and `hand_out` a caller's after it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.device = cupy.cuda.Device(number)
        with self.device:
            self.stream, self.copies = streams = _streams(number)
            self._written: list[Any] = []
            weakref.finalize(self, _give_back, number, streams, self._written).atexit = False
            self._event = cupy.cuda.Event(disable_timing=True)
        # For each `with` that is open: the device and this device's stream that were current.
        self.entered: list[tuple[Any, Any]] = []

    def pinned(self, size: int) -> Any:
        """Memory of the host for kernels on the stream to write to, or to read; kept as long as
        this, and until they are done."""
        memory = cupy.cuda.alloc_pinned_memory(size)
        self._written.append(memory)
        return memory

    # Not by `with self.stream`: if its exit were interrupted, it would stay on CuPy's stack, and
    # become the current stream when another `with` ends.
    def __enter__(self) -> Context:
        device = cupy.cuda.runtime.getDevice()
        if device != self.number:
            cupy.cuda.runtime.setDevice(self.number)
        # Each device has its own current stream: the one to come back to is this device's.
        self.entered.append((device, cupy.cuda.get_current_stream()))
        self.stream.use()
        return self

    def __exit__(self, *error: object) -> None:
        device, before = self.entered.pop()
        before.use()
        if device != self.number:
            cupy.cuda.runtime.setDevice(device)

    def take_in(self, stream: Any) -> None:
        """Make whatever the stores' stream does from now on see what `stream` did before."""
        if stream.ptr != self.stream.ptr:
            driver.follow(self.stream, stream, self._event)

    def hand_out(self, stream: Any) -> None:
        """Make whatever `stream` does from now on see what the stores' stream did before."""
        if stream.ptr != self.stream.ptr:
            driver.follow(stream, self.stream, self._event)


class CudaPlace:
    """See lpma.backend.Place."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def run(self, call: Callable[..., Result], args: tuple[Any, ...]) -> Result:
        """See lpma.backend.Place. Leaves what was current when it was called: a device, and the
        stream of this one."""
        context, device = self._context, cupy.cuda.runtime.getDevice()
        if device != context.number:
            cupy.cuda.runtime.setDevice(context.number)
        stream = cupy.cuda.get_current_stream()
        try:
            return call(*args)
        except BaseException:
            context.hand_out(stream)  # it may have been cut off
            raise
        finally:
            # An exception may have cut off a `with` of the context. No thread is inside any more.
            context.entered.clear()
            if cupy.cuda.get_current_stream().ptr != stream.ptr:
                stream.use()
            if device != context.number:
                cupy.cuda.runtime.setDevice(device)

    def localize(self, values: Any) -> Any:
        """Arrays on this device as they are; those on another travel through the host."""
        array = as_cupy_if_on_device(values)
        here = not on_device(array) or array.device.id == self._context.number
        return array if here else to_host(array)

    def wait_for_caller(self) -> None:
        """See lpma.backend.Place."""
        self._context.take_in(cupy.cuda.get_current_stream())
