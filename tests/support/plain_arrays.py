"""Batches of plain arrays, in every layout, and what a graph comes to by the host's slow way."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import lpma
from lpma import Batch
from lpma.backend.cuda.upload import staging
from tests.support.oracles import host

Array = npt.NDArray[Any]

N = 2 * staging.PIECE_ROWS + 321  # two whole pieces, and a part of one
LARGE = (1 << 17) + 321  # sent while the store is at work (overlapping.ONE_LAUNCH_ROWS)


def rows(seed: int, n: int = N, span: int = 120) -> tuple[Array, Array, Array, Array]:
    """(src, dst, weight, time) of n edges, many of them more than once; weights in quarters."""
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(0, span, (2, n))
    return src, dst, rng.integers(-1, 9, n) / 4, rng.integers(0, 1000, n)


def held(g: lpma.Graph) -> list[Array]:
    """What a graph holds, on the host."""
    s = g.snapshot()
    return [host(a) for a in (s.indptr, s.indices, s.weights, s.times)]


def by_the_slow_way(*batches: tuple[Any, ...], **options: Any) -> lpma.Graph:
    """A graph on the host given the same by validated columns."""
    g = lpma.Graph(device="cpu", **options)
    for kind, src, dst, weight, time in batches:
        w = None if weight is None else np.asarray(weight, np.float64)
        g.apply(Batch.from_columns(kind, src, dst, w, time))
    return g


def assert_same_graph(g: lpma.Graph, other: lpma.Graph) -> None:
    for mine, theirs in zip(held(g), held(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    g.check()


def gaps(a: Array) -> Array:
    wide = np.zeros((len(a), 3), a.dtype)
    wide[:, 1] = a
    return wide[:, 1]


def backwards(a: Array) -> Array:
    return np.ascontiguousarray(a[::-1])[::-1]


def foreign(a: Array) -> Array:
    return a.astype(a.dtype.newbyteorder())


def locked(a: Array) -> Array:
    a = a.copy()
    a.flags.writeable = False
    return a


def unaligned(a: Array) -> Array:
    memory = np.zeros(a.nbytes + 1, np.uint8)
    view = memory[1:].view(a.dtype)
    view[:] = a
    return view


LAYOUTS = (np.array, gaps, backwards, foreign, locked, unaligned)
