"""Calls of a C library by address, for which compiled code keeps the interpreter's lock.

Releasing the lock costs the switch interval, 5 ms, if another thread computes in Python. So only
`look_apart`, which may take long, releases it. The first argument of each function is the address
of the function that it calls (lpma/cuda/driver.py has them), so that this file is compiled, cached
and tested without such a library; each returns what that returns, 0 for success. What waits also
gets the address of clock_gettime, since a query takes longer on some machines than on others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from .instructions import I32, I64, instruction, load_shared
from .jit import compiled, inlined, keeping_lock

WORD, UNSIGNED = types.int64, types.uint32  # a pointer is passed like a word
MONOTONIC = 1  # CLOCK_MONOTONIC
A_LAUNCH = (WORD, *[UNSIGNED] * 7, WORD, WORD)  # kernel; grid, block, shared; stream, arguments


def _caller(*takes: Any) -> Any:
    """What calls a function that takes values of these types and returns an int."""

    @instruction(WORD, WORD, *takes)
    def call(context: Any, builder: Any, address: Any, *given: Any) -> Any:
        kind = ir.FunctionType(I32, [value.type for value in given])
        called = builder.inttoptr(address, kind.as_pointer())
        return builder.sext(builder.call(called, given), I64)

    return call


_launch = _caller(*A_LAUNCH, WORD)
_launch_together = _caller(*A_LAUNCH)
_with_one = _caller(WORD)
_with_two = _caller(WORD, WORD)
_wait = _caller(WORD, WORD, UNSIGNED)
_copy = _caller(WORD, WORD, WORD, WORD)
_clock = _caller(UNSIGNED, WORD)
_fill = _caller(WORD, UNSIGNED, WORD, WORD)


@keeping_lock
def launch(
    function: int, kernel: int, blocks: int, threads: int, shared: int, stream: int, arguments: int
) -> int:
    """cuLaunchKernel, of `blocks` blocks of `threads` threads."""
    return _launch(function, kernel, blocks, 1, 1, threads, 1, 1, shared, stream, arguments, 0)


@keeping_lock
def launch_together(
    function: int, kernel: int, blocks: int, threads: int, shared: int, stream: int, arguments: int
) -> int:
    """cuLaunchCooperativeKernel."""
    return _launch_together(
        function, kernel, blocks, 1, 1, threads, 1, 1, shared, stream, arguments
    )


@keeping_lock
def record(function: int, event: int, stream: int) -> int:
    """cuEventRecord."""
    return _with_two(function, event, stream)


@keeping_lock
def wait(function: int, stream: int, event: int) -> int:
    """cuStreamWaitEvent."""
    return _wait(function, stream, event, 0)


@keeping_lock
def follow(recorder: int, waiter: int, stream: int, earlier: int, event: int) -> int:
    """Both: `stream` waits for what was given to `earlier`."""
    failed = _with_two(recorder, event, earlier)
    return failed if failed else _wait(waiter, stream, event, 0)


@keeping_lock
def copy(function: int, to: int, source: int, size: int, stream: int) -> int:
    """cuMemcpyAsync."""
    return _copy(function, to, source, size, stream)


@keeping_lock
def fill(function: int, to: int, byte: int, size: int, stream: int) -> int:
    """cuMemsetD8Async."""
    return _fill(function, to, byte, size, stream)


@inlined
def _now(clock: int) -> int:
    """Nanoseconds. clock: the address of clock_gettime."""
    spec = np.empty(2, np.int64)
    _clock(clock, MONOTONIC, spec.ctypes.data)
    return spec[0] * 1_000_000_000 + spec[1]


@keeping_lock
def await_done(function: int, clock: int, of: int, not_yet: int, most_ns: int) -> int:
    """cuStreamQuery or cuEventQuery, until the answer is not `not_yet` any more, or for so long."""
    status, end = _with_one(function, of), 0
    while status == not_yet:
        now = _now(clock)
        end = end if end else now + most_ns
        if now >= end:
            break
        status = _with_one(function, of)
    return status


@inlined
def _look(
    function: int, clock: int, at: int, or_at: int, value: int, stream: int, most_ns: int
) -> bool:
    end = _now(clock) + most_ns
    while True:
        if load_shared(at) == value or load_shared(or_at) == value:
            return True
        if _now(clock) >= end:
            return False
        _with_one(function, stream)


@keeping_lock
def look(
    function: int, clock: int, at: int, or_at: int, value: int, stream: int, most_ns: int
) -> bool:
    """Look at two words, which somebody else writes, until one is `value`, or for so long; a
    cuStreamQuery lies between two looks. Returns whether one was."""
    return _look(function, clock, at, or_at, value, stream, most_ns)


@compiled
def look_apart(
    function: int, clock: int, at: int, or_at: int, value: int, stream: int, most_ns: int
) -> bool:
    """As `look`, without the interpreter's lock."""
    return _look(function, clock, at, or_at, value, stream, most_ns)
