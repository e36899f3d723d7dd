"""CUDA's driver, called without releasing the interpreter's lock.

Idea: CuPy releases the lock around each launch, copy, event and wait. Beside another thread that
computes in Python it gets the lock back only after the switch interval, 5 ms: a batch of 0.1 ms
took 25 beside a thread that decodes records. Here short calls keep the lock. Those that may take
long, `await_word` and `await_stream`, release it after the switch interval, for which any thread
may have it, or after a millisecond if that is longer.

The calls are compiled functions (lpma/cpu/driver_calls.py), as fast as CuPy's. Until they are
loaded, or if they cannot be, ctypes calls the driver (PyDLL keeps the lock, too), with the same
results and 2 us more a launch.

Requires: CuPy's streams, events and addresses, of the current device. Whatever the driver refuses
is raised as CuPy's CUDADriverError.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
import numpy.typing as npt

from .. import arrays
from ..cpu import columns
from ..cpu.ready import Behind
from .library import NAME, Calls, by_ctypes, by_numba

Array = Any  # cupy.ndarray

# How long a wait keeps the lock at least; and how long it looks on without it, before the thread
# goes to sleep.
KEPT_NS, APART_NS = 1_000_000, 10_000_000
DONE, NOT_READY = 0, 600  # CUDA_SUCCESS, CUDA_ERROR_NOT_READY
MOST_FETCHED = 1 << 12  # bytes; to fetch more takes long in any case


class _Thread(threading.local):
    """The driver's `calls`, for a thread that has called the runtime, which makes a context."""

    def __getattr__(self, name: str) -> Any:
        """What a thread's first call needs."""
        global _library, _calls
        if name != "calls":
            raise AttributeError(name)
        cupy.cuda.runtime.free(0)
        if _calls is None:
            _library = ctypes.PyDLL(NAME)
            _calls = by_ctypes(_library)
        self.calls = _calls
        return _calls


thread = _Thread()
_library: Any = None
_calls: Calls | None = None  # the same for all threads


def _compiled_calls() -> None:
    calls = thread.calls
    vars(calls).update(vars(by_numba(_library)))
    columns.use_id_kernels()  # which look at what callers give


compiled = Behind(["lpma.cpu.driver_calls", "lpma.cpu.id_kernels"], _compiled_calls)


def fail(status: int) -> None:
    """Raise CuPy's CUDADriverError for a status that is not DONE."""
    raise cupy.cuda.driver.CUDADriverError(status)


def record(event: Any, stream: Any) -> None:
    """Have an event happen once all is done that was given to a stream."""
    if failed := thread.calls.record(event.ptr, stream.ptr):
        fail(failed)


def wait(stream: Any, event: Any) -> None:
    """Have what is given to a stream from now on come after an event."""
    if failed := thread.calls.wait(stream.ptr, event.ptr):
        fail(failed)


def follow(stream: Any, earlier: Any, event: Any = None) -> None:
    """Have it come after what was given to an earlier stream. event: one that is free for that."""
    event = event or cupy.cuda.Event(disable_timing=True)
    if failed := thread.calls.follow(stream.ptr, earlier.ptr, event.ptr):
        fail(failed)


def copy(to: int, source: int, size: int, stream: Any) -> None:
    """Copy bytes; memory of the host is page-locked."""
    if size and (failed := thread.calls.copy(to, source, size, stream.ptr)):
        fail(failed)


def clear(at: int, size: int, stream: Any) -> None:
    """Set bytes of the device to 0."""
    if size and (failed := thread.calls.fill(at, 0, size, stream.ptr)):
        fail(failed)


def is_done(stream: Any) -> bool:
    """Whether all is done that was given to a stream."""
    status = thread.calls.stream_done(stream.ptr, NOT_READY, 0)
    if status not in (DONE, NOT_READY):
        fail(status)
    return status == DONE


def await_stream(stream: Any) -> None:
    """Return once that is so. Raises CuPy's CUDARuntimeError if the device fails."""
    if thread.calls.stream_done(stream.ptr, NOT_READY, KEPT_NS) != DONE:
        _await_longer(thread.calls.stream_done, stream)


arrays.await_stream = await_stream  # whoever waits for an array waits like this


def await_event(event: Any) -> None:
    """Return once an event has happened, or if it was never recorded. Raises as `await_stream`."""
    if thread.calls.event_done(event.ptr, NOT_READY, KEPT_NS) != DONE:
        _await_longer(thread.calls.event_done, event)


def _await_longer(done: Callable[[int, int, int], int], of: Any) -> None:
    if done(of.ptr, NOT_READY, _kept_ns() - KEPT_NS) != DONE:
        of.synchronize()


def await_word(at: int, value: int, stream: Any, or_at: int) -> None:
    """Return once the word at one of two addresses, in page-locked memory, is `value`, which a
    kernel in the stream writes. Raises as `await_stream`."""
    calls = thread.calls
    for look, most_ns in ((calls.look, _kept_ns()), (calls.look_apart, APART_NS)):
        if look(at, or_at, value, stream.ptr, most_ns):
            return
    stream.synchronize()
    words = [ctypes.c_int64.from_address(word).value for word in (at, or_at)]
    assert value in words, "a kernel that has ended has answered"


def _kept_ns() -> int:
    """How long a wait keeps the lock. To have it back would take the switch interval as well."""
    return max(KEPT_NS, int(1e9 * sys.getswitchinterval()))


def zeros(shape: Any, dtype: Any = float) -> Array:
    """As CuPy's, in the current stream."""
    array = cupy.empty(shape, dtype)
    clear(array.data.ptr, array.nbytes, cupy.cuda.get_current_stream())
    return array


class _Landing(threading.local):
    """Page-locked memory of each thread, for what it fetches."""

    memory: Any = None


def fetch(array: Array) -> npt.NDArray[Any]:
    """A copy on the host of a contiguous array, once what was given to the current stream is done.
    Raises as `await_stream`."""
    size, stream = array.nbytes, cupy.cuda.get_current_stream()
    if not 0 < size <= MOST_FETCHED:
        return array.get()
    memory = _landing.memory
    if memory is None:
        memory = _landing.memory = cupy.cuda.alloc_pinned_memory(MOST_FETCHED)
    copy(memory.ptr, array.data.ptr, size, stream)
    await_stream(stream)
    return np.frombuffer(memory, array.dtype, array.size).reshape(array.shape).copy()


def number(array: Array, place: int = 0) -> Any:
    """An entry of a contiguous array as Python's number, as `fetch` has it. place: −1 is the last
    one."""
    return fetch(array[place : place + 1 or None]).item()


_landing = _Landing()


def free_bytes() -> int:
    """Memory of the current device that can be allocated: what the driver has free, and what CuPy's
    pool holds unused."""
    pool = cupy.get_default_memory_pool()
    return int(cupy.cuda.Device().mem_info[0]) + int(pool.free_bytes())
