"""The graphs on the device: keys in order of arrival, of which the first `loaded` are there at the
start.

The twin of workloads.py, for streams of a hundred million edges: drawn, made distinct and put in
order by the device in well under a second. Synthetic streams hold every edge once, in the order
they first come; real ones keep the repeats of their source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ingest.datasets.generators import GRAPH500

from . import workloads
from .device import blocks_for, module
from .keys import Array, keys_of

SEED = workloads.SEED
THREADS = 256


@dataclass(frozen=True)
class Stream:
    """`keys`: CuPy uint64, `src << 32 | dst`. Every id is below `vertices`."""

    name: str
    keys: Any
    loaded: int
    vertices: int

    def base(self) -> Any:
        """The loaded keys, sorted, each once."""
        return distinct(self.keys[: self.loaded])

    def upto(self, streamed: int) -> Any:
        """The keys there after `streamed` more edges, sorted, each once."""
        return distinct(self.keys[: self.loaded + streamed])

    def batch(self, start: int, length: int) -> Any:
        """`length` edges of the stream from its place `start` on."""
        return self.keys[self.loaded + start : self.loaded + start + length]

    @property
    def streamed(self) -> int:
        return len(self.keys) - self.loaded

    def cut(self, loaded: int) -> Stream:
        """The same stream with another part loaded."""
        return Stream(self.name, self.keys, loaded, self.vertices)


def distinct(keys: Any) -> Any:
    """The keys sorted, without repeats; CuPy arrays."""
    import cupy

    keys = cupy.sort(keys)
    if len(keys):
        keys = keys[cupy.concatenate((cupy.ones(1, bool), keys[1:] != keys[:-1]))]
    return keys


def rmat(scale: int, loaded: int, streamed: int, draws: int | None = None) -> Stream:
    """Graph500's recursive matrix, ids shuffled; with `draws`, as many edges as those hold."""
    import cupy

    names = np.random.default_rng(SEED).permutation(np.arange(1 << scale, dtype=np.uint32))
    names_there = cupy.asarray(names)
    a, b, c = GRAPH500
    thresholds = [np.uint64(min(round(p * 2**32), 2**32)) for p in (a + b, a, a + b + c)]

    def draw(count: int) -> Any:
        return _fill("rmat", count, np.int32(scale), np.uint64(SEED), *thresholds, names_there)

    return _distinct_stream(f"RMAT {scale}", draw, loaded, streamed, 1 << scale, draws)


def uniform(scale: int, loaded: int, streamed: int) -> Stream:
    def draw(count: int) -> Any:
        return _fill("uniform", count, np.uint64(1 << scale), np.uint64(SEED))

    return _distinct_stream(f"uniform {scale}", draw, loaded, streamed, 1 << scale)


def grid(side: int, loaded: int) -> Stream:
    """Both directions of every edge of a square grid, in random order."""
    import cupy

    vertex = cupy.arange(side * side, dtype=cupy.uint64).reshape(side, side)
    u = cupy.concatenate((vertex[:, :-1].ravel(), vertex[:-1].ravel()))
    v = cupy.concatenate((vertex[:, 1:].ravel(), vertex[1:].ravel()))
    half = cupy.uint64(32)
    keys = cupy.concatenate((u << half | v, v << half | u))
    return Stream(f"grid {side}", keys[shuffled(len(keys))], loaded, side * side)


def real(name: str) -> Stream | None:
    """The named graph of $LPMA_DATA, half of it loaded, or None if it is not at hand."""
    import cupy

    graph = workloads.real(name)
    if graph is None:
        return None
    keys = cupy.asarray(keys_of(graph.src, graph.dst))
    return Stream(name, keys, graph.loaded, graph.n)


def shuffled(count: int, seed: int = SEED) -> Any:
    """0 … count - 1 in random order, int64."""
    import cupy

    return cupy.argsort(_fill("hashes", count, np.uint64(seed)))


def to_host(keys: Any) -> Array:
    host: Array = keys.get()
    return host


def _fill(kernel: str, count: int, *arguments: Any) -> Any:
    """`count` words produced by a kernel of workloads_gpu.cu."""
    import cupy

    words = cupy.empty(count, cupy.uint64)
    if count:
        module("workloads_gpu").get_function(kernel)(
            (blocks_for(count, THREADS),), (THREADS,), (words, np.uint64(count), *arguments)
        )
    return words


def _distinct_stream(
    name: str,
    draw: Callable[[int], Any],
    loaded: int,
    streamed: int,
    vertices: int,
    draws: int | None = None,
) -> Stream:
    """Enough different edges in the order they first come; all that `draws` hold, if given."""
    wanted = loaded + streamed
    drawn = draws or wanted + wanted // 4
    while True:
        keys = _first_of_each(draw(drawn))
        if draws or len(keys) >= wanted:
            return Stream(name, keys if draws else keys[:wanted].copy(), loaded, vertices)
        drawn *= 2


def _first_of_each(keys: Any) -> Any:
    """The keys in their order, each at its first place only."""
    import cupy

    order = cupy.argsort(keys)  # stable
    ranked = keys[order]
    first = cupy.concatenate((cupy.ones(1, bool), ranked[1:] != ranked[:-1]))
    del ranked
    places = order[first]
    del order, first
    return keys[cupy.sort(places)]
