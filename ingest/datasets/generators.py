"""Graphs made to order, by name: RMAT, uniform, grids like streets, and interaction streams.

Every generator is a function of its arguments and its seed alone, so two machines, or two runs of a
benchmark, stream the same graph. `from_spec` makes what a text such as "rmat:scale=18" describes.

RMAT (Chakrabarti, Zhan, Faloutsos, SDM 2004; parameters of Graph500): each edge descends `scale`
levels of a quartered adjacency matrix. Trick: the bits an edge uses are a hash of (seed, edge
number), not the state of a generator, so any part of the list can be made alone and in parallel.

A stream of interactions repeats earlier ones (which makes popular pairs more popular), draws new
ones between vertices of power-law popularity, and deletes earlier edges at a stated share, at times
that never fall.

Memory: the columns returned, 4 bytes a vertex where ids are shuffled, and up to 30 bytes an
operation more while interactions are made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, uint64

from lpma.batch.columns import MAX_OPERATIONS, MAX_VERTEX, Columns, Kind
from lpma.cpu.jit import compiled

from ..errors import IngestError
from ..types import Array

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


# By name -------------------------------------------------------------------------------------

_GENERATORS: dict[str, Callable[..., Any]] = {
    "rmat": rmat,
    "uniform": uniform,
    "grid": grid,
    "interactions": interactions,
}


def names() -> list[str]:
    """The generators that `from_spec` knows.

    >>> names()
    ['grid', 'interactions', 'rmat', 'uniform']
    """
    return sorted(_GENERATORS)


def from_spec(spec: str) -> Columns:
    """The stream that "name:key=value,key=value" describes, as "rmat:scale=18,seed=7".

    Keys are the generator's arguments. Raises GeneratorError on an unknown name, key or value.

    >>> len(from_spec("grid:rows=3,columns=4"))
    17
    """
    name, _, rest = spec.partition(":")
    if name not in _GENERATORS:
        raise GeneratorError(f"no generator is called {name!r}: known are {', '.join(names())}")
    make = _GENERATORS[name]
    parameters = inspect.signature(make).parameters
    arguments: dict[str, Any] = {}
    for item in filter(None, rest.split(",")):
        key, _, value = (part.strip() for part in item.partition("="))
        if key not in parameters:
            raise GeneratorError(f"{name} has no {key!r}: it takes {', '.join(parameters)}")
        try:
            arguments[key] = _parsed(str(parameters[key].annotation), value)
        except ValueError:
            wanted = parameters[key].annotation
            raise GeneratorError(f"{name}: {key}={value!r} is not of type {wanted}") from None
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in arguments:
            raise GeneratorError(f"{name} needs {key}, as in {name}:{key}=…")
    made = make(**arguments)
    if isinstance(made, Columns):
        return made
    src, dst = made
    return Columns.validated(int(Kind.INSERT), src, dst, None, None)


def _parsed(annotation: str, value: str) -> bool | int | float:
    if annotation == "bool":
        if value.lower() not in ("true", "false", "1", "0"):
            raise ValueError(value)
        return value.lower() in ("true", "1")
    return float(value) if annotation == "float" else int(value.replace("_", ""))
