"""The arrays of a snapshot by name, and its edges as tables.

Everything that is not a CSR is the edge list of rows and `indices`, cut into chunks if the result
is a file, so that writing needs little memory beyond the snapshot.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...arrays import Array, device_of, on_device, row_numbers, to_host
from ...cpu.threads import THREADS
from ..columns import ARRAYS
from ..csr import Csr
from ..read_only import copied, hand_out

T = TypeVar("T")

CHUNK_EDGES = 1 << 20


class EdgeList(NamedTuple):
    """The edges of a snapshot as columns, by rising source and target. `Snapshot.edges` makes it.

    src, dst  the vertices: names where the snapshot has them, else ids, uint32[m]
    weights   float32[m] or float64[m]; None where the graph has no weights
    times     int64[m]; None where the graph has no times
    """

    src: Array
    dst: Array
    weights: Array | None
    times: Array | None


def edge_list(s: Csr) -> EdgeList:
    with device_of(s._indices):
        src = row_numbers(s._indptr, len(s._indices)).astype(np.uint32)
        dst, weights, times = s._indices, s._weights, s._times
        if not s.directed:
            once = src <= dst
            src, dst = src[once], dst[once]
            weights, times = (None if c is None else c[once] for c in (weights, times))
        if s.names is None and s._ids is not None:
            src, dst = s._ids[src], s._ids[dst]
    if s.names is not None:
        src, dst = s.names.of(to_host(src)), s.names.of(to_host(dst))
    weights, times = (None if c is None else hand_out(c) for c in (weights, times))
    return EdgeList(src, hand_out(dst), weights, times)


def _arrays(s: Csr) -> dict[str, Any]:
    """The snapshot's arrays by name, without those it lacks, where they are, not copied."""
    named = {name: getattr(s, f"_{name}") for name in ARRAYS}
    return {name: array for name, array in named.items() if array is not None}


def to_numpy(s: Csr) -> dict[str, Array]:
    return {
        name: to_host(array) if on_device(array) else hand_out(array)
        for name, array in _arrays(s).items()
    }


def to_dlpack(s: Csr) -> dict[str, Any]:
    return {name: copied(array) for name, array in _arrays(s).items()}


def sources(indptr: Array, first: int = 0, last: int | None = None) -> Array:
    """uint32, on the host: the row of each entry first … last-1 of `indices`, or of all."""
    last = int(indptr[-1]) if last is None else last
    lo = int(np.searchsorted(indptr, first, "right")) - 1
    hi = int(np.searchsorted(indptr, last, "left"))
    rows = np.arange(lo, max(hi, lo), dtype=np.uint32)
    return np.repeat(rows, np.diff(np.clip(indptr[lo : lo + len(rows) + 1], first, last)))


def edge_chunks(
    s: Csr, chunk_edges: int | None = None, by_row: bool = False
) -> Iterator[dict[str, Array]]:
    """The edges as tables of at most `chunk_edges` rows (None: CHUNK_EDGES): `src`, `dst` uint32
    vertex ids (or rows, which a compact snapshot tells apart), and `weight`, `time` where the
    snapshot has them. An undirected edge comes once, src <= dst (by row)."""
    return chunks_as(s, lambda table: table, chunk_edges, by_row)


def chunks_as(
    s: Csr, make: Callable[[dict[str, Array]], T], chunk_edges: int | None = None,
    by_row: bool = False,
) -> Iterator[T]:  # fmt: skip
    """make(table) of each table of `edge_chunks`, in order; all threads make the next ones."""
    host = to_numpy(s)
    chunk_edges = CHUNK_EDGES if chunk_edges is None else chunk_edges
    m = len(host["indices"])

    def made(first: int) -> T:
        last = min(first + chunk_edges, m)
        table = {"src": sources(host["indptr"], first, last), "dst": host["indices"][first:last]}
        for name, column in (("weight", "weights"), ("time", "times")):
            if column in host:
                table[name] = host[column][first:last]
        if not s.directed:
            once = table["src"] <= table["dst"]
            table = {name: column[once] for name, column in table.items()}
        if "ids" in host and not by_row:
            table["src"], table["dst"] = host["ids"][table["src"]], host["ids"][table["dst"]]
        return make(table)

    with ThreadPoolExecutor(THREADS) as pool:
        coming: deque[Future[T]] = deque()
        for first in range(0, m, chunk_edges):
            coming.append(pool.submit(made, first))
            if len(coming) > THREADS:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()


def named(s: Csr, rows: Array) -> Array:
    """What these rows go by: their names, or their ids."""
    if s.names is not None:
        return s.names.of(rows)
    return rows if s._ids is None else np.asarray(to_host(s._ids))[rows]
