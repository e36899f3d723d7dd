"""Arrays given to kernels by id(), from which a kernel reads where the data lies.

So are arrays that callers bring, because Numba compiles a kernel anew for each dtype, for read-only
arrays and for strided ones. And it costs less than handing over the array, or its address.

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
