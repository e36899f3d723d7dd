"""Power-law streams of interactions, with deletions among them.

The stream repeats earlier interactions (which makes popular pairs more popular), draws new ones
between vertices of power-law popularity, and deletes earlier edges at a stated share, at times that
never fall.

Memory: the columns returned, and up to 30 bytes an operation more while they are made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.batch.columns import MAX_OPERATIONS, Columns, Kind
from lpma.cpu.jit import compiled

from .random_graphs import CHUNK_EDGES, check_counts, rename, require

Array = npt.NDArray[Any]


def _popular(rng: np.random.Generator, vertices: int, count: int, exponent: float) -> Array:
    """uint32[count] ranks 0 … vertices-1 drawn with probabilities proportional to
    (rank + 1)^(-1 / (exponent - 1)), by inverting the distribution function; degrees then follow
    degree^-exponent."""
    power = (exponent - 1) / (exponent - 2)
    ranks = np.empty(count, np.uint32)
    for first in range(0, count, CHUNK_EDGES):
        part = ranks[first : first + CHUNK_EDGES]
        part[:] = np.minimum(vertices * rng.random(len(part)) ** power, vertices - 1)
    return ranks


@compiled
def _repeat(src: Array, dst: Array, back: Array) -> None:
    """Make interaction i repeat interaction back[i] where back[i] < i."""
    for i in range(len(src)):
        j = back[i]
        if j < i:
            src[i] = src[j]
            dst[i] = dst[j]


def interactions(
    vertices: int = 100_000,
    edges: int = 1_000_000,
    *,
    exponent: float = 2.2,
    repeats: float = 0.4,
    deletions: float = 0.05,
    mean_gap_ms: float = 20.0,
    start_ms: int = 1_600_000_000_000,
    seed: int = 1,
) -> Columns:
    """A temporal stream of `edges` appends with deletions among them, as columns with weight
    (float32: 1 to 5, whose sums are exact) and time (int64 ms since 1970, never falling).

    exponent: of the degree distribution, above 2. repeats: the share of interactions that repeat
    an earlier one. deletions: see `with_deletions`. mean_gap_ms: between two operations.
    Loops do not occur. Raises GeneratorError.

    >>> stream = interactions(100, 950, deletions=0.05)
    >>> len(stream), int((stream.kind != 0).sum())
    (1000, 50)
    """
    check_counts(vertices, edges)
    require(vertices > 1, "interactions need two vertices")
    require(2 < exponent < 100, "exponent lies above 2")
    require(0 <= repeats < 1, "repeats is a share, from 0 to below 1")
    require(mean_gap_ms >= 0, "mean_gap_ms is not negative")
    rng = np.random.default_rng(seed)
    src = _popular(rng, vertices, edges, exponent)
    dst = _popular(rng, vertices - 1, edges, exponent)
    dst += dst >= src
    names = rng.permutation(np.arange(vertices, dtype=np.uint32))
    rename(src, names)
    rename(dst, names)
    # A place drawn from [0, i / repeats) lies before i with probability `repeats`.
    if repeats:
        place = rng.random(edges)
        place *= np.arange(edges)
        place /= repeats
        _repeat(src, dst, place.astype(np.int64))
    weight = rng.integers(1, 6, edges).astype(np.float32)
    time = np.cumsum(rng.exponential(mean_gap_ms, edges)).astype(np.int64) + start_ms
    stream = Columns.validated(int(Kind.INSERT), src, dst, weight, time)
    return with_deletions(stream, deletions, seed=seed + 1)


def with_deletions(stream: Columns, share: float, *, seed: int = 1) -> Columns:
    """`stream` (appends only) with deletions put in at random places, so that `share` of all
    operations delete; each deletes the edge of an append drawn from those before it, which an
    earlier deletion may have deleted already, and carries the time of the append just before.

    The appends keep their order. Raises GeneratorError.

    >>> stream = interactions(10, 3, deletions=0.0)
    >>> int((with_deletions(stream, 0.25).kind != 0).sum())
    1
    """
    require(0 <= share < 1, "the share of deletions goes from 0 to below 1")
    n = len(stream)
    require(not n or not stream.kind.any(), "deletions are put into streams of appends only")
    count = round(n * share / (1 - share)) if n else 0
    require(n + count <= MAX_OPERATIONS, f"a stream has at most {MAX_OPERATIONS} operations")
    if count == 0:
        return stream
    rng = np.random.default_rng(seed)
    after = np.sort(rng.integers(0, n, count))  # the append each deletion follows
    victim = (rng.random(count) * (after + 1)).astype(np.int64)
    deletes = after + np.arange(1, count + 1)  # its place in the result
    appends = np.ones(n + count, bool)
    appends[deletes] = False

    def merged(column: Array | None, deleted: Array | float) -> Array | None:
        if column is None:
            return None
        result = np.empty(n + count, column.dtype)
        result[appends] = column
        result[deletes] = deleted
        return result

    return Columns.validated(
        np.where(appends, np.uint8(Kind.INSERT), np.uint8(Kind.DELETE)),
        merged(stream.src, stream.src[victim]),
        merged(stream.dst, stream.dst[victim]),
        merged(stream.weight, 0.0),
        None if stream.time is None else merged(stream.time, stream.time[after]),
    )
