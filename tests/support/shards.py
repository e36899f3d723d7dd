"""What the tests of sharded streams share: a sink in memory, and what graphs hold, to be joined and
compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import ingest
import lpma
from ingest import Partition
from ingest.pipeline.record_decoder import ends_of, mapped
from ingest.sources.base import LogWriter
from ingest.types import Record
from lpma.arrays import to_host

Content = tuple[dict[tuple[Any, Any], tuple[float, int]], set[Any]]


class MemorySink(LogWriter):
    """Keeps what is written to partitions. `fails`: how many partitions of the next write are
    written before it fails; None: it does not."""

    def __init__(self, **partitions: int) -> None:
        self.topics = {name.replace("_", "."): count for name, count in partitions.items()}
        self.written: dict[Partition, list[bytes]] = {
            Partition(topic, n): [] for topic, count in self.topics.items() for n in range(count)
        }
        self.fails: int | None = None
        self.writes = 0

    def create_topic(self, name: str, partitions: int = 1) -> None:
        for n in range(self.topics.setdefault(name, partitions)):
            self.written.setdefault(Partition(name, n), [])

    def partitions_of(self, topic: str) -> int:
        return self.topics[topic]

    def topic_names(self) -> set[str]:
        return set(self.topics)

    def produce_many(self, topic: str, values: Sequence[bytes]) -> None:
        self.produce_parts({Partition(topic, 0): values})

    def produce_parts(self, parts: Mapping[Partition, Sequence[bytes]]) -> dict[Partition, range]:
        self.writes += 1
        for done, (partition, values) in enumerate(parts.items()):
            if done == self.fails:
                raise ingest.SourceError("the log is away")
            self.written[partition] += values
        return {
            place: range(len(self.written[place]) - len(values), len(self.written[place]))
            for place, values in parts.items()
        }

    def close(self) -> None:
        pass

    def of(self, topic: str) -> list[list[bytes]]:
        """What each partition of a topic holds."""
        return [self.written[Partition(topic, n)] for n in range(self.topics[topic])]


def applied(graph: lpma.Graph, records: Iterable[bytes]) -> lpma.Graph:
    """The graph after these records, as a pipeline applies them: one that its producer sent before
    is dropped."""
    seen: dict[str, int] = {}
    for data in records:
        record = ingest.decode_record(data, names=graph.names is not None)
        if record.producer is not None:
            if record.seq is not None and record.seq <= seen.get(record.producer, -1):
                continue
            seen[record.producer] = record.seq or 0
        apply(graph, record)
    return graph


def apply(graph: lpma.Graph, record: Record) -> None:
    batch = record.batch
    if graph.names is not None and record.names is not None and len(batch):
        batch = replace(mapped(graph.names, batch, ends_of(record.names)), ids_resolved=True)
    if len(batch):
        graph.apply(batch)


def content(graph: lpma.Graph) -> Content:
    """{(u, v): (weight, time)} and the vertices that are there, by name."""
    s = graph.snapshot()
    src = np.repeat(np.arange(s.num_rows), np.diff(to_host(s.indptr)))
    dst, rows = to_host(s.indices), np.flatnonzero(to_host(s.present))
    if graph.names is not None:
        src, dst, rows = (graph.names.of(ids) for ids in (src, dst, rows))
    assert s.weights is not None
    assert s.times is not None
    columns = (column.tolist() for column in (src, dst, to_host(s.weights), to_host(s.times)))
    edges = {(u, v): (w, t) for u, v, w, t in zip(*columns, strict=True)}
    return edges, set(rows.tolist())


def joined(contents: Iterable[Content]) -> Content:
    """The contents of several graphs together. An edge lies in one of them."""
    edges: dict[tuple[Any, Any], tuple[float, int]] = {}
    vertices: set[Any] = set()
    for own, present in contents:
        assert edges.keys().isdisjoint(own)
        edges |= own
        vertices |= present
    return edges, vertices


def turned_round(content: Content) -> Content:
    edges, vertices = content
    return {(v, u): edge for (u, v), edge in edges.items()}, vertices
