"""Functions of CUDA's driver on plain integers, which keep the interpreter's lock: by ctypes, or
compiled (lpma/cpu/driver_calls.py). Both do the same; a launch takes 6.7 us by ctypes, and 4.4
compiled, as CuPy's does. All return a status, but for `look` and `look_apart`, which say whether
they have seen the value.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from time import perf_counter_ns
from types import SimpleNamespace
from typing import Any

Calls = SimpleNamespace
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


def by_ctypes(library: Any) -> Calls:
    """The calls of a library that ctypes has loaded."""
    f = {name: getattr(library, name) for name in FUNCTIONS}
    for name, types in FUNCTIONS.items():
        f[name].argtypes, f[name].restype = types, ctypes.c_int
    record, wait, query = f["cuEventRecord"], f["cuStreamWaitEvent"], f["cuStreamQuery"]

    def launching(function: Any, *last: None) -> Callable[..., int]:
        def launch(kernel: int, blocks: int, block: int, shared: int, stream: int, at: int) -> int:
            return int(function(kernel, blocks, 1, 1, block, 1, 1, shared, stream, at, *last))

        return launch

    def done(query: Any, of: int, not_yet: int, most_ns: int) -> int:
        status, end = query(of), perf_counter_ns() + most_ns
        while status == not_yet and perf_counter_ns() < end:
            status = query(of)
        return int(status)

    def look(at: int, or_at: int, value: int, stream: int, most_ns: int) -> bool:
        words = [ctypes.c_int64.from_address(address) for address in (at, or_at)]
        end = perf_counter_ns() + most_ns
        while value not in (words[0].value, words[1].value):
            if perf_counter_ns() >= end:
                return False
            query(stream)
        return True

    return Calls(
        launch=launching(f["cuLaunchKernel"], None),
        launch_together=launching(f["cuLaunchCooperativeKernel"]),
        record=record,
        wait=lambda stream, event: wait(stream, event, 0),
        follow=lambda stream, earlier, event: record(event, earlier) or wait(stream, event, 0),
        copy=f["cuMemcpyAsync"],
        fill=f["cuMemsetD8Async"],
        stream_done=partial(done, query),
        event_done=partial(done, f["cuEventQuery"]),
        look=look,
        look_apart=lambda *_: False,
    )


def by_numba(library: Any) -> Calls:
    """The same, compiled."""
    from ..cpu import driver_calls as compiled

    at = {name: ctypes.cast(getattr(library, name), POINTER).value for name in FUNCTIONS}
    clock = ctypes.cast(ctypes.CDLL(None).clock_gettime, POINTER).value
    query = at["cuStreamQuery"], clock
    return Calls(
        launch=partial(compiled.launch, at["cuLaunchKernel"]),
        launch_together=partial(compiled.launch_together, at["cuLaunchCooperativeKernel"]),
        record=partial(compiled.record, at["cuEventRecord"]),
        wait=partial(compiled.wait, at["cuStreamWaitEvent"]),
        follow=partial(compiled.follow, at["cuEventRecord"], at["cuStreamWaitEvent"]),
        copy=partial(compiled.copy, at["cuMemcpyAsync"]),
        fill=partial(compiled.fill, at["cuMemsetD8Async"]),
        stream_done=partial(compiled.await_done, *query),
        event_done=partial(compiled.await_done, at["cuEventQuery"], clock),
        look=partial(compiled.look, *query),
        look_apart=partial(compiled.look_apart, *query),
    )
