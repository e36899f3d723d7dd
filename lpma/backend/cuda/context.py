"""Where a graph's stores work: a device, a stream, and a way for batches to get there."""

from __future__ import annotations

import weakref
from collections import defaultdict, deque
from types import TracebackType
from typing import Any

import cupy

from ...cuda import driver
from .batches import Upload

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
            self.stream, copies = streams = _streams(number)
            self._written: list[Any] = []
            weakref.finalize(self, _give_back, number, streams, self._written).atexit = False
            self._event = cupy.cuda.Event(disable_timing=True)
            self._entered: list[tuple[Any, Any]] = []
            with self:
                self.upload = Upload(self.stream, copies)

    def pinned(self, size: int) -> Any:
        """Memory of the host for kernels on the stream to write to, or to read; kept as long as
        this, and until they are done."""
        memory = cupy.cuda.alloc_pinned_memory(size)
        self._written.append(memory)
        return memory

    @property
    def callers(self) -> Any:
        """The stream that was current when this was entered."""
        return self._entered[-1][1]

    # Not by `with self.stream`: were its exit cut off, it would stay on CuPy's stack, and be the
    # current one when somebody else's `with` ends.
    def __enter__(self) -> Context:
        device = cupy.cuda.runtime.getDevice()
        if device != self.number:
            cupy.cuda.runtime.setDevice(self.number)
        # Each device has its own current stream: the one to come back to is this device's.
        self._entered.append((device, cupy.cuda.get_current_stream()))
        self.stream.use()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        device, before = self._entered.pop()
        before.use()
        if device != self.number:
            cupy.cuda.runtime.setDevice(device)

    def leave(self, stream: Any) -> None:
        """Make `stream` the current one again, even where an exception has cut off an `__enter__`
        or `__exit__` of this context. REQUIRES: no thread is inside it any more."""
        self._entered.clear()
        if cupy.cuda.get_current_stream().ptr != stream.ptr:
            stream.use()

    def take_in(self, stream: Any) -> None:
        """Make whatever the stores' stream does from now on see what `stream` did before."""
        if stream.ptr != self.stream.ptr:
            driver.follow(self.stream, stream, self._event)

    def hand_out(self, stream: Any) -> None:
        """Make whatever `stream` does from now on see what the stores' stream did before."""
        if stream.ptr != self.stream.ptr:
            driver.follow(stream, self.stream, self._event)
