"""What the tests of repartitioning share: a log that is torn, and the graph of what was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ingest
import lpma
from ingest import Partition, RecordError, Repartition, SqliteLog
from ingest.sources import Polled
from tests.support.shards import Content, applied, apply, content, joined

P = 3


class Torn(SqliteLog):
    """Writes the partitions of a write one by one, as Kafka does."""

    def produce_parts(
        self,
        parts: Mapping[Partition, Sequence[bytes | None]],
        keys: Mapping[Partition, Sequence[bytes | None]] | None = None,
    ) -> dict[Partition, range]:
        done: dict[Partition, range] = {}
        for partition, values in parts.items():
            done |= super().produce_parts({partition: values}, keys)
        return done


def fresh(names: bool = False, directed: bool = True) -> lpma.Graph:
    return lpma.Graph(device="cpu", names=names, directed=directed, weight_dtype="float64")


def polled_of(path: str | Path, topics: Sequence[str]) -> list[Polled]:
    with SqliteLog(path, topics=topics) as reader:
        return reader.poll(10**6)


def whole(polled: list[Polled], **options: Any) -> Content:
    """One graph from the stream as it is read, without what a producer sent before."""
    graph, seen = fresh(**options), dict[Any, Any]()
    for one in polled:
        try:
            record = ingest.decode_record(one.value, names=graph.names is not None)  # type: ignore[arg-type]
        except RecordError:
            continue
        key = one.partition, record.producer
        if record.seq is not None:
            if record.seq <= seen.get(key, -1):
                continue
            seen[key] = record.seq
        apply(graph, record)
    return content(graph)


def sharded(path: str | Path, topic: str = "split", **options: Any) -> Content:
    """The graphs of the partitions together."""
    parts: dict[Partition, list[bytes]] = {}
    for one in polled_of(path, [topic]):
        parts.setdefault(one.partition, []).append(one.value)  # type: ignore[arg-type]
    return joined(content(applied(fresh(**options), values)) for values in parts.values())


def without_times(content: Content) -> Any:
    edges, vertices = content
    return {key: weight for key, (weight, _) in edges.items()}, vertices


def one_of(tmp_path: Path, sink: Any, topic: str = "split", **options: Any) -> Repartition:
    source = SqliteLog(tmp_path / "log", topics=["updates"])
    return Repartition(
        source, sink, topic, tmp_path / "progress", partitions=P, queries="asked", **options
    )
