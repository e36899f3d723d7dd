"""An edge feed in a Kafka: each version once, whatever happens to the pipeline that writes it; and
a copy that follows it is the writer's graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import ingest
import lpma
from ingest import KafkaSink, KafkaSource, Pipeline
from ingest.results.reading import parts_in
from tests.support.broker import Cluster
from tests.support.fed_stream import State, records, state_of
from tests.support.kills import Place, run

WRITER = [
    Place(point, 2, after)
    for after in (False, True)
    for point in (
        "ingest:KafkaSink._commit",
        "ingest.results.publisher:Publisher.send",
        "ingest.results.publisher:Publisher.make",
        "lpma:Graph.apply",
    )
]
COPY = [
    Place(point, 1, after)
    for after in (False, True)
    for point in ("ingest.feed.source:FeedSource.decoder", "lpma:Graph.apply")
]


def publish_all(bootstrap: str, topic: str, changes: str, state: Path) -> State:
    """Start, or go on, to the end of the topic; the graph then."""
    with KafkaSource(bootstrap, [topic]) as source:
        given: dict[str, Any] = {
            "changes": (source.sink(), changes), "batch_size": 10, "batch_interval": 1e6,
            "checkpoint_operations": 70,
        }  # fmt: skip
        if ingest.has_checkpoint(state):
            pipeline = Pipeline.resume(state, source, device="cpu", **given)
        else:
            pipeline = Pipeline(source, lpma.Graph(device="cpu"), state, **given)
        with pipeline:
            pipeline.run("end")
        return state_of(pipeline.graph)  # type: ignore[arg-type]


def follow_all(bootstrap: str, changes: str, state: Path, start: Path | None = None) -> State:
    """Start, or go on, to the end of the feed; the copy then."""
    with KafkaSource(bootstrap, [changes], partitions={changes: [0]}) as source:
        given: Any = {"checkpoint_operations": 50, "checkpoint_interval": 1e6}
        with ingest.follow(source, state, start=start, device="cpu", **given) as copy:
            copy.run("end")
        return state_of(copy.graph)  # type: ignore[arg-type]


def test_each_version_is_there_once_after_kills(kafka: Cluster, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    topic, changes = kafka.topic(name="u"), kafka.topic(name="changes", partitions=2)
    with KafkaSink(kafka.bootstrap) as sink:
        for value in records(rng, 9 * len(WRITER), queries=False):
            sink.produce_many(topic, [value])
    given = kafka.bootstrap, topic, changes, tmp_path / "c"
    followed = kafka.bootstrap, changes, tmp_path / "r"
    for number, place in enumerate(WRITER):
        assert run(publish_all, *given, points=[place.point], place=place).killed, place
        if number > 1:  # there is something to follow
            at = COPY[number % len(COPY)]
            run(follow_all, *followed, points=[at.point], place=at)
    state = publish_all(*given)
    with KafkaSource(kafka.bootstrap, [changes]) as source:
        found = list(parts_in(source, ingest.decode_changes))
    assert [part.version for part in found] == list(range(len(found)))
    assert len({part.run for part in found}) == 1
    assert follow_all(*followed) == state
    assert follow_all(*followed) == state
    assert follow_all(kafka.bootstrap, changes, tmp_path / "r2") == state
    assert follow_all(kafka.bootstrap, changes, tmp_path / "r3", tmp_path / "c") == state
