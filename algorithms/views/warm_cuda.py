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


CALLS: tuple[Callable[[], object], ...] = (
    *(partial(cupy.ones, N, dtype) for dtype in (U8, I32)),
    *(partial(cupy.arange, N, dtype=dtype) for dtype in (U32, I32)),
    lambda: zeros(I64)[1:] - zeros(I64)[:-1],
    *(partial(_cumsum, dtype) for dtype in (U8, I32, I64, np.bool_)),
    *_each(take, (U32, I64), (I32, I32), (I64, U32), (np.bool_, I32)),
    *_each(cast, (I64, I32), (I64, np.float64), (U32, U64), (I32, I64), (np.bool_, I64)),
    lambda: zeros(I64)[1:] > zeros(I64)[:-1],
    lambda: zeros(I64) >= 2,
    lambda: zeros(I32) >= 2,
    lambda: cupy.flatnonzero(zeros(np.bool_)),
    lambda: put(np.bool_, U32, True),
    lambda: put(U32, U32, zeros(U32)),
    lambda: cupy.argsort(zeros(U64)),
    partial(search, U32),
    _fill_some,
    lambda: cupy.minimum(zeros(I64), zeros(I64)),
    lambda: zeros(I64) + 1,
    lambda: zeros(U32) + 1,
    lambda: zeros(I64) // 2,
    *(partial(_joined, dtype) for dtype in (I32, I64)),
    lambda: cupy.searchsorted(zeros(I64), zeros(I64), side="right"),
    lambda: zeros(U64) | zeros(U64),
    # What breadth-first searches, shortest paths and components need.
    lambda: cupy.full(N, -1, I32),
    _set_one,
    lambda: cupy.where(zeros(np.bool_), zeros(I32), I32(-1)),
    # What weights, and vectors of PageRank, are looked at with.
    *(partial(_judged, dtype) for dtype in (F32, F64)),
    partial(cast, F32, F64),
    *(partial(take, F64, dtype) for dtype in (I64, U32)),
    lambda: cupy.where(zeros(np.bool_), zeros(F64), 0.0),
    lambda: zeros(F64) / 2.0,
    # What similarity needs, and looking up vertices.
    lambda: zeros(I64) < N,
    lambda: cupy.maximum(zeros(I64), 1),
    lambda: zeros(I64) / zeros(I64),
    lambda: cupy.flatnonzero(cupy.ones(N, I64)),
    lambda: zeros(I64)[0] + zeros(I64),
    lambda: cupy.argsort(-zeros(F64), kind="stable"),
    lambda: put(I64, U32, 0),
    # What triangles by vertex, clustering and trusses need.
    partial(cast, I32, F64),
    *(partial(cupy.bincount, zeros(dtype), zeros(F64), N) for dtype in (I64, U32)),
    lambda: zeros(F64) + zeros(F64),
    partial(cast, F64, I64),
    lambda: put(I64, U32, zeros(I64)),
    lambda: zeros(I64) - 1,
    lambda: zeros(I64) * zeros(I64),
    lambda: zeros(F64) / zeros(F64),
    lambda: zeros(I32).sum(dtype=I64),
    # What only listing ego networks and bicliques need.
    lambda: cupy.argsort(-zeros(I64)),
    lambda: (zeros(I64) > 2) & (zeros(I64) <= 3),
    lambda: ~zeros(np.bool_),
    lambda: put(I32, I64, zeros(I32)),
    lambda: put(U64, I64, zeros(U64)),
    partial(masked, U32),
    *_each(take, (np.bool_, I64), (np.bool_, U32), (U64, U32)),
    lambda: U64(1) - zeros(U64),
    *(partial(cast, dtype, dtype) for dtype in (I32, U32)),
    partial(cast, I64, U32),
    partial(take, U32, U32),
    partial(_set, I32),
    lambda: 1 + zeros(I64),
    lambda: zeros(I64) + zeros(I64),
    lambda: zeros(I64) * 2,
    lambda: zeros(np.float64) * zeros(np.float64),
    lambda: zeros(I32) == zeros(I32),
    lambda: zeros(I32) < zeros(I32),
)


def calls() -> Iterator[Callable[[], object]]:
    """Calls that compile the kernels, each on the calling thread's stream."""
    return iter(CALLS)
