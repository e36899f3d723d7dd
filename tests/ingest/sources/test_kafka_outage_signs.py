"""What makes an outage: which errors are waited for, and signs that last."""

from __future__ import annotations

import errno
import logging
import os
from typing import Any

import pytest

from ingest import SourceError
from ingest.sources.kafka import clock
from ingest.sources.kafka.client import connect, may_pass
from ingest.sources.kafka.outage import CALM_S, SIGNS_S, Outage
from tests.support.events import Told


def test_what_is_not_the_outages_passes(told: Told) -> None:
    for name, line in (
        ("kafka.net.connection", "<conn>: Produce throttled by broker (3 ms)"),
        ("kafka.net.sasl.plain", "Sending username and password in the clear"),
        ("kafka.cluster", "Topic t is not authorized for this client"),
        ("kafka.producer.sender", "t: splitting batch and retrying"),
    ):
        logging.getLogger(name).warning(line)
    assert len(told.lines) == 4
    logging.getLogger("kafka.net.connection").error("<conn>: Connection lost: gone")
    assert len(told.lines) == 4
    logger = logging.getLogger("kafka.net.connection")
    logger.setLevel(logging.DEBUG)
    try:
        logger.error("<conn>: Connection lost: gone")
    finally:
        logger.setLevel(logging.NOTSET)
    assert len(told.lines) == 5, "who asks for all gets all"


@pytest.mark.parametrize(
    "number, passes",
    [(errno.EMFILE, True), (errno.ENFILE, True), (errno.ECONNREFUSED, True), (errno.ENOENT, False)],
)
def test_which_errors_of_the_system_are_waited_for(number: int, passes: bool) -> None:
    def fails(**_: Any) -> None:
        raise OSError(number, os.strerror(number))

    with pytest.raises(SourceError, match="no Kafka could be reached") as raised:
        connect(fails, "127.0.0.1:1", {})
    assert may_pass(raised.value) == passes


class Time:
    now = 1000.0


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(clock, "now", lambda: time.now)
    return time


def test_signs_that_last_are_an_outage_of_some_broker(time: Time, told: Told) -> None:
    """Where one broker of several stays away, those who ask are answered by the others."""
    outage = Outage("host:1")

    def go_on(seconds: float, *, signs: bool) -> None:
        until = time.now + seconds
        while time.now < until:
            time.now += 0.5
            if signs:
                logging.getLogger("kafka.net.manager").error("Connection failed: node 2")
            outage.answered()

    go_on(SIGNS_S - 1, signs=True)
    go_on(60, signs=False)
    assert told.names == [], "a connection that was soon made again"
    go_on(30, signs=True)
    assert told.names == ["outage"]
    assert told.events[0].fields["error"] == "Connection failed: node 2"
    go_on(CALM_S + 1, signs=False)
    assert told.names == ["outage", "outage over"]
    assert 29 <= told.events[1].fields["seconds"] <= 31


def test_an_outage_that_comes_and_goes_is_one(time: Time, told: Told) -> None:
    outage = Outage("host:1")
    for _ in range(10):
        outage.fails("gone", 60)
        time.now += CALM_S - 1
        outage.answered()
    time.now += CALM_S + 0.1
    outage.answered()
    assert told.names == ["outage", "outage over"]
    outage.fails("gone", 60)
    outage.end()
    assert told.names == ["outage", "outage over", "outage"], "it was not over"


def test_an_outage_is_not_over_for_one_who_still_fails(time: Time, told: Told) -> None:
    """As a transaction does whose coordinator is away, beside a source that reads on."""
    outage, writer = Outage("host:1"), object()
    outage.fails("a transaction is not ended", 60, caller=writer)
    for _ in range(100):
        time.now += 1
        outage.answered()
    assert told.names == ["outage"]
    outage.fails("a transaction is not ended", 60, caller=writer)
    time.now += 1
    outage.answered(writer)
    time.now += CALM_S
    outage.answered()
    assert told.names == ["outage", "outage over"]
    assert told.events[1].fields["seconds"] == 101
    outage.fails("gone", 60, caller=writer)
    outage.end(writer)
    time.now += CALM_S + 1
    outage.answered()
    assert told.names == ["outage", "outage over"] * 2, "it asks no more"
