"""The whole contents of a graph: into a snapshot, into an image, into a file and back.

An image is what a file will hold, copied in one step that is shorter than a batch. What makes it
short is memory whose pages are there already: the one before is written over.

A file holds the sorted slots (keys, weights, times), not the gaps between them: loading spreads
them evenly again. persist.py says how the bytes lie.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import persist, presence
from .arrays import array_module
from .backend import check_device
from .errors import BatchError, FormatError, SnapshotTooLarge
from .files import Writable, atomic_write
from .query import HALF, LOW
from .snapshot import Snapshot
from .store import LPMA

if TYPE_CHECKING:
    from .graph import Graph

Array = npt.NDArray[Any]

FORMAT = "lpma graph"
OPTIONS = ("directed", "predecessors", "weight", "strategy", "segment_size", "times",
           "global_merge")  # fmt: skip
COLUMNS = ("keys", "weights", "times")
SPARE = 4  # memory for so many times what an image needs is not kept for it
SMALL_BYTES = 1 << 20


def snapshot(graph: Graph, store: LPMA, compact: bool, max_bytes: int) -> Snapshot:
    """See Graph.snapshot. The caller holds the graph's lock."""
    facts: dict[str, Any] = {
        "num_edges": graph.count_edges(),
        "version": graph.version,
        "time": graph.time,
        "directed": graph.directed,
    }
    if compact:
        return _compact(store, facts)
    n = store.largest_vertex() + 1
    if 8 * (n + 1) > max_bytes:
        raise SnapshotTooLarge(
            f"indptr for ids up to {n - 1} takes {8 * (n + 1):,} bytes, more than {max_bytes:,}: "
            "ask for snapshot(compact=True), which renumbers the vertices, or raise max_bytes"
        )
    stored = store.num_slots - store.num_markers
    arrays = store.backend.csr(store.segments, n, stored, store.num_markers > 0)
    indptr, indices, weights, times = arrays
    return Snapshot(indptr, indices, weights, times, added=_added(store), **facts)


def _added(store: LPMA) -> Array:
    """uint32, rising: the vertices that have a marker."""
    if not store.num_markers:
        return array_module(store.segments.counts).empty(0, np.uint32)
    keys, _, _ = store.backend.slots(store.segments, values=False)
    added: Array = (keys[keys & LOW == LOW] >> HALF).astype(np.uint32)
    return added


def count_vertices(store: LPMA) -> int:
    """See Graph.count_vertices. The caller holds the graph's lock."""
    keys, _, _ = store.backend.slots(store.segments, values=False)
    return len(presence.ids_of(keys, store.largest_vertex() + 1))


def _compact(store: LPMA, facts: dict[str, Any]) -> Snapshot:
    keys, weights, times = store.backend.slots(store.segments)
    src, dst = keys >> HALF, keys & LOW
    edge = dst != LOW
    xp = array_module(keys)
    ids = presence.ids_of(keys, store.largest_vertex() + 1).astype(np.uint64)
    src, dst = xp.searchsorted(ids, src[edge]), xp.searchsorted(ids, dst[edge])
    indptr = xp.searchsorted(src, xp.arange(len(ids) + 1))  # renumbered sources rise too
    return Snapshot(
        indptr.astype(np.int64),
        dst.astype(np.uint32),
        None if weights is None else weights[edge],
        None if times is None else times[edge],
        ids=ids.astype(np.uint32),
        **facts,
    )


class Image:
    """All that a graph held at one version, copied to the host: it may be written by any thread
    while the graph goes on."""

    def __init__(self, header: dict[str, Any], columns: dict[str, Array], memory: Array) -> None:
        self._header = header
        self._columns = columns
        self._memory = memory

    @property
    def nbytes(self) -> int:
        """Of the contents; there may be room for more."""
        return sum(column.nbytes for column in self._columns.values())

    def save(self, path: str | os.PathLike[str], **beside: str) -> None:
        """Write the file that `Graph.save` would have written then, atomically. beside: entries of
        its header about what belongs to the graph and is kept elsewhere."""
        assert not beside.keys() & self._header.keys()
        with atomic_write(path) as file:
            persist.write_to(file, {**self._header, **beside}, self._columns)

    def write(self, file: Writable) -> None:
        """The same into an open file, which takes all that it is given or raises."""
        persist.write_to(file, self._header, self._columns)

    def give_up(self) -> Array:
        """The memory, for another image. This one holds nothing from here on."""
        memory, self._memory = self._memory, _NOTHING
        self._columns = {}
        return memory


