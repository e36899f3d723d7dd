"""What is told of kafka-python's errors goes by their types, also where one is within another."""

from __future__ import annotations

import ssl
from types import SimpleNamespace

import pytest
from kafka.errors import KafkaConnectionError, KafkaError, ProducerFencedError

from ingest import KafkaSink
from ingest.sources.kafka.client import NoTransactionsError, _is_away, said


@pytest.mark.parametrize(("reason", "away"), [
    ("CERTIFICATE_VERIFY_FAILED", False), ("WRONG_VERSION_NUMBER", False), ("EOF", True),
])  # fmt: skip
def test_wrong_settings_of_tls_are_told_from_brokers_that_are_away(reason: str, away: bool) -> None:
    within = ssl.SSLError(1, "as OpenSSL says it")
    within.reason = reason
    told = KafkaConnectionError("Handshake failed")
    told.__context__ = within  # as where it is raised while that is handled
    assert _is_away(told) is away


def test_whoever_was_replaced_is_told_what_to_do() -> None:
    sink = KafkaSink("localhost:1", transactional_id="results")
    sink._producer = SimpleNamespace(
        _transaction_manager=SimpleNamespace(last_error=ProducerFencedError())
    )
    repeated = sink._said(KafkaError("we are in an error state"))
    assert repeated == said(ProducerFencedError())
    assert "keep only one of the two" in repeated
    assert sink._said(KafkaConnectionError("gone")) == said(KafkaConnectionError("gone"))


def test_brokers_without_transactions_are_told_what_they_lack() -> None:
    assert "transaction.state.log.replication.factor" in said(NoTransactionsError("too late"))
