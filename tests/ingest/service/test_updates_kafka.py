"""Updates over HTTP into a Kafka: killed, kept from its brokers, refused what is too large."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
from ingest import KafkaSource, Pipeline
from ingest.service.context import Context, Limits
from tests.conftest import soak
from tests.support.broker import Broker, Cluster
from tests.support.killed_service import Origin
from tests.support.kills import Place
from tests.support.serving import running
from tests.support.stream_model import SavedModel
from tests.support.waiting import wait_for

from .conftest import start_server
from .http import ask
from .test_update_kills import check, killed_and_resumed

POINTS = (
    "ingest.service.updates:_Updates._records",
    "ingest.service.writer:UpdateWriter.append",
    "ingest.service.writer:UpdateWriter._write",
    "ingest.service.updates:JSONResponse",
    "tests.support.stream_model:SavedModel.apply",
    "ingest.state.checkpointer:Checkpointer.begin",
)
ROWS = 200_000


@pytest.mark.soak
def test_a_kill_loses_and_repeats_nothing(kafka: Cluster, tmp_path: Path) -> None:
    for number in range(soak(1, 10)):
        origin = Origin("", kafka.topic(), kafka.bootstrap)
        places = [Place(point, 1, bool(i % 2)) for i, point in enumerate(POINTS)]
        checkpoint = tmp_path / f"state{number}"
        clients = killed_and_resumed(origin, checkpoint, places, number)
        check(origin, checkpoint, clients)


@pytest.fixture
def own(broker: Broker) -> Iterator[tuple[str, Pipeline]]:
    """The URL of a service of a stream on a broker of its own, and the pipeline."""
    with Cluster(broker.bootstrap) as cluster:
        topic = cluster.topic()
    with KafkaSource(broker.bootstrap, [topic]) as source:
        graph: Any = SavedModel(predecessors=True)
        pipeline = Pipeline(source, graph, batch_interval=0.01)
        with running(pipeline):
            limits = Limits(deadline_s=2.0)
            with Context(pipeline.requests, graph, pipeline, limits=limits) as context:
                url, stop = start_server(context)
                yield url, pipeline
                stop()


def test_a_broker_that_is_away_is_told_and_written_to_again(
    own: tuple[str, Pipeline], broker: Broker
) -> None:
    url, pipeline = own
    first = {"src": [1], "dst": [2], "source": "a", "seq": 1}
    assert ask(url, "POST", "/v1/updates?wait=applied", first).status == 200
    assert ask(url, "GET", "/readyz").status == 200
    broker.stop()
    second = {"src": [2], "dst": [3], "source": "a", "seq": 2}
    refused = ask(url, "POST", "/v1/updates", second)
    assert refused.status == 503
    assert refused.headers["Retry-After"] == "1"
    assert "may be sent again" in refused.json["detail"]
    wait_for(lambda: ask(url, "GET", "/readyz").status != 200, "the outage is told")
    broker.start()
    wait_for(lambda: ask(url, "POST", "/v1/updates", second).status == 202)
    wait_for(lambda: pipeline.graph.num_edges == 2)
    assert ask(url, "POST", "/v1/updates?wait=applied", second).status == 200
    assert pipeline.graph.edges(2, 3).weights.tolist() == [1.0]  # type: ignore[attr-defined]


def test_a_record_too_large_for_the_brokers_is_refused_alone(own: tuple[str, Pipeline]) -> None:
    """By default they take 1 MiB: rows are cut smaller, but not what has a source and a seq."""
    url, _ = own
    src, dst = np.arange(ROWS), np.arange(ROWS) + 1
    whole = ingest.encode_updates(src, dst, producer="a", seq=1)
    assert len(whole) > 1 << 20
    found: list[Any] = []
    large = threading.Thread(
        target=lambda: found.append(
            ask(url, "POST", "/v1/updates", whole, {"Content-Type": "application/msgpack"})
        )
    )
    large.start()
    small = [ask(url, "POST", "/v1/updates", {"src": [1], "dst": [2]}) for _ in range(10)]
    large.join()
    assert {answer.status for answer in small} == {202}
    assert found[0].status == 413
    columns = {"src": src.tolist(), "dst": dst.tolist()}
    answer = ask(url, "POST", "/v1/updates", columns)
    assert (answer.status, answer.json["operations"]) == (202, ROWS)
    assert answer.json["last"] - answer.json["offset"] == 6