_NOTHING = np.empty(0, np.uint8)


def image(graph: Graph, store: LPMA, old: Image | None) -> Image:
    """See Graph.image. The caller holds the graph's lock."""
    n, width = store.num_slots, store.slot_bytes
    memory = _NOTHING if old is None else old.give_up()
    if not n * width <= memory.nbytes <= max(SPARE * n * width, SMALL_BYTES):
        del memory  # before there is more
        memory = store.backend.host_memory(n * width)
    dtypes: dict[str, Any] = {"keys": np.uint64}
    if graph.has_times:
        dtypes["times"] = np.int64
    if graph.weight_dtype is not None:
        dtypes["weights"] = graph.weight_dtype
    columns, start = {}, 0
    for name, dtype in dtypes.items():
        end = start + n * np.dtype(dtype).itemsize
        columns[name] = memory[start:end].view(dtype)
        start = end
    keys, weights, times = columns["keys"], columns.get("weights"), columns.get("times")
    store.backend.copy_slots(store.segments, keys, weights, times)
    return Image(_header(graph), {x: columns[x] for x in COLUMNS if x in columns}, memory)


def _header(graph: Graph) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "directed": graph.directed,
        "predecessors": graph.directed and graph.has_predecessors,
        "weight": None if graph.weight_dtype is None else graph.weight_dtype.name,
        "strategy": graph.strategy,
        "segment_size": graph.segment_size,
        "times": graph.has_times,
        "global_merge": graph.global_merge,
        "version": graph.version,
        "time": graph.time,
    }


def load(cls: type[Graph], path: str | os.PathLike[str], device: str) -> Graph:
    """See Graph.load."""
    check_device(device)
    header, columns = persist.read(path)
    if header.get("format") != FORMAT:
        raise FormatError(f"{os.fspath(path)}: a file of this package, but not a saved graph")
    try:
        graph = cls(device=device, **{name: header[name] for name in OPTIONS})  # type: ignore[arg-type]
        keys = columns["keys"]
        weights = columns["weights"] if graph.weight_dtype is not None else None
        times = columns["times"] if graph.has_times else None
        graph.version, graph.time = int(header["version"]), int(header["time"])  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError, BatchError) as error:
        raise FormatError(f"{os.fspath(path)}: not a graph this version knows ({error})") from None
    if keys.dtype != np.uint64 or bool((keys[1:] <= keys[:-1]).any()):
        raise FormatError(f"{os.fspath(path)}: the keys do not strictly rise")
    if weights is not None and (len(weights) != len(keys) or weights.dtype != graph.weight_dtype):
        raise FormatError(f"{os.fspath(path)}: the weights do not go with the keys")
    if times is not None and (len(times) != len(keys) or times.dtype != np.int64):
        raise FormatError(f"{os.fspath(path)}: the times do not go with the keys")
    _check_contents(path, graph, keys, weights)
    graph.fill(keys, weights, times)
    return graph


def _check_contents(
    path: str | os.PathLike[str], graph: Graph, keys: Array, weights: Array | None
) -> None:
    """Checksums say that a file is what was written; this, that it was a graph."""
    low, high = keys & LOW, keys >> HALF
    marker = low == LOW
    whole = graph.version >= 0 and not (high == LOW).any()
    if weights is not None:
        # Written so that NaN fails the comparison too.
        whole = whole and bool((weights >= 0).all()) and bool(np.isfinite(weights).all())
        whole = whole and not weights[marker].any()
    if not graph.directed:
        back = (low[~marker] << HALF) | high[~marker]
        whole = whole and np.array_equal(np.sort(back), keys[~marker])
    if not whole:
        raise FormatError(f"{os.fspath(path)}: the contents are not those of a graph")
