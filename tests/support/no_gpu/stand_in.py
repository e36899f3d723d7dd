"""CuPy as the emulated device has it (emulated/cupy_on_host.py), with other parts: memory that has
an address and no bytes, streams and events that keep clocks, and copies that say what they use.

Device memory that is freed is handed out again at once, as CuPy's pool does."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ..emulated import cupy_on_host
from .clocks import HOST, Clock, Clocks

FIRST_ADDRESS, GAP = 1 << 50, 4096  # above all of the host

clocks = Clocks()
chance = random.Random()


class Memory:
    """Device memory, or a place in it."""

    def __init__(self, pool: Pool, ptr: int, size: int, whole: Memory | None = None) -> None:
        self._pool, self.ptr, self._size, self._whole = pool, ptr, size, whole

    def __add__(self, offset: int) -> Memory:
        return Memory(self._pool, self.ptr + offset, 0, self._whole or self)

    def __del__(self) -> None:
        if self._whole is None:
            self._pool.free.append((self.ptr, self._size))

    def memset_async(self, *_: Any) -> None:
        pass

    copy_from_host_async = memset_async


class Pool:
    def __init__(self) -> None:
        self.free: list[tuple[int, int]] = []
        self._next = FIRST_ADDRESS

    def take(self, size: int) -> Memory:
        for i, (ptr, there) in enumerate(self.free):
            if size <= there:
                del self.free[i]
                return Memory(self, ptr, there)
        ptr, self._next = self._next, self._next + size + GAP
        return Memory(self, ptr, size)


pool = Pool()


class ndarray:  # CuPy's name
    def __init__(self, shape: Any, dtype: Any = float, memptr: Memory | None = None) -> None:
        self.shape = shape if isinstance(shape, tuple) else (shape,)
        self.dtype, self.size = np.dtype(dtype), int(np.prod(self.shape))
        self.itemsize, self.ndim = self.dtype.itemsize, len(self.shape)
        self.nbytes = self.size * self.itemsize
        self.data = memptr or pool.take(self.nbytes)
        self.device = cupy_on_host.Device()

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, at: int | slice) -> ndarray:
        inner = self.shape[1:]
        row = self.itemsize * int(np.prod(inner))
        if isinstance(at, int):
            return ndarray(inner, self.dtype, self.data + at * row)
        first, last, _ = at.indices(self.shape[0])
        return ndarray((max(last - first, 0), *inner), self.dtype, self.data + first * row)

    def view(self, dtype: Any) -> ndarray:
        return ndarray(self.nbytes // np.dtype(dtype).itemsize, dtype, self.data)

    def fill(self, value: Any) -> None:
        pass


class Event(cupy_on_host.Event):
    def __init__(self, **_: Any) -> None:
        self.clock: Clock = {}

    def record(self, stream: Any = None) -> None:
        self.clock = clocks.now(stream.ptr)

    def synchronize(self) -> None:
        clocks.learn(HOST, self.clock)


class Stream(cupy_on_host.Stream):
    """Its address is the number of the actor that it is."""

    @property
    def done(self) -> bool:  # type: ignore[override]
        """One can never rely on it; but who sees it knows."""
        is_done = chance.random() < 0.5
        if is_done:
            self.synchronize()
        return is_done

    def synchronize(self) -> None:
        clocks.learn(HOST, clocks.now(self.ptr))

    def wait_event(self, event: Any) -> None:
        clocks.now(self.ptr)
        clocks.learn(self.ptr, event.clock)

    def record(self, event: Any = None) -> Event:
        event = event or Event()
        event.record(self)
        return event


class Driver(cupy_on_host.Driver):
    def copy(self, to: int, source: int, size: int, stream: Any) -> None:
        at = clocks.moment(stream.ptr)
        if source < FIRST_ADDRESS <= to:
            clocks.use(source, size, False, at, "a copy reads")
            clocks.use(to, size, True, at, "a copy writes")

    def clear(self, at: int, size: int, stream: Any) -> None:
        pass


def install() -> None:
    """Have `import cupy` give this. REQUIRES: nobody has imported CuPy."""
    cupy_on_host.install(ndarray, Stream, Event, Driver)
