"""Where an array's data lies, for kernels that are given addresses in place of arrays.

An array that callers bring is given by address: Numba compiles a kernel anew for each dtype, for
read-only arrays and for strided ones.
"""

from __future__ import annotations

from ctypes import c_int64
from typing import Any

import numpy as np
import numpy.typing as npt

from .instructions import load_i64
from .jit import inlined

_DATA = object.__basicsize__  # in every NumPy array the address follows what all objects begin with


def address(array: npt.NDArray[Any]) -> int:
    """The address of an array's first entry. Read from the object itself: `array.ctypes.data` is
    the same, and takes ten times as long. REQUIRES that the array outlives the use."""
    return c_int64.from_address(id(array) + _DATA).value


@inlined
def data(array: int) -> int:
    """The same, for kernels: `array` is an array's id(), which costs less to hand to a kernel than
    the array and less to make than its address."""
    return load_i64(array + _DATA)


@inlined
def data_if_any(array: int) -> int:
    """The same; 0 for 0, which stands for no array."""
    return data(array) if array else 0


_array = np.empty(1)
if address(_array) != _array.ctypes.data:  # no such interpreter is known
    raise ImportError("lpma: this Python does not keep an array's address where NumPy's C API says")
