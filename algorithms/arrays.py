"""Arrays on the graph's device, and the program for that device.

An algorithm has a program per device: `cpu.py` and `cuda.py` in its folder, or two files with a
common stem. Both have the same functions, documented in the CPU's; `by_device` picks one. A CUDA
program requires arrays on the current device, enqueues its work on the current stream, and waits
for nothing unless it says so.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import array_module, device_of, on_device

Array = npt.NDArray[Any]  # or cupy.ndarray


def by_device(array: Any, package: str, stem: str = "") -> Any:
    """The module `cpu` or `cuda` of a package, or of a stem (`views.simple_cpu`), for an array's
    device; imported on first use."""
    return _module(on_device(array), package, stem)


@cache
def _module(is_on_device: bool, package: str, stem: str) -> Any:
    device = "cuda" if is_on_device else "cpu"
    return import_module(f"{package}.{stem}_{device}" if stem else f"{package}.{device}")


def beside(array: Array, values: Array) -> Array:
    """Values from the host on the array's device: copied if that is CUDA, else as they are."""
    if not on_device(array):
        return values
    with device_of(array):
        placed: Array = array_module(array).asarray(np.ascontiguousarray(values))
        return placed


def starts_of(lengths: Array) -> Array:
    """int64[k+1]: where consecutive lists of these lengths start, and where the last one ends."""
    if on_device(lengths):
        from lpma.cuda.driver import zeros
    else:
        zeros = np.zeros
    starts: Array = zeros(len(lengths) + 1, np.int64)
    if len(lengths):
        array_module(lengths).cumsum(lengths, dtype=np.int64, out=starts[1:])
    return starts


def inverse_of(order: Array, dtype: Any = np.uint32) -> Array:
    """The place of each of 0 … n - 1 in an order of them."""
    xp = array_module(order)
    places: Array = xp.empty(len(order), dtype)
    places[order] = xp.arange(len(order), dtype=dtype)
    return places


def ranges_within(sizes: Array, most: int, first: int = 0) -> list[tuple[int, int]]:
    """Ranges that cover the places from `first` on, each of sizes that sum to at most `most`, or of
    one place. sizes: int64[q], on the host."""
    found = []
    upto = starts_of(sizes)
    while first < len(sizes):
        fitting = int(np.searchsorted(upto, upto[first] + most, side="right")) - 1
        last = max(first + 1, fitting)
        found.append((first, last))
        first = last
    return found
