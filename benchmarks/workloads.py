"""The graphs, each as edges to load first and a stream that follows.

    rmat      recursive matrix (Chakrabarti, Zhan, Faloutsos, SDM 2004): a .57 b .19 c .19;
              vertex ids shuffled
    uniform   both ends uniform
    grid      a square grid, arcs both ways, in random order
    real      an edge list of $LPMA_DATA, in its own order of time, else shuffled

Synthetic streams hold every edge once. Real ones keep the repeats of their source.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .keys import Array, distinct, ends_of, keys_of

SEED = 20230101
RMAT = (0.57, 0.19, 0.19)
_CHUNK = 1 << 20  # edges drawn at a time, so that the random numbers stay in cache


@dataclass(frozen=True)
class Workload:
    """`src`, `dst` uint32: the first `loaded` edges are there before the clock starts."""

    name: str
    src: Array
    dst: Array
    loaded: int

    @property
    def n(self) -> int:
        """Vertices: 1 + the largest id that will ever come."""
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


def rmat(scale: int, loaded: int, streamed: int, seed: int = SEED) -> Workload:
    rng = np.random.default_rng(seed)
    shuffle = rng.permutation(1 << scale).astype(np.uint32)

    def draw(count: int) -> Array:
        src, dst = _rmat_draw(rng, scale, count)
        return keys_of(shuffle[src], shuffle[dst])

    return _distinct(f"RMAT {scale}", draw, loaded, streamed)


def uniform(scale: int, loaded: int, streamed: int, seed: int = SEED) -> Workload:
    rng = np.random.default_rng(seed)

    def draw(count: int) -> Array:
        ends = rng.integers(0, 1 << scale, (2, count), dtype=np.uint64)
        return keys_of(ends[0], ends[1])

    return _distinct(f"uniform {scale}", draw, loaded, streamed)


def grid(side: int, loaded_share: float = 0.5, seed: int = SEED) -> Workload:
    vertex = np.arange(side * side, dtype=np.uint32).reshape(side, side)
    ends = [(vertex[:, :-1], vertex[:, 1:]), (vertex[:-1], vertex[1:])]
    arcs = np.concatenate(
        [keys_of(a.ravel(), b.ravel()) for u, v in ends for a, b in ((u, v), (v, u))]
    )
    src, dst = ends_of(np.random.default_rng(seed).permutation(arcs))
    return Workload(f"grid {side}", src, dst, int(len(src) * loaded_share))


def data_folder() -> Path | None:
    """$LPMA_DATA, where it is a folder."""
    folder = os.environ.get("LPMA_DATA", "")
    return Path(folder) if folder and Path(folder).is_dir() else None


def real(name: str, loaded_share: float = 0.5, seed: int = SEED) -> Workload | None:
    """The named graph of $LPMA_DATA, or None where it is not at hand."""
    folder = data_folder()
    if folder is None or not (folder / f"{name}.npz").is_file():
        return None
    with np.load(folder / f"{name}.npz") as arrays:
        src, dst = arrays["src"].astype(np.uint32), arrays["dst"].astype(np.uint32)
        if "t" not in arrays:  # stored sorted, which no stream is
            order = np.random.default_rng(seed).permutation(len(src))
            src, dst = src[order], dst[order]
    return Workload(name, src, dst, int(len(src) * loaded_share))


def _rmat_draw(rng: np.random.Generator, scale: int, count: int) -> tuple[Array, Array]:
    """`count` edges, one bit of both ends a level."""
    a, b, c = RMAT
    src, dst = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
    for start in range(0, count, _CHUNK):
        u, v = src[start : start + _CHUNK], dst[start : start + _CHUNK]
        for _ in range(scale):
            x = rng.random(len(u), dtype=np.float32)
            low = x >= a + b
            right = (x >= a) & ~low | (x >= a + b + c)
            u += u + low
            v += v + right
    return src, dst


def _distinct(name: str, draw: Callable[[int], Array], loaded: int, streamed: int) -> Workload:
    """Draw until there are enough different edges, and keep them in the order they first came."""
    wanted = loaded + streamed
    keys = np.empty(0, np.uint64)
    while len(keys) < wanted:
        keys = np.concatenate((keys, draw(wanted - len(keys) + wanted // 8)))
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        first = np.append(True, ranked[1:] != ranked[:-1])
        keys = keys[np.sort(order[first])]
    src, dst = ends_of(keys[:wanted])
    return Workload(name, src, dst, loaded)
