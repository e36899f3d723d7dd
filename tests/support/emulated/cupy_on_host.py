"""What the store takes from CuPy, on the host: `install` has `import cupy` give this, or that with
some of its parts replaced (no_gpu).

Arrays are NumPy's, with an address as CuPy's have. Fresh memory holds nonsense, as a device's may.
A stream has nothing going on, since all is done when the call returns. Kernels are those of
`build`; a cooperative launch gets BLOCKS blocks at the most."""

from __future__ import annotations

import ctypes
import sys
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from lpma.cuda.sources import Options

from . import build

BLOCKS = 3  # so that each waits for others
NONSENSE = 0xC3


class Memory:
    """A place in memory, which keeps alive whatever it is in."""

    def __init__(self, ptr: int, keep: Any) -> None:
        self.ptr, self._keep = ptr, keep

    def __add__(self, offset: int) -> Memory:
        return Memory(self.ptr + offset, self._keep)

    def memset_async(self, value: int, size: int, stream: Any = None) -> None:
        ctypes.memset(self.ptr, value, size)

    def copy_from_host_async(self, source: Any, size: int, stream: Any = None) -> None:
        ctypes.memmove(self.ptr, source, size)


class Device:
    compute_capability = "80"

    def __init__(self, number: int | None = None) -> None:
        self.id, self.attributes = number or 0, {"MultiProcessorCount": BLOCKS}

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class ndarray(np.ndarray[Any, Any]):  # CuPy's name
    def __new__(cls, shape: Any, dtype: Any = float, memptr: Memory | None = None) -> Any:
        dtype, size = np.dtype(dtype), int(np.prod(shape))
        if memptr is None:
            memory: Any = np.full(size * dtype.itemsize, NONSENSE, np.uint8)
        else:
            memory = (ctypes.c_ubyte * (size * dtype.itemsize)).from_address(memptr.ptr)
            memory.keep = memptr
        return np.ndarray.__new__(cls, shape, dtype, memory)

    @property
    def data(self) -> Any:
        return Memory(int(self.ctypes.data), self)

    @property
    def device(self) -> Any:
        return Device()

    def get(self) -> Any:
        return np.array(self)

    def set(self, values: Any) -> None:
        self[...] = values

    def __getitem__(self, at: Any) -> Any:
        return on_device(super().__getitem__(at))

    def __array_wrap__(self, array: Any, *_: Any) -> Any:
        return on_device(array)


def on_device(values: Any) -> Any:
    """As an array of the device's; what would be a NumPy scalar has no dimension."""
    return np.asarray(values).view(ndarray)


for _name in ("sum", "max", "min", "any", "all", "argmax", "argmin"):

    def _reduced(self: ndarray, *args: Any, _name: str = _name, **named: Any) -> Any:
        return on_device(getattr(np.array(self), _name)(*args, **named))

    setattr(ndarray, _name, _reduced)


class Event:
    def __init__(self, **_: Any) -> None:
        pass

    def record(self, stream: Any = None) -> None:
        pass

    def synchronize(self) -> None:
        pass


class Stream:
    number, done, device_id = 0, True, 0

    def __init__(self, **_: Any) -> None:
        Stream.number += 1
        self.ptr = Stream.number

    def use(self) -> None:
        global _current
        _current = self

    def __enter__(self) -> Stream:
        _entered.append(self)
        self.use()
        return self

    def __exit__(self, *_: Any) -> None:
        _entered.pop()
        _entered[-1].use()  # as CuPy does, whatever was used before

    def synchronize(self) -> None:
        pass

    def wait_event(self, event: Event) -> None:
        pass

    def launch_host_func(self, callback: Any, arg: Any) -> None:
        callback(arg)

    def record(self, event: Event | None = None) -> Event:
        return event or Event()


_current = Stream()
_entered = [_current]


def current() -> Stream:
    """The current stream."""
    return _current


class Pinned(np.ndarray[Any, Any]):
    @property
    def ptr(self) -> int:
        return int(self.ctypes.data)


class Kernel:
    """As lpma.cuda.modules.Kernel."""

    def __init__(self, file: str, name: str, options: Options, cooperative: bool) -> None:
        self.cooperative, self.ptr = cooperative, len(_launches)
        _launches.append(getattr(build.library(file, options), build.launcher(name)))

    def allow_shared(self, size: int) -> None:
        pass


_launches: list[Any] = []  # what launches each kernel


