"""Arrays passed to kernels by id(), from which a kernel reads the address of the data.

Numba compiles a kernel anew for each dtype, for read-only arrays and for strided ones: arrays from
callers are passed like this. It also costs less than passing the array, or its address.

Requires that the array is contiguous and outlives the call.
"""

from __future__ import annotations

from ..arrays import DATA
from .instructions import load_i64
from .jit import inlined


@inlined
def data(array: int) -> int:
    """The address of an array's first entry; `array` is its id()."""
    return load_i64(array + DATA)


@inlined
def data_if_any(array: int) -> int:
    """The same; 0 for 0, which stands for no array."""
    return data(array) if array else 0
