"""CuPy's own kernels that the algorithms use, to be compiled beforehand by other processes: see
lpma/backend/cuda/warm.py. They stand in the order in which most algorithms come to need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import cupy
import numpy as np

Array = Any  # cupy.ndarray

N = 32
U8, I32, U32, I64, U64 = np.uint8, np.int32, np.uint32, np.int64, np.uint64
HALF = U64(32)


def calls() -> Iterator[Callable[[], object]]:
    """What to call, each on the stream of the thread that calls it."""
    dtype: Any
    index: Any
    before: Any
    after: Any
    for dtype in (U8, np.bool_, I32):
        yield partial(cupy.ones, N, dtype)
    for dtype in (U64, U32, I64, I32):
        yield partial(cupy.arange, N, dtype=dtype)
    yield lambda: _a(I64)[1:] - _a(I64)[:-1]
    yield lambda: _a(U64) << HALF
    yield lambda: cupy.searchsorted(_a(U64), _a(U64))
    for dtype in (U8, I32, I64, np.bool_):
        yield partial(_cumsum, dtype)
    for dtype, index in (
        (I64, I64),
        (U64, I64),
        (U32, I64),
        (I32, I32),
        (I64, U32),
        (np.bool_, I32),
    ):
        yield partial(_take, dtype, index)
    for before, after in (
        (U64, U32), (I64, I32), (I64, np.float64), (U64, I64), (U32, U64), (I64, U64), (I32, I64),
    ):  # fmt: skip
        yield partial(_cast, before, after)
    yield lambda: _a(I64)[1:] > _a(I64)[:-1]
    yield lambda: _a(I64) >= 2
    yield lambda: _a(I32) >= 2
    yield lambda: cupy.flatnonzero(_a(np.bool_))
    yield lambda: _put(np.bool_, U32, True)
    yield lambda: _put(U32, U32, cupy.zeros(N, U32))
    yield lambda: _a(U64) >> HALF
    yield lambda: _a(U64) & U64(1)
    yield lambda: cupy.argsort(_a(U64))
    yield lambda: cupy.searchsorted(_a(U32), _a(U32))
    yield _fill_some
    yield lambda: cupy.minimum(_a(I64), _a(I64))
    yield lambda: _a(I64) + 1
    yield lambda: _a(U32) + 1
    yield lambda: _a(I64) // 2
    for dtype in (I32, I64):
        yield partial(_joined, dtype)
    yield lambda: cupy.searchsorted(_a(I64), _a(I64), side="right")
    yield lambda: _a(U64) | _a(U64)
    yield from _of_listing()


def _of_listing() -> Iterator[Callable[[], object]]:
    """What only listing ego networks and bicliques need."""
    dtype: Any
    index: Any
    yield lambda: cupy.argsort(-_a(I64))
    yield lambda: (_a(I64) > 2) & (_a(I64) <= 3)
    yield lambda: ~_a(np.bool_)
    yield lambda: _put(I32, I64, cupy.zeros(N, I32))
    yield lambda: _put(U64, I64, cupy.zeros(N, U64))
    for dtype in (U32, I64):
        yield partial(_masked, dtype)
    for dtype, index in ((np.bool_, I64), (np.bool_, U32), (U64, U32)):
        yield partial(_take, dtype, index)
    yield lambda: U64(1) - _a(U64)
    for dtype in (I32, U32):
        yield partial(_cast, dtype, dtype)
    yield partial(_cast, I64, U32)
    yield partial(_take, U32, U32)
    yield partial(_set, I32)
    yield lambda: 1 + _a(I64)
    yield lambda: _a(I64) + _a(I64)
    yield lambda: _a(I64) * 2
    yield lambda: _a(np.float64) * _a(np.float64)
    yield lambda: _a(I32) == _a(I32)
    yield lambda: _a(I32) < _a(I32)


def _a(dtype: Any) -> Array:
    return cupy.zeros(N, dtype)


def _cumsum(dtype: Any) -> None:
    cupy.cumsum(_a(dtype), dtype=I64, out=cupy.zeros(N + 1, I64)[1:])


def _take(dtype: Any, index: Any) -> Array:
    return _a(dtype)[_a(index)]


def _masked(dtype: Any) -> Array:
    return _a(dtype)[cupy.ones(N, np.bool_)]


def _put(dtype: Any, index: Any, values: Any) -> None:
    _a(dtype)[_a(index)] = values


def _cast(before: Any, after: Any) -> Array:
    return _a(before).astype(after)


def _joined(dtype: Any) -> Array:
    return cupy.concatenate((_a(dtype), _a(dtype)))


def _set(dtype: Any) -> None:
    _a(dtype)[1:] = 1


def _fill_some() -> None:
    some = _a(I64)
    some[1] = 1
    some[2::2] = 1
