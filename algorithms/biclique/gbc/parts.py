"""A search in parts: within a budget of memory, or on several devices.

Within a budget, a graph is divided into parts that can be counted independently of one another
(`bcpar_cpu`). The budget bounds the graph of a part together with the search of it, by the
engine's `prices`. The whole graph stays on the host, with a copy in the order of ranks and some
numbers for each vertex, as the docstring of `gbc` says.

Each device has a thread, which takes the next part when the device is free. Without a budget every
device has the whole graph, and the roots are dealt out in turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import numpy as np

from lpma.arrays import on_device, to_host

from ...arrays import Array
from .. import progress
from . import two_hop_cpu
from .bcpar_cpu import bcpar
from .types import Anchored, GbcOptions, Part, Search


def search(
    engine: ModuleType,
    whole: Search,
    bins: int,
    options: GbcOptions,
    memory_limit: int | None,
    devices: Sequence[int] | None,
) -> Array:
    """The histogram of a search, as by `gbc.histogram`, summed over its parts."""
    depth, least = whole.depth, whole.least
    host = Anchored(*map(to_host, whole.graph.rows))
    common = least if options.common else 1
    num_candidates = two_hop_cpu.num_candidates(host, common)
    num_candidates[num_candidates < depth - 1] = 0
    if memory_limit is None:
        parts = _dealt(host, num_candidates, len(devices or (0,)))
    else:
        prices = engine.prices(depth, bins, options)
        parts = bcpar(host, num_candidates, common, prices, engine.WORD, memory_limit)

    def count(part: Part) -> Array:
        graph = _on_current_device(part.graph) if on_device(whole.graph.indptr) else part.graph
        found: Array = engine.search(
            Search(graph, depth, least), part.num_candidates, bins, options, memory_limit
        )
        return found

    total = np.zeros(bins, np.uint64)
    if devices is None:
        _in_turn(count, parts, total, int(num_candidates.sum()))
    else:
        _on_devices(count, parts, total, devices)
    return total


def _dealt(graph: Anchored, num_candidates: Array, shares: int) -> Iterator[Part]:
    """The whole graph for each share, and of its roots every shares-th one, in turn."""
    turn = np.arange(len(num_candidates)) % shares
    return (Part(graph, np.where(turn == i, num_candidates, 0)) for i in range(shares))


def _on_current_device(graph: Anchored) -> Anchored:
    import cupy

    return Anchored(*map(cupy.asarray, graph.rows))


def _in_turn(
    count: Callable[[Part], Array], parts: Iterator[Part], total: Array, candidates: int
) -> None:
    """Add to `total` what is counted in each part. candidates: of all roots together; a part's
    share of them is its share of the progress."""
    counted = 0
    for part in parts:
        of_part = int(part.num_candidates.sum())
        with progress.part(counted, counted + of_part, of=candidates):
            total += count(part)
        counted += of_part


def _on_devices(
    count: Callable[[Part], Array], parts: Iterator[Part], total: Array, devices: Sequence[int]
) -> None:
    """As `_in_turn`, with a thread for each device."""
    import cupy

    turn = threading.Lock()  # for `parts` and `total`

    def work(device: int) -> None:
        with cupy.cuda.Device(device):
            while True:
                with turn:
                    part = next(parts, None)
                if part is None:
                    return
                found = count(part)
                with turn:
                    np.add(total, found, out=total)

    with ThreadPoolExecutor(len(devices)) as pool:
        for done in [pool.submit(work, device) for device in devices]:
            done.result()
