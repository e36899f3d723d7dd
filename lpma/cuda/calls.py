"""Operations on CuPy's arrays, each on arrays of N zeros: calls that have a kernel compiled.

CuPy compiles a kernel for each operation and each choice of types, when it is first asked for. The
lists of what programs come to need (lpma/backend/cuda/launch/warm_up.py,
algorithms/views/warm_cuda.py) are written in these.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from .driver import Array

N = 32
HALF = np.uint64(32)


def zeros(dtype: Any) -> Array:
    return cupy.zeros(N, dtype)


def cast(before: Any, after: Any) -> Array:
    return zeros(before).astype(after)


def take(dtype: Any, index: Any) -> Array:
    return zeros(dtype)[zeros(index)]


def masked(dtype: Any) -> Array:
    return zeros(dtype)[cupy.ones(N, np.bool_)]


def search(dtype: Any) -> Array:
    return cupy.searchsorted(zeros(dtype), zeros(dtype))


def put(dtype: Any, index: Any, values: Any) -> None:
    zeros(dtype)[zeros(index)] = values


def put_masked(dtype: Any, value: Any) -> None:
    zeros(dtype)[cupy.ones(N, np.bool_)] = value
