"""The graphs, each as edges to load first and a stream that follows.

    rmat      Graph500's recursive matrix (a .57, b .19, c .19), vertex ids shuffled
    uniform   both ends uniform
    grid      a square grid, arcs both ways, in random order
    real      a data set at hand, in its own order of time, else shuffled

Synthetic streams hold every edge once. Real ones keep the repeats of their source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ingest import datasets
from ingest.datasets import generators

from .keys import Array, distinct, ends_of, keys_of

SEED = 20230101

Pair = tuple[Array, Array]


@dataclass(frozen=True)
class Workload:
    """`src`, `dst` uint32: the first `loaded` edges are there before the clock starts."""

    name: str
    src: Array
    dst: Array
    loaded: int

    @property
    def n(self) -> int:
        """The number of vertices: 1 + the largest id that will ever come."""
        return int(max(self.src.max(), self.dst.max())) + 1

    def base(self) -> tuple[Array, Array]:
        """The loaded edges, each once."""
        return ends_of(distinct(keys_of(self.src[: self.loaded], self.dst[: self.loaded])))

    def stream(self, start: int, length: int) -> tuple[Array, Array]:
        """`length` edges of the stream from its place `start` on."""
        rows = slice(self.loaded + start, self.loaded + start + length)
        return self.src[rows], self.dst[rows]

    @property
    def streamed(self) -> int:
        return len(self.src) - self.loaded


def rmat(scale: int, loaded: int, streamed: int) -> Workload:
    def draw(count: int) -> Pair:
        return generators.rmat(scale, count, seed=SEED)

    return _distinct(f"RMAT {scale}", draw, loaded, streamed)


def uniform(scale: int, loaded: int, streamed: int) -> Workload:
    def draw(count: int) -> Pair:
        return generators.uniform(1 << scale, count, seed=SEED)

    return _distinct(f"uniform {scale}", draw, loaded, streamed)


def grid(side: int, loaded_share: float = 0.5) -> Workload:
    """Both directions of every edge of a square grid, in random order."""
    u, v = generators.grid(side, side, shuffle=False)
    arcs = np.concatenate((keys_of(u, v), keys_of(v, u)))
    src, dst = ends_of(np.random.default_rng(SEED).permutation(arcs))
    return Workload(f"grid {side}", src, dst, int(len(src) * loaded_share))


def real(name: str, loaded_share: float = 0.5) -> Workload | None:
    """The named graph of $LPMA_DATA or of the cache, or None if it is not at hand."""
    if datasets.find(name) is None:
        return None
    graph = datasets.load(name)
    src, dst = graph.src, graph.dst
    if graph.time is None:  # stored sorted, which no stream is
        order = np.random.default_rng(SEED).permutation(len(src))
        src, dst = src[order], dst[order]
    return Workload(name, src, dst, int(len(src) * loaded_share))


def _distinct(name: str, draw: Callable[[int], Pair], loaded: int, streamed: int) -> Workload:
    """Enough different edges, in the order they first come; what is drawn again is left out."""
    wanted = loaded + streamed
    drawn = wanted + wanted // 4
    while True:
        keys = keys_of(*draw(drawn))
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        first = np.append(True, ranked[1:] != ranked[:-1])
        keys = keys[np.sort(order[first])]
        if len(keys) >= wanted:
            src, dst = ends_of(keys[:wanted])
            return Workload(name, src, dst, loaded)
        drawn *= 2
