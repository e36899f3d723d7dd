"""Where a graph's stores work: a device, a stream, a way for batches to get there."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import cupy

from .batches import Upload


class Context:
    """Shared by the stores of one graph. As a context manager: on this device, on its stream.

    The stores' work runs on a stream of its own, so that they go on while algorithms read what
    they handed out; `hand_out` and `take_in` order the two by events."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.device = cupy.cuda.Device(number)
        with self.device:
            self.stream = cupy.cuda.Stream(non_blocking=True)
            self._event = cupy.cuda.Event(disable_timing=True)
            with self.stream:
                self.upload = Upload(self.stream)
        self._entered: list[tuple[Any, Any]] = []

    def __enter__(self) -> Context:
        device = cupy.cuda.runtime.getDevice()
        if device != self.number:
            cupy.cuda.runtime.setDevice(self.number)
        # The current stream is one a device: the one to come back to is this device's.
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

    def hand_out(self, stream: Any) -> None:
        """Whatever `stream` does from now on sees what the stores' stream did before."""
        if stream.ptr != self.stream.ptr:
            self._event.record(self.stream)
            stream.wait_event(self._event)

    def take_in(self, stream: Any) -> None:
        """Whatever the stores' stream does from now on sees what `stream` did before."""
        if stream.ptr != self.stream.ptr:
            self._event.record(stream)
            self.stream.wait_event(self._event)
