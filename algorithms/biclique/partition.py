"""Graphs counted within a budget of memory: BCPar's independent parts, on one device or several.

Source: Qiu et al., GBC, section VI and Algorithm 3. Roots are parted so that each part with all
that its subsets can hold is a graph of its own: the *closure* of the part's roots, which is the
roots and their candidates, with their neighbours among the roots' neighbours. No part needs
another. A part begins with the root whose candidates weigh most on average, and takes the root that
shares the most weight with the closure, while the budget holds; a vertex weighs as many as it has
neighbours and candidates. Where none shares anything, the part goes on with the next heaviest.
The paper keeps candidates in lists, which are what does not fit; here they are found by a walk
whenever they are asked for, in tables of one number a vertex.

The budget bounds a part's graph and the search of it, by the engine's `prices`. The whole graph
stays on the host, with a copy in the order of ranks and some numbers a vertex: see `gbc`.

Devices take parts as they come free, a thread for each. Without a budget every device has the whole
graph, and roots are dealt out in turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpma.arrays import on_device, to_host

from . import progress, two_hop_cpu
from .anchored import Anchored
from .budget import Prices
from .partition_cpu import FREE, NO_ROOT, average_weights, cut_rows, fill_part

if TYPE_CHECKING:
    from .gbc import Switches

Array = npt.NDArray[Any]


class Part(NamedTuple):
    """A graph of its own, on the host."""

    graph: Anchored
    later: Array  # int32[n]: how many candidates each of its roots has, 0 for what is no root of it


def search(
    engine: ModuleType,
    graph: Anchored,
    depth: int,
    least: int,
    bins: int,
    switches: Switches,
    memory_limit: int | None,
    devices: Sequence[int] | None,
) -> Array:
    """The histogram of `gbc.histogram`, part by part."""
    host = Anchored(*map(to_host, (graph.indptr, graph.indices, graph.back_indptr, graph.back)))
    common = least if switches.common else 1
    later = two_hop_cpu.candidates(host, common)
    later[later < depth - 1] = 0
    if memory_limit is None:
        parts = _dealt(host, later, len(devices or (0,)))
    else:
        prices = engine.prices(depth, bins, switches)
        parts = bcpar(host, later, common, prices, engine.WORD, memory_limit)

    def count(part: Part) -> Array:
        found: Array = engine.search(
            _on_current_device(part.graph) if on_device(graph.indptr) else part.graph,
            part.later, depth, least, bins, switches, memory_limit,
        )  # fmt: skip
        return found

    return _on_devices(count, parts, devices, np.zeros(bins, np.uint64), int(later.sum()))


def bcpar(
    graph: Anchored, later: Array, common: int, prices: Prices, word: int, memory_limit: int
) -> Iterator[Part]:
    """The parts of a graph on the host, made one after the other as they are asked for.

    later: int32[n], how many candidates each root has, 0 for what is no root; common: how many
    neighbours a candidate shares with its root; word: bits of a bitmap's word. Raises ValueError
    where one root alone costs more than memory_limit."""
    n = graph.num_anchors
    rows = (graph.indptr, graph.indices, graph.back_indptr, graph.back)
    met = np.zeros(n, np.int32)
    found, entering = np.empty(n + 1, np.uint32), np.empty(n + 1, np.uint32)
    average = average_weights(*rows, common, later, met, found)
    order = np.argsort(-average, kind="stable").astype(np.uint32)
    part = np.where(later > 0, FREE, NO_ROOT).astype(np.int32)
    closed = np.full(n, FREE, np.int32)
    reached = np.full(len(graph.back_indptr) - 1, FREE, np.int32)
    reaching = np.empty(len(reached), np.uint32)
    gain = np.zeros(2 << max(0, n - 1).bit_length(), np.int64)
    number = 0
    while (part == FREE).any():
        cost = fill_part(
            number, order, *rows, common, later, word, np.array(prices, np.int64), memory_limit,
            part, closed, reached, gain, met, found, entering, reaching,
        )  # fmt: skip
        if cost > memory_limit:
            raise ValueError(
                f"memory_limit={memory_limit:,}: one root with its candidates needs {cost:,} bytes"
            )
        yield _cut(graph, np.where(part == number, later, 0), closed, reached, number)
        number += 1


def _cut(graph: Anchored, later: Array, closed: Array, reached: Array, number: int) -> Part:
    """The graph of the vertices last in that part."""
    anchors, others = (np.flatnonzero(last == number) for last in (closed, reached))
    rank, name = np.empty(len(closed), np.uint32), np.empty(len(reached), np.uint32)
    rank[anchors], name[others] = np.arange(len(anchors)), np.arange(len(others))
    forth = _cut_rows(anchors, number, graph.indptr, graph.indices, reached, name)
    back = _cut_rows(others, number, graph.back_indptr, graph.back, closed, rank)
    return Part(Anchored(*forth, *back), later[anchors])


def _cut_rows(rows: Array, *given: Any) -> tuple[Array, Array]:
    indptr = np.zeros(len(rows) + 1, np.int64)
    cut_rows(rows, *given, indptr, np.empty(0, np.uint32), False)
    indices = np.empty(indptr[-1], np.uint32)
    cut_rows(rows, *given, indptr, indices, True)
    return indptr, indices


def _dealt(graph: Anchored, later: Array, shares: int) -> Iterator[Part]:
    """The whole graph for everyone, with every so-manieth root."""
    turn = np.arange(len(later)) % shares
    return (Part(graph, np.where(turn == i, later, 0)) for i in range(shares))


def _on_current_device(graph: Anchored) -> Anchored:
    import cupy

    return Anchored(
        *map(cupy.asarray, (graph.indptr, graph.indices, graph.back_indptr, graph.back))
    )


def _on_devices(
    count: Callable[[Part], Array],
    parts: Iterator[Part],
    devices: Sequence[int] | None,
    whole: Array,
    candidates: int,
) -> Array:
    """The sum of what is counted in all parts, added to `whole`. candidates: of all roots, by which
    the parts' shares of the work are told."""
    if devices is None:
        counted = 0
        for part in parts:
            of_part = int(part.later.sum())
            with progress.part(counted, counted + of_part, of=candidates):
                whole += count(part)
            counted += of_part
        return whole
    import cupy

    turn = threading.Lock()

    def work(device: int) -> None:
        with cupy.cuda.Device(device):
            while True:
                with turn:
                    part = next(parts, None)
                if part is None:
                    return
                found = count(part)
                with turn:
                    np.add(whole, found, out=whole)

    with ThreadPoolExecutor(len(devices)) as pool:
        for done in [pool.submit(work, device) for device in devices]:
            done.result()
    return whole
