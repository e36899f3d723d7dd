"""The client and a pipeline, over Kafka."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import ingest
from ingest import Ask, Client, KafkaSink, KafkaSource, Pipeline, QueryRefused, QueryTimeout
from lpma import Kind
from tests.support.broker import Cluster
from tests.support.serving import answered, every_query, ids_of, running
from tests.support.stream_model import SavedModel, same_answer
from tests.support.waiting import HANGS_S, wait_for


def test_the_same_over_kafka(kafka: Cluster) -> None:
    """Every kind of query, long answers that a topic does not take whole, two clients, a pipeline
    that dies and resumes."""
    topics = [kafka.topic(name=name) for name in ("updates", "queries")]
    replies = kafka.topic(name="replies", max_message_bytes="2000")
    rng = np.random.default_rng(11)
    model = SavedModel(predecessors=True)
    settings: dict[str, Any] = {
        "reply_topics": (replies,), "dead_letters": lambda letter: None, "batch_interval": 0.02
    }  # fmt: skip

    def client(**options: Any) -> Client:
        return Client.kafka(
            kafka.bootstrap, query_topic=topics[1], reply_topic=replies,
            **{"timeout": HANGS_S, **options},
        )  # fmt: skip

    def source() -> KafkaSource:
        return KafkaSource(kafka.bootstrap, topics)

    with TemporaryDirectory() as name, client() as one, client() as two:
        with (
            source() as read,
            KafkaSink(kafka.bootstrap) as sink,
            running(Pipeline(read, SavedModel(predecessors=True), name, **settings)) as pipeline,
        ):
            src, dst = rng.integers(0, 6, (2, 30))
            updates = ingest.encode_updates([*src, *[9] * 400], [*dst, *range(400)])
            model.apply(ingest.decode(updates))
            sink.produce_many(topics[0], [updates])
            # Two topics have no order between them.
            wait_for(lambda: pipeline.stats.operations == 430)
            for asking, queries in [(one, every_query(6)), (two, every_query(6)[::-1])]:
                for query, reply in zip(queries, asking.ask_many(queries), strict=True):
                    assert same_answer(reply.answer, answered(model, query)), query
            parts = list(two.pages(Ask(Kind.SUCCESSORS, 9)))
            assert ids_of(*parts) == list(range(400))
            assert len(parts) > 3
            with pytest.raises(QueryRefused, match="hops"):
                one.hops(1, 3)
        with source() as read, running(
            Pipeline.resume(name, read, load=SavedModel.load, **settings)
        ):  # fmt: skip
            assert one.degree(9).answer == [400]
            with client(timeout=float("inf")) as patient:
                assert patient.degree(9).answer == [400]
                assert patient._sink.patience == 1e6  # type: ignore[union-attr]
        with pytest.raises(QueryTimeout):
            two.degree(9, timeout=0.1)
