"""A connection that is given up from outside while its own thread polls."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

pytest.importorskip("kafka")
pytest.importorskip("crc32c")

from ingest.errors import AwayError
from ingest.sources.kafka import client


def test_a_client_whose_thread_polls_is_given_up_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed = threading.Event()
    failed: list[Any] = []

    class Polls:
        def __init__(self, **config: Any) -> None:
            self.cluster = type("Cluster", (), {"config": {}})()

        def close(self) -> None:
            if threading.current_thread() is not threading.main_thread():
                closed.set()
                raise RuntimeError("Concurrent access to net.poll!")

    def kind(kafka_client: Any, **settings: Any) -> Any:
        kafka_client()
        assert closed.wait(60)
        raise OSError("closed")

    monkeypatch.setattr(client, "KafkaNetClient", Polls)
    monkeypatch.setattr(client, "_HANDSHAKE_GRACE_S", 0.0)
    monkeypatch.setattr(threading, "excepthook", failed.append)
    before = set(threading.enumerate())
    with pytest.raises(AwayError, match=r"no answer within 0\.01 s"):
        client.connect(kind, "localhost:1", {}, timeout=0.01)
    while set(threading.enumerate()) - before:
        time.sleep(0.01)
    assert not failed