def _runtime() -> Any:
    return SimpleNamespace(
        CUDARuntimeError=type("CUDARuntimeError", (RuntimeError,), {}),
        getDevice=lambda: 0, setDevice=lambda _: None, getDeviceCount=lambda: 1,
        memGetInfo=lambda: (1 << 33, 1 << 34), deviceSynchronize=lambda: None,
    )  # fmt: skip


class Driver:
    """lpma.cuda.driver on streams and events of this module: all is done when a call returns."""

    compiled = SimpleNamespace(is_ready=lambda: False, get_ready=lambda: None)

    def record(self, event: Any, stream: Any) -> None:
        event.record(stream)

    def wait(self, stream: Any, event: Any) -> None:
        stream.wait_event(event)

    def follow(self, stream: Any, earlier: Any, event: Any = None) -> None:
        stream.wait_event(earlier.record(event))

    def copy(self, to: int, source: int, size: int, stream: Any) -> None:
        ctypes.memmove(to, source, size)

    def clear(self, at: int, size: int, stream: Any) -> None:
        ctypes.memset(at, 0, size)

    def is_done(self, stream: Any) -> bool:
        return bool(stream.done)

    def await_stream(self, stream: Any) -> None:
        stream.synchronize()

    def await_event(self, event: Any) -> None:
        event.synchronize()

    def await_word(self, at: int, value: int, stream: Any, or_at: int) -> None:
        words = [ctypes.c_int64.from_address(word).value for word in (at, or_at)]
        assert value in words

    def zeros(self, shape: Any, dtype: Any = float) -> Any:
        return sys.modules["cupy"].zeros(shape, dtype)

    def fetch(self, array: Any) -> Any:
        return array.get()

    def number(self, array: Any, place: int = 0) -> Any:
        return array.get()[place].item()


def _launch(
    together: int, kernel: int, blocks: int, threads: int, shared: int, stream: int, at: int
) -> None:
    """As lpma.cuda.library.Calls have it."""
    grid = ctypes.c_uint(blocks), ctypes.c_uint(threads), ctypes.c_ulong(shared)
    _launches[kernel](*grid, together, ctypes.c_void_p(at))


def _look(at: int, or_at: int, value: int, stream: int, most_ns: int) -> bool:
    return value in [ctypes.c_int64.from_address(word).value for word in (at, or_at)]


CALLS = [name for name in vars(Driver) if name[0] != "_"]


def install(
    ndarray: Any = ndarray, stream: Any = Stream, event: Any = Event, calls: Any = Driver
) -> None:
    """Have `import cupy` give this, or these parts in place of the ones here, and kernels be
    compiled for the host. REQUIRES: nobody has imported CuPy."""
    cupy: Any = ModuleType("cupy")
    cupy.__spec__ = ModuleSpec("cupy", None)  # who looks for CuPy finds it
    vars(cupy).update({name: getattr(np, name) for name in dir(np) if name[0] != "_"})
    for name in ("zeros", "ones", "full", "arange", "asarray", "ascontiguousarray", "concatenate",
                 "cumsum", "diff", "flatnonzero", "searchsorted"):  # fmt: skip
        setattr(cupy, name, _giving_arrays(getattr(np, name)))
    cupy.ndarray = cupy.empty = ndarray
    cupy.asnumpy = np.array
    cupy.cuda = SimpleNamespace(
        Stream=stream, Event=event, Device=Device, runtime=_runtime(),
        alloc_pinned_memory=lambda size: np.full(size, NONSENSE, np.uint8).view(Pinned),
        get_current_stream=current, is_available=lambda: True,
        compiler=SimpleNamespace(CompileException=type("CompileException", (Exception,), {})),
        driver=SimpleNamespace(launchKernel=None, launchCooperativeKernel=None),
    )  # fmt: skip
    sys.modules["cupy"] = cupy
    from lpma import arrays
    from lpma.backend.cuda.store import virtual_memory
    from lpma.cuda import driver, launch, modules

    driven = calls()
    compiled = SimpleNamespace(
        launch=partial(_launch, 0), launch_together=partial(_launch, 1), look=_look
    )
    for module, name, instead in (
        (modules, "function", Kernel),
        (modules, "begin", lambda files: None),
        (launch, "resident_blocks", lambda *_: BLOCKS),
        (virtual_memory, "is_supported", lambda _: False),
        (driver, "thread", SimpleNamespace(calls=compiled)),
        (arrays, "await_stream", driven.await_stream),
        *((driver, name, getattr(driven, name)) for name in CALLS),
    ):
        setattr(module, name, instead)


def _giving_arrays(function: Any) -> Any:
    return lambda *args, **named: on_device(function(*args, **named))
