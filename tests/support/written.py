"""A stream that is written to a sharded topic and, beside it, to one graph on this machine."""

from __future__ import annotations

from typing import Any

import numpy as np

import lpma
from ingest import PartitionedSink, decode_record, encode_updates
from lpma import Kind
from tests.support.shards import apply

KINDS = [Kind.INSERT] * 12 + [Kind.SET, Kind.DELETE] * 4 + [Kind.ADD_VERTEX, Kind.REMOVE_VERTEX]


class Written:
    """Random updates of `vertices` vertices. kind: directed, predecessors, names, as of the sink;
    with names, vertices are text and integers."""

    def __init__(self, sink: Any, seed: int, vertices: int = 30, **kind: Any) -> None:
        directed, self._named = kind.get("directed", True), kind.get("names", False)
        self.sink = PartitionedSink(sink, **kind)
        self.graph = lpma.Graph(
            device="cpu", directed=directed, predecessors=directed, names=self._named
        )
        self.names = [f"v{i}" if self._named and i % 3 else i for i in range(vertices)]
        self._rng = np.random.default_rng(seed)
        self._time = 0

    def write(self, count: int) -> None:
        """So many updates, in one write."""
        kind = self._rng.choice([int(k) for k in KINDS], count).astype(np.uint8)
        ends = self._rng.integers(0, len(self.names), (2, count)).tolist()
        src, dst = ([self.names[i] for i in end] for end in ends)
        weight = self._rng.integers(0, 9, count) / 4
        time = np.arange(count) + self._time
        self._time += count
        record = encode_updates(src, dst, weight, time, kind, names=self._named)
        self.sink.produce_many("updates", [record])
        apply(self.graph, decode_record(record, names=self._named))
