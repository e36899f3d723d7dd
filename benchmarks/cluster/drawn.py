"""Graphs in shards for the cost model: drawn wherever a shard lies, without a log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from algorithms.sharded import Part
from lpma import Graph
from lpma.arrays import array_module
from lpma.sharding import owners_of

from .. import workloads, workloads_gpu
from ..keys import Array, ends_of


@dataclass(frozen=True)
class Place:
    """Where shards lie: `devices` are numbers of CUDA devices; none: on the host."""

    devices: tuple[int, ...] = ()

    def name_of(self, shard: int) -> str:
        return f"cuda:{self.devices[shard % len(self.devices)]}" if self.devices else "cpu"

    @contextmanager
    def current(self, shard: int) -> Iterator[None]:
        here: Any = nullcontext()
        if self.devices:
            import cupy

            here = cupy.cuda.Device(self.devices[shard % len(self.devices)])
        with here:
            yield


@dataclass(frozen=True)
class Drawn:
    """A graph to be drawn wherever a shard lies."""

    name: str
    scale: int
    edges: int

    def ends(self, on_device: bool) -> tuple[Array, Array]:
        """Both directions of every edge, without loops."""
        if on_device:
            src, dst = ends_of(getattr(workloads_gpu, self.name)(self.scale, 0, self.edges).keys)
        else:
            src, dst = getattr(workloads, self.name)(self.scale, 0, self.edges).stream(
                0, self.edges
            )
        src, dst = src[src != dst], dst[src != dst]
        xp = array_module(src)
        return xp.concatenate((src, dst)), xp.concatenate((dst, src))

    def parts(self, place: Place, shards: int) -> list[Part]:
        return [self._part(place, shard, shards) for shard in range(shards)]

    def _part(self, place: Place, shard: int, shards: int) -> Part:
        with place.current(shard):
            src, dst = self.ends(bool(place.devices))
            own = owners_of(src, shards) == shard
            src, dst = src[own], dst[own]
            graph = Graph(device=place.name_of(shard))
            for start in range(0, len(src), 1 << 24):
                graph.insert(src[start : start + (1 << 24)], dst[start : start + (1 << 24)])
            return Part.of(graph.snapshot(), shard, shards, directed=False)
