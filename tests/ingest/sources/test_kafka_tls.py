"""TLS and SASL together, on a real Kafka: what is passed through holds, and what must fail does."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import ingest
import lpma
from ingest.sources.kafka import source as kafka_module
from tests.conftest import missing
from tests.support.broker import PASSWORD, USER, Unavailable
from tests.support.broker.tls import tls_broker

pytestmark = pytest.mark.integration


class Secured(NamedTuple):
    bootstrap: str
    settings: dict[str, Any]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("tls")
    certificate = directory / "ca.pem"
    try:
        broker = tls_broker(directory, certificate)
        broker.start()
    except Unavailable as error:
        missing("kafka", str(error))
    with broker:
        settings = {
            "security_protocol": "SASL_SSL", "ssl_cafile": str(certificate),
            "sasl_mechanism": "PLAIN", "sasl_plain_username": USER, "sasl_plain_password": PASSWORD,
        }  # fmt: skip
        # Here, because a process may run some of these tests and not the others.
        with ingest.KafkaSink(broker.sasl_bootstrap, settings=settings) as sink:
            for topic in ("updates", "queries"):
                sink.create_topic(topic)
        yield Secured(broker.sasl_bootstrap, settings)


def test_stream_and_queries(secured: Secured) -> None:
    """Written, ingested and asked over TLS alone."""
    bootstrap, settings = secured
    src, dst = np.arange(500, dtype=np.uint32), np.arange(1, 501, dtype=np.uint32)
    with ingest.KafkaSink(bootstrap, settings=settings) as sink:
        sink.produce_many("updates", [ingest.encode_updates(src, dst)])
    graph = lpma.Graph(device="cpu")
    with ingest.KafkaSource(bootstrap, ["updates"], settings=settings) as source:
        ingest.Pipeline(source, graph).run(until="end")
    s = graph.snapshot()
    assert np.array_equal(s.indices, dst)
    assert np.array_equal(np.diff(s.indptr)[:500], np.ones(500))


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that is refused tries until its time is up."""
    monkeypatch.setattr(kafka_module, "_CONNECT_TIMEOUT_S", 2.0)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    "wrong",
    [
        {"ssl_cafile": None},  # a certificate that nobody vouches for
        {"sasl_plain_password": "guessed"},
        {"security_protocol": "SASL_PLAINTEXT"},
        {"security_protocol": "PLAINTEXT"},
    ],
    ids=lambda wrong: "-".join(map(str, wrong.values())),
)
def test_what_is_wrong_is_refused(secured: Secured, wrong: dict[str, Any]) -> None:
    settings = {name: value for name, value in (secured.settings | wrong).items() if value}
    with pytest.raises(ingest.SourceError) as raised:
        ingest.KafkaSource(secured.bootstrap, ["updates"], settings=settings, patience=1.0)
    assert PASSWORD not in str(raised.value)


@pytest.mark.usefixtures("hurried")
def test_the_host_must_be_the_certificates(secured: Secured) -> None:
    port = secured.bootstrap.rpartition(":")[2]
    if socket.gethostbyname("localhost") != "127.0.0.1":
        pytest.skip("localhost is not 127.0.0.1 here")
    with pytest.raises(ingest.SourceError):
        ingest.KafkaSource(f"localhost:{port}", ["updates"], settings=secured.settings)
    unchecked = secured.settings | {"ssl_check_hostname": False}
    with ingest.KafkaSource(f"localhost:{port}", ["updates"], settings=unchecked) as source:
        assert source.positions()
