"""Wedges counted on a CUDA device: the counterpart of `cpu`.

wedges.cu has the method. The host waits to learn how many starts there are of each kind.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch

from ...arrays import starts_of
from ..bipartite import Bipartite

Array = Any  # cupy.ndarray

FILE = "algorithms/biclique/wedges/wedges.cu"
LIGHT = 256  # wedges from a start: half of LIGHT_SLOTS in wedges.cu
MIDDLE_SLOTS = 8192
MIDDLE = MIDDLE_SLOTS * 3 // 4
WINDOW = 24576  # counters
LIGHT_THREADS, MIDDLE_THREADS, HEAVY_THREADS = 256, 512, 1024
WARP = 32


def butterflies(b: Bipartite, after: Array) -> int:
    """As `cpu.butterflies`. Waits for the device."""
    total = driver.zeros(1, np.uint64)
    _count("Pairs", b, after, 2, total)
    return driver.number(total)


def histogram(b: Bipartite, least: int) -> Array:
    """As `cpu.histogram`, but on the device."""
    degrees = b.left_degrees
    bins = driver.zeros(int(degrees.max()) + 1 if len(degrees) else 1, np.uint64)
    _count("Histogram", b, driver.zeros(b.num_left, np.int64), least, bins)
    return bins


def _count(visit: str, b: Bipartite, after: Array, least: int, found: Array) -> None:
    """Run the kernels of a Visit over all starts with at least `least` wedges; others cannot have
    that many to one end."""
    rows: tuple[Array, ...] = b.rows
    n, m = b.num_left, b.num_edges
    if m == 0:
        return
    length = cupy.empty(m, np.int64)
    launch.run(FILE, "lengths", m, *rows[:2], n, m, *rows[2:], after, length)
    first_wedge = starts_of(length)
    by_row = first_wedge[b.left_indptr]
    wedges = by_row[1:] - by_row[:-1]

    graph = np.zeros((), [(name, np.uintp) for name in "abcde"])
    graph[()] = tuple(array.data.ptr for array in (*rows, first_wedge))
    light = cupy.flatnonzero((wedges >= least) & (wedges <= LIGHT))
    middle = cupy.flatnonzero((wedges > LIGHT) & (wedges <= MIDDLE))
    heavy = cupy.flatnonzero(wedges > MIDDLE)
    heavies, middles = len(heavy), len(middle)
    taken = driver.zeros(2, np.uint64)
    if heavies:
        heavy = heavy[cupy.argsort(-wedges[heavy])]
        launch.run_together(
            FILE, f"heavy<{visit}>", HEAVY_THREADS * heavies, graph, n, heavy, heavies, least,
            found, taken[:1], block=HEAVY_THREADS, shared=4 * WINDOW,
        )  # fmt: skip
    if middles:
        launch.run_together(
            FILE, f"middle<{visit}>", MIDDLE_THREADS * middles, graph, middle, middles, least,
            found, taken[1:], block=MIDDLE_THREADS, shared=8 * MIDDLE_SLOTS,
        )  # fmt: skip
    if len(light):
        launch.run_together(
            FILE, f"light<{visit}>", WARP * len(light),
            graph, light, len(light), least, found, block=LIGHT_THREADS,
        )  # fmt: skip
