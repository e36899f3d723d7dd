"""A store that grows batch by batch: Figures 8 to 11 and 13 look at it from different sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..report import Setting
from ..stopwatch import on_device
from . import streams
from .stores import DeviceStore, Ours
from .streams import Stream, to_host

REAL = ("sx-mathoverflow", "uk-2007-05-100k", "road-NY")


@dataclass
class Growth:
    """One figure per batch."""

    ms: list[float] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)  # before the batch
    edges: list[int] = field(default_factory=list)  # streamed, the batch's included
    moved: list[int] = field(default_factory=list)  # segments rebalanced; ours only
    expansions: list[int] = field(default_factory=list)  # batches that expanded
    redundant: int = 0  # segments rebalanced again within a batch


def grow(store: DeviceStore, stream: Stream, size: int, batches: int, warmup: int) -> Growth:
    """Load the stream's base and insert `batches` batches, each timed; the result is verified."""
    store.load(stream.base(), stream.vertices, stream.loaded + (warmup + batches) * size)
    found = Growth()
    for i in range(warmup + batches):
        batch = store.prepare(to_host(stream.batch(i * size, size)))
        levels, moved = store.levels, _moved(store)
        taken, _ = on_device(lambda: store.insert(batch))  # noqa: B023  # called at once
        if i < warmup:
            continue
        if store.levels > levels:
            found.expansions.append(len(found.ms))
        found.ms.append(taken * 1e3)
        found.segments.append(1 << levels)
        found.edges.append(stream.loaded + (i + 1) * size)
        found.moved.append(_moved(store) - moved)
    store.verify(stream.upto((warmup + batches) * size))
    if isinstance(store, Ours):
        found.redundant = store.graph.stats().redundant_rebalances
    return found


def _moved(store: DeviceStore) -> int:
    return store.segments_moved() if isinstance(store, Ours) else 0


def graphs(setting: Setting, edges: int) -> Iterator[Stream]:
    """The graphs of the paper's kinds, `edges` of each, nothing loaded: power law, uniform,
    road-like, and real ones where they are at hand."""
    if setting.quick:
        edges, scale = min(edges, 200_000), 14
    else:
        scale = 20
    yield streams.rmat(scale, 0, edges)
    yield streams.uniform(scale, 0, edges)
    yield streams.grid(int((edges / 4) ** 0.5) + 2, 0)
    for name in () if setting.quick else REAL:
        graph = streams.real(name)
        if graph is not None:
            yield graph.cut(0)
