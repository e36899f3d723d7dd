"""Functions of CUDA's driver on plain integers, which keep the interpreter's lock: by ctypes, or
compiled (lpma/cpu/driver_calls.py). Both do the same; a launch takes 6.7 us by ctypes, and 4.4
compiled, as CuPy's does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns
from typing import Any

NAME = "libcuda.so.1"
POINTER, UNSIGNED, SIZE = ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t
A_LAUNCH = (POINTER, *[UNSIGNED] * 7, POINTER, POINTER)
FUNCTIONS = {
    "cuLaunchKernel": (*A_LAUNCH, POINTER),
    "cuLaunchCooperativeKernel": A_LAUNCH,
    "cuEventRecord": (POINTER, POINTER),
    "cuStreamWaitEvent": (POINTER, POINTER, UNSIGNED),
    "cuMemcpyAsync": (POINTER, POINTER, SIZE, POINTER),
    "cuMemsetD8Async": (POINTER, ctypes.c_ubyte, SIZE, POINTER),
    "cuStreamQuery": (POINTER,),
    "cuEventQuery": (POINTER,),
}


@dataclass
class Calls:
    """The calls, on plain integers. All return a status, but for `look` and `look_apart`, which
    say whether they have seen the value. See lpma/cpu/driver_calls.py."""

    launch: Callable[..., int]
    launch_together: Callable[..., int]
    record: Callable[[int, int], int]
    wait: Callable[[int, int], int]
    follow: Callable[[int, int, int], int]
    copy: Callable[[int, int, int, int], int]
    fill: Callable[[int, int, int, int], int]
    stream_done: Callable[[int, int, int], int]
    event_done: Callable[[int, int, int], int]
    look: Callable[..., bool]
    look_apart: Callable[..., bool]


def by_ctypes(library: Any) -> Calls:
    """The calls of a library that ctypes has loaded."""
    f = {name: getattr(library, name) for name in FUNCTIONS}
    for name, types in FUNCTIONS.items():
        f[name].argtypes, f[name].restype = types, ctypes.c_int
    record, wait = f["cuEventRecord"], f["cuStreamWaitEvent"]

    def launch(kernel: int, blocks: int, threads: int, shared: int, stream: int, at: int) -> int:
        grid = kernel, blocks, 1, 1, threads, 1, 1, shared, stream, at
        return int(f["cuLaunchKernel"](*grid, None))

    def together(kernel: int, blocks: int, threads: int, shared: int, stream: int, at: int) -> int:
        grid = kernel, blocks, 1, 1, threads, 1, 1, shared, stream, at
        return int(f["cuLaunchCooperativeKernel"](*grid))

    def follow(stream: int, earlier: int, event: int) -> int:
        return record(event, earlier) or wait(stream, event, 0)

    def done(query: Any, of: int, not_yet: int, most_ns: int) -> int:
        status, end = query(of), perf_counter_ns() + most_ns
        while status == not_yet and perf_counter_ns() < end:
            status = query(of)
        return int(status)

    def look(at: int, or_at: int, value: int, stream: int, most_ns: int) -> bool:
        words = [ctypes.c_int64.from_address(address) for address in (at, or_at)]
        end = perf_counter_ns() + most_ns
        while True:
            if words[0].value == value or words[1].value == value:
                return True
            if perf_counter_ns() >= end:
                return False
            f["cuStreamQuery"](stream)

    return Calls(
        launch, together, record, lambda stream, event: int(wait(stream, event, 0)), follow,
        f["cuMemcpyAsync"], f["cuMemsetD8Async"], partial(done, f["cuStreamQuery"]),
        partial(done, f["cuEventQuery"]), look, lambda *_: False,
    )  # fmt: skip


def by_numba(library: Any) -> Calls:
    """The same, compiled."""
    from ..cpu import driver_calls as compiled

    at = {name: ctypes.cast(getattr(library, name), POINTER).value for name in FUNCTIONS}
    clock = ctypes.cast(ctypes.CDLL(None).clock_gettime, POINTER).value
    query = at["cuStreamQuery"], clock
    return Calls(
        partial(compiled.launch, at["cuLaunchKernel"]),
        partial(compiled.launch_together, at["cuLaunchCooperativeKernel"]),
        partial(compiled.record, at["cuEventRecord"]),
        partial(compiled.wait, at["cuStreamWaitEvent"]),
        partial(compiled.follow, at["cuEventRecord"], at["cuStreamWaitEvent"]),
        partial(compiled.copy, at["cuMemcpyAsync"]),
        partial(compiled.fill, at["cuMemsetD8Async"]),
        partial(compiled.await_done, *query),
        partial(compiled.await_done, at["cuEventQuery"], clock),
        partial(compiled.look, *query),
        partial(compiled.look_apart, *query),
    )
