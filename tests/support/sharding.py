"""A graph over shards, as the shards of a cluster hold it: each has a graph of its own, which was
given the edges of the vertices that it owns; and the same graph in one.

An undirected edge goes to the owners of both ends, turned round for the second (a loop once).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

import lpma
from algorithms import ShardedSnapshot
from algorithms.sharded import LocalWorkers, Part
from lpma import Snapshot
from lpma.sharding import owners_of
from tests.support.strategies import edge_lists

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A graph, by its edges, and how it is spread."""

    n: int  # rows of which some are no vertices
    src: Array
    dst: Array
    added: Array  # vertices added by themselves
    shards: int
    directed: bool
    predecessors: bool  # whether each shard keeps the graph of the turned edges

    def __repr__(self) -> str:
        kind = (
            "directed" if self.directed else "undirected"
        ) + " with in-edges" * self.predecessors
        edges = list(zip(self.src.tolist(), self.dst.tolist(), strict=True))
        return f"Case({kind}, {self.shards} shards, {edges}, added {self.added.tolist()})"

    def one(self, device: str = "cpu", name: Any = None) -> Snapshot:
        """The graph in one. name: what a vertex goes by."""
        return self._graph(device, self.directed, name, self.src, self.dst, self.added).snapshot()

    def sharded(self, device: str = "cpu", name: Any = None) -> ShardedSnapshot:
        """The graph over its shards."""
        return ShardedSnapshot.of(LocalWorkers(self.parts(device, name)), epoch=7)

    def parts(self, device: str = "cpu", name: Any = None) -> list[Part]:
        """What the shards hold."""
        src, dst = self.src, self.dst
        if not self.directed:
            turned = src != dst
            src = np.concatenate((self.src, self.dst[turned]))
            dst = np.concatenate((self.dst, self.src[turned]))
        made = []
        for shard in range(self.shards):
            out = self._of_shard(shard, device, name, src, dst).snapshot()
            into = self._of_shard(shard, device, name, dst, src).snapshot()
            kept = into if self.predecessors and self.directed else None
            directed = self.directed
            made.append(Part.of(out, shard, self.shards, directed=directed, in_snapshot=kept))
        return made

    def _of_shard(self, shard: int, device: str, name: Any, src: Array, dst: Array) -> lpma.Graph:
        own = self._owners(src, name) == shard
        added = self.added[self._owners(self.added, name) == shard]
        return self._graph(device, True, name, src[own], dst[own], added)

    def _owners(self, vertices: Array, name: Any) -> Array:
        named = vertices if name is None else [name(v) for v in vertices.tolist()]
        return owners_of(named, self.shards) if len(vertices) else np.empty(0, np.int64)

    def _graph(
        self, device: str, directed: bool, name: Any, src: Array, dst: Array, added: Array
    ) -> lpma.Graph:
        graph = lpma.Graph(device=device, directed=directed, names=name is not None)
        ends: list[Any] = [src, dst, added]
        if name is not None:
            ends = [[name(v) for v in end.tolist()] for end in ends]
        weights = 1 + (src + dst) % 4 / 4  # the same for an edge and the edge turned round
        if len(src):
            graph.insert(ends[0], ends[1], weights, (src + dst).astype(np.int64))
        if len(added):
            graph.add_vertices(ends[2], 5)
        return graph


@st.composite
def cases(draw: st.DrawFn, max_vertices: int = 24) -> Case:
    """Graphs with loops, repeats, isolated vertices, rows that are none, stars and cliques; from
    one shard, which has all, to five, some of which have nothing."""
    n, src, dst = draw(edge_lists(max_vertices))
    added = sorted(draw(st.sets(st.integers(0, max(n - 1, 0)), max_size=4))) if n else []
    directed = draw(st.booleans())
    return Case(
        n, src, dst, np.array(added, np.int64), draw(st.integers(1, 5)), directed,
        directed and draw(st.booleans()),
    )  # fmt: skip
