"""Random graphs as edge lists: RMAT, uniform, and grids like streets.

RMAT (Chakrabarti, Zhan, Faloutsos, SDM 2004; parameters of Graph500): each edge descends `scale`
levels of a quartered adjacency matrix. Trick: the bits an edge uses are a hash of (seed, edge
number), not the state of a generator, so any part of the list can be made alone and in parallel.

Memory: the two columns returned, and 4 bytes a vertex where ids are shuffled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from lpma.batch.columns import MAX_OPERATIONS, MAX_VERTEX
from lpma.cpu.jit import compiled

from ..errors import IngestError

Array = npt.NDArray[Any]

GRAPH500 = (0.57, 0.19, 0.19)
CHUNK_EDGES = 1 << 20


class GeneratorError(IngestError, ValueError):
    """A generator's parameters describe no graph; the message says what they must be."""


def require(good: bool, message: str) -> None:
    if not good:
        raise GeneratorError(message)


def check_counts(vertices: int, edges: int) -> None:
    require(1 <= vertices <= MAX_VERTEX + 1, f"vertices go from 1 to {MAX_VERTEX + 1}")
    require(0 <= edges <= MAX_OPERATIONS, f"edges go from 0 to {MAX_OPERATIONS}")


@njit(cache=True, inline="always")
def _mixed(x: Any) -> Any:
    """SplitMix64's finalizer: every input bit reaches every output bit."""
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@compiled
def _rmat(
    src: Array, dst: Array, first: int, scale: int, seed: int, ab: int, a: int, abc: int
) -> None:
    """Fill src, dst with edges first … of the list. ab, a, abc: thresholds of 32 bits.

    One hash serves two levels. The quadrants in order of the thresholds: top left (a), top right
    (b), bottom left (c), bottom right."""
    for e in range(len(src)):
        state: Any = _mixed(uint64(seed) + uint64(first + e) * uint64(0x9E3779B97F4A7C15))
        u: Any = uint64(0)
        v: Any = uint64(0)
        bits: Any = uint64(0)
        for level in range(scale):
            if level & 1:
                draw = bits >> uint64(32)
            else:
                state += uint64(0x9E3779B97F4A7C15)
                bits = _mixed(state)
                draw = bits & uint64(0xFFFFFFFF)
            down = draw >= uint64(ab)
            right = draw >= uint64(abc) if down else draw >= uint64(a)
            u = (u << uint64(1)) | uint64(down)
            v = (v << uint64(1)) | uint64(right)
        src[e] = u
        dst[e] = v


def rmat(
    scale: int,
    edges: int | None = None,
    *,
    edge_factor: int = 16,
    a: float = GRAPH500[0],
    b: float = GRAPH500[1],
    c: float = GRAPH500[2],
    shuffle: bool = True,
    seed: int = 1,
) -> tuple[Array, Array]:
    """src, dst uint32[edges] over 2^scale vertices; edges default to edge_factor * 2^scale.

    a, b, c: the probabilities of the quadrants top left, top right, bottom left; Graph500's by
    default. shuffle: renumber the vertices at random, as Graph500 requires, so that hubs are spread
    over the ids. Repeated edges and loops occur. Raises GeneratorError.

    >>> src, dst = rmat(4, 3, seed=7)
    >>> src.dtype, len(src), bool(max(src.max(), dst.max()) < 16)
    (dtype('uint32'), 3, True)
    """
    require(1 <= scale <= 31, "scale goes from 1 to 31")
    m = edge_factor << scale if edges is None else edges
    check_counts(1 << scale, m)
    total = a + b + c
    require(min(a, b, c) >= 0 and total <= 1 + 1e-9, "a, b, c are probabilities, a + b + c <= 1")
    thresholds = [min(round(p * 2**32), 2**32) for p in (a + b, a, total)]
    src, dst = np.empty(m, np.uint32), np.empty(m, np.uint32)
    _rmat(src, dst, 0, scale, seed & (2**62 - 1), *thresholds)
    if shuffle:
        names = np.random.default_rng(seed).permutation(np.arange(1 << scale, dtype=np.uint32))
        rename(src, names)
        rename(dst, names)
    return src, dst


def rename(ids: Array, names: Array) -> None:
    """ids[:] = names[ids], a chunk at a time."""
    for first in range(0, len(ids), CHUNK_EDGES):
        part = ids[first : first + CHUNK_EDGES]
        part[:] = names[part]


def uniform(vertices: int, edges: int, *, loops: bool = True, seed: int = 1) -> tuple[Array, Array]:
    """src, dst uint32[edges], every pair equally likely; loops=False leaves out u = v.

    Raises GeneratorError.

    >>> src, dst = uniform(10, 1000, loops=False)
    >>> bool((src != dst).all())
    True
    """
    check_counts(vertices, edges)
    require(loops or vertices > 1, "one vertex alone has nothing but loops")
    rng = np.random.default_rng(seed)
    src = rng.integers(0, vertices, edges, np.uint32)
    if loops:
        return src, rng.integers(0, vertices, edges, np.uint32)
    # One of the other vertices: those from src on move up by one.
    dst = rng.integers(0, vertices - 1, edges, np.uint32)
    dst += dst >= src
    return src, dst


def grid(
    rows: int, columns: int, *, keep: float = 1.0, shuffle: bool = True, seed: int = 1
) -> tuple[Array, Array]:
    """src < dst uint32[m]: the edges of a rows x columns lattice, each once, like streets.

    Vertex (r, c) has id r * columns + c. keep: the share of edges kept (0.69 gives the mean degree
    of New York's roads). shuffle: in random order, not row by row. Raises GeneratorError.

    >>> src, dst = grid(2, 2, shuffle=False)
    >>> list(zip(src.tolist(), dst.tolist()))
    [(0, 1), (2, 3), (0, 2), (1, 3)]
    """
    require(rows >= 1 and columns >= 1, "rows and columns are at least 1")
    check_counts(rows * columns, 2 * rows * columns)
    require(0 <= keep <= 1, "keep is a share, from 0 to 1")
    rng = np.random.default_rng(seed)
    ids = np.arange(rows * columns, dtype=np.uint32).reshape(rows, columns)
    src = np.concatenate([ids[:, :-1].ravel(), ids[:-1].ravel()])
    dst = np.concatenate([ids[:, 1:].ravel(), ids[1:].ravel()])
    if keep < 1:
        kept = rng.random(len(src)) < keep
        src, dst = src[kept], dst[kept]
    if shuffle:
        order = rng.permutation(len(src))
        src, dst = src[order], dst[order]
    return src, dst
