"""CuPy's own kernels that the algorithms use, for other processes to compile beforehand: see
lpma/backend/cuda/launch/warm_up.py, which has those of stores. In the order in which most
algorithms need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import cupy
import numpy as np

from lpma.cuda.calls import N, cast, masked, put, search, take, zeros

U8, I32, U32, I64, U64 = np.uint8, np.int32, np.uint32, np.int64, np.uint64
F32, F64 = np.float32, np.float64


def calls() -> Iterator[Callable[[], object]]:
    """Calls that compile the kernels, each on the calling thread's stream."""
    yield from (partial(cupy.ones, N, dtype) for dtype in (U8, I32))
    yield from (partial(cupy.arange, N, dtype=dtype) for dtype in (U32, I32))
    yield lambda: zeros(I64)[1:] - zeros(I64)[:-1]
    yield from (partial(_cumsum, dtype) for dtype in (U8, I32, I64, np.bool_))
    yield from _each(take, (U32, I64), (I32, I32), (I64, U32), (np.bool_, I32))
    yield from _each(cast, (I64, I32), (I64, np.float64), (U32, U64), (I32, I64), (np.bool_, I64))
    yield lambda: zeros(I64)[1:] > zeros(I64)[:-1]
    yield lambda: zeros(I64) >= 2
    yield lambda: zeros(I32) >= 2
    yield lambda: cupy.flatnonzero(zeros(np.bool_))
    yield lambda: put(np.bool_, U32, True)
    yield lambda: put(U32, U32, zeros(U32))
    yield lambda: cupy.argsort(zeros(U64))
    yield partial(search, U32)
    yield _fill_some
    yield lambda: cupy.minimum(zeros(I64), zeros(I64))
    yield lambda: zeros(I64) + 1
    yield lambda: zeros(U32) + 1
    yield lambda: zeros(I64) // 2
    yield from (partial(_joined, dtype) for dtype in (I32, I64))
    yield lambda: cupy.searchsorted(zeros(I64), zeros(I64), side="right")
    yield lambda: zeros(U64) | zeros(U64)
    yield from _of_searches()
    yield from _of_weights()
    yield from _of_pairs()
    yield from _of_triangles()
    yield from _of_listing()


def _of_searches() -> Iterator[Callable[[], object]]:
    """What breadth-first searches, shortest paths and components need."""
    yield lambda: cupy.full(N, -1, I32)
    yield _set_one
    yield lambda: cupy.where(zeros(np.bool_), zeros(I32), I32(-1))


def _of_weights() -> Iterator[Callable[[], object]]:
    """What weights, and vectors of PageRank, are looked at with."""
    yield from (partial(_judged, dtype) for dtype in (F32, F64))
    yield partial(cast, F32, F64)
    yield from (partial(take, F64, dtype) for dtype in (I64, U32))
    yield lambda: cupy.where(zeros(np.bool_), zeros(F64), 0.0)
    yield lambda: zeros(F64) / 2.0


def _of_pairs() -> Iterator[Callable[[], object]]:
    """What similarity needs, and looking up vertices."""
    yield lambda: zeros(I64) < N
    yield lambda: cupy.maximum(zeros(I64), 1)
    yield lambda: zeros(I64) / zeros(I64)
    yield lambda: cupy.flatnonzero(cupy.ones(N, I64))
    yield lambda: zeros(I64)[0] + zeros(I64)
    yield lambda: cupy.argsort(-zeros(F64), kind="stable")
    yield lambda: put(I64, U32, 0)


def _of_triangles() -> Iterator[Callable[[], object]]:
    """What triangles by vertex, clustering and trusses need."""
    yield partial(cast, I32, F64)
    yield from (partial(cupy.bincount, zeros(dtype), zeros(F64), N) for dtype in (I64, U32))
    yield lambda: zeros(F64) + zeros(F64)
    yield partial(cast, F64, I64)
    yield lambda: put(I64, U32, zeros(I64))
    yield lambda: zeros(I64) - 1
    yield lambda: zeros(I64) * zeros(I64)
    yield lambda: zeros(F64) / zeros(F64)
    yield lambda: zeros(I32).sum(dtype=I64)


def _of_listing() -> Iterator[Callable[[], object]]:
    """What only listing ego networks and bicliques need."""
    yield lambda: cupy.argsort(-zeros(I64))
    yield lambda: (zeros(I64) > 2) & (zeros(I64) <= 3)
    yield lambda: ~zeros(np.bool_)
    yield lambda: put(I32, I64, zeros(I32))
    yield lambda: put(U64, I64, zeros(U64))
    yield partial(masked, U32)
    yield from _each(take, (np.bool_, I64), (np.bool_, U32), (U64, U32))
    yield lambda: U64(1) - zeros(U64)
    yield from (partial(cast, dtype, dtype) for dtype in (I32, U32))
    yield partial(cast, I64, U32)
    yield partial(take, U32, U32)
    yield partial(_set, I32)
    yield lambda: 1 + zeros(I64)
    yield lambda: zeros(I64) + zeros(I64)
    yield lambda: zeros(I64) * 2
    yield lambda: zeros(np.float64) * zeros(np.float64)
    yield lambda: zeros(I32) == zeros(I32)
    yield lambda: zeros(I32) < zeros(I32)


def _each(call: Callable[..., object], *types: tuple[Any, Any]) -> Iterator[Callable[[], object]]:
    return (partial(call, *pair) for pair in types)


def _cumsum(dtype: Any) -> None:
    cupy.cumsum(zeros(dtype), dtype=I64, out=cupy.zeros(N + 1, I64)[1:])


def _joined(dtype: Any) -> Any:
    return cupy.concatenate((zeros(dtype), zeros(dtype)))


def _set(dtype: Any) -> None:
    zeros(dtype)[1:] = 1


def _set_one() -> None:
    zeros(U64)[1] = 1


def _judged(dtype: Any) -> None:
    cupy.isfinite(zeros(dtype)), zeros(dtype) < 0


def _fill_some() -> None:
    some = zeros(I64)
    some[1] = 1
    some[2::2] = 1
