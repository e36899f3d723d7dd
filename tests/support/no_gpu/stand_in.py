"""What the backend's host logic takes from CuPy, without a device: memory that has an address and
no bytes, and streams and events that keep clocks.

Device memory that is freed is handed out again at once, as CuPy's pool does."""

from __future__ import annotations

import random
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

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
        self.device = SimpleNamespace(id=0)

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


class Event:
    def __init__(self, **_: Any) -> None:
        self.clock: Clock = {}

    def record(self, stream: Stream) -> None:
        self.clock = clocks.now(stream.actor)

    def synchronize(self) -> None:
        clocks.learn(HOST, self.clock)


class Stream:
    number = HOST

    def __init__(self, **_: Any) -> None:
        Stream.number += 1
        self.actor = self.ptr = Stream.number

    @property
    def done(self) -> bool:
        """One can never rely on it; but who sees it knows."""
        is_done = chance.random() < 0.5
        if is_done:
            self.synchronize()
        return is_done

    def use(self) -> None:
        global _current
        _current = self

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def synchronize(self) -> None:
        clocks.learn(HOST, clocks.now(self.actor))

    def wait_event(self, event: Event) -> None:
        clocks.now(self.actor)
        clocks.learn(self.actor, event.clock)

    def record(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event


_current = Stream()


def current() -> Stream:
    """The current stream."""
    return _current


class Device:
    compute_capability = "90"

    def __init__(self, number: int | None = None) -> None:
        self.id, self.attributes = number or 0, {"MultiProcessorCount": 132}

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class Pinned(np.ndarray[Any, Any]):
    """Pinned memory is ordinary memory here."""

    @property
    def ptr(self) -> int:
        return int(self.ctypes.data)


def alloc_pinned_memory(size: int) -> Any:
    return np.zeros(size, np.uint8).view(Pinned)


def copy(to: int, source: int, size: int, kind: int, stream: int) -> None:
    at = clocks.moment(stream)
    if kind == TO_DEVICE:
        clocks.use(source, size, False, at, "a copy reads")
        clocks.use(to, size, True, at, "a copy writes")


TO_DEVICE, TO_HOST = 1, 2


def install() -> None:
    """Have `import cupy` give this."""
    cupy: Any = ModuleType("cupy")
    runtime = SimpleNamespace(
        CUDARuntimeError=type("CUDARuntimeError", (RuntimeError,), {}),
        getDevice=lambda: 0, setDevice=lambda _: None, getDeviceCount=lambda: 1,
        memcpyHostToDevice=TO_DEVICE, memcpyDeviceToHost=TO_HOST, memcpyAsync=copy,
    )  # fmt: skip
    cupy.cuda = SimpleNamespace(
        Stream=Stream, Event=Event, Device=Device, runtime=runtime, MemoryPointer=Memory,
        alloc_pinned_memory=alloc_pinned_memory, get_current_stream=current,
        is_available=lambda: True, compiler=SimpleNamespace(CompileException=RuntimeError),
        driver=SimpleNamespace(launchKernel=None, launchCooperativeKernel=None),
    )  # fmt: skip
    cupy.ndarray, cupy.empty, cupy.zeros = ndarray, ndarray, ndarray
    for name in ("uint8", "uint32", "uint64", "int32", "int64", "float32", "float64", "bool_"):
        setattr(cupy, name, getattr(np, name))
    sys.modules["cupy"] = cupy
