"""Leaves an array, as a faulty kernel would: the fence must end the process there. The argument
says how: python -m tests.support.fence after tests.support.fence.breaches numpy"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numba
import numpy as np

import lpma
from lpma.arrays import address
from lpma.backend.numba.segments import Segments

ENTRIES = 11


@numba.njit
def made_by_a_kernel(n: int) -> Any:
    array = np.empty(n, np.int64)
    array[:] = 7
    return array


def touch_beside(array: Any) -> None:
    """Read the byte behind an array and then, if that can be read, the one in front of it."""
    assert array.sum() == 7 * ENTRIES  # all of it can be read
    for at in (array.nbytes, -1):
        ctypes.c_uint8.from_address(address(array) + at).value  # noqa: B018


def touch_freed() -> None:
    array = np.full(ENTRIES, 7)
    at = address(array)
    del array
    ctypes.c_uint8.from_address(at).value  # noqa: B018


def forget_tables() -> None:
    """A store whose tables for columns that are off have no entries."""
    made = Segments.__post_init__

    def without(segments: Segments) -> None:
        made(segments)
        empty = np.empty(0, np.int64)
        view = segments.view._replace(times=address(empty))
        segments.__dict__.update(view=view, kept=empty)

    Segments.__post_init__ = without  # type: ignore[method-assign, assignment]
    g = lpma.Graph(device="cpu", times=False)
    g.insert(np.arange(10_000), np.arange(10_000))


if __name__ == "__main__":
    match sys.argv[1]:
        case "numpy":
            touch_beside(np.full(ENTRIES, 7))
        case "kernel":
            touch_beside(made_by_a_kernel(ENTRIES))
        case "freed":
            touch_freed()
        case "tables":
            forget_tables()
