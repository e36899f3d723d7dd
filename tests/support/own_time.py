"""A time of its own for Kafka's sources and sinks beside a fault broker.

Idea: it stands still but where they sleep, or poll in vain, or the test says that it passes. So
patience ends in tenths of a second, and how busy the machine is is not seen. kafka-python goes by
the machine's clock: while the broker is away, what it waits for in vain is cut short, and else it
may take any time.

    own_time.stop()                             the broker is away from now on
    own_time.stop(at_most_s=50)                 and no longer, however long the test takes to go on
    own_time.after(5.5, own_time.start)         and back when 5.5 s have passed
    own_time.passes(3.0)                        3 s pass at once
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from ingest.sources.kafka import client, clock, reader, sink, source
from ingest.sources.kafka.reader import Reader
from tests.support.fault_broker import Fault, FaultBroker, Send
from tests.support.faults import stall

IN_VAIN_S = 0.02  # what kafka-python waits for a broker that is away
ANSWERED_S = 60.0  # and for one that is there: only ends a hang
_POLL_IN_VAIN_S = 0.001
START_S = 1000.0
MOST_S = 3600.0  # that may pass

_TIME_OUTS_S: tuple[tuple[ModuleType, str], ...] = (
    (client, "METADATA_TIMEOUT_S"),
    (client, "_KNOCK_TIMEOUT_S"),
    (reader, "_ASK_TIMEOUT_S"),
    (sink, "CONNECT_TIMEOUT_S"),
    (sink, "_CLOSE_TIMEOUT_S"),
    (sink, "_SILENCE_S"),
    (source, "_CONNECT_TIMEOUT_S"),
    (source, "RECONNECT_TIMEOUT_S"),
)
_ASKED_OF_A_SILENT_BROKER = ("ApiVersions", "Fetch", "ListOffsets", "Metadata", "Produce")


class OwnTime:
    """The time of all sources and sinks in this process, until `monkeypatch` is undone. May be used
    from any thread."""

    def __init__(self, broker: FaultBroker, monkeypatch: pytest.MonkeyPatch) -> None:
        self._broker = broker
        self._monkeypatch = monkeypatch
        self._lock = threading.Lock()
        self._now = START_S
        self._most = START_S + MOST_S
        self._due: list[tuple[float, Callable[[], object]]] = []
        self._in_vain = False
        self._faults: list[Fault] = []
        self._end_of_silence = threading.Event()
        self._mute = False
        self._set_time_outs(ANSWERED_S)
        poll, close = Reader.poll, Reader.close

        def polling(
            reader: Reader, max_records: int, timeout: float, together: bool = False
        ) -> Any:
            some = min(timeout, _POLL_IN_VAIN_S) if self._in_vain else timeout
            polled = poll(reader, max_records, some, together)
            if not polled:
                self.passes(timeout)
            return polled

        def closing(reader: Reader) -> None:
            close(reader)
            if self._mute:
                self._mute = False
                self._wait_in_vain(False)

        monkeypatch.setattr(Reader, "poll", polling)
        monkeypatch.setattr(Reader, "close", closing)
        monkeypatch.setattr(clock, "now", self.now)
        monkeypatch.setattr(clock, "sleep", self.passes)

    def _wait_in_vain(self, in_vain: bool) -> None:
        """Whether whatever is asked of the broker now will have no answer."""
        self._in_vain = in_vain
        self._set_time_outs(IN_VAIN_S if in_vain else ANSWERED_S)

    def _set_time_outs(self, seconds: float) -> None:
        for module, name in _TIME_OUTS_S:
            self._monkeypatch.setattr(module, name, seconds)

    def now(self) -> float:
        return self._now

    def passes(self, seconds: float) -> None:
        """So many seconds pass, and what is due then is done. Raises AssertionError where an hour
        has passed: nothing waits so long."""
        with self._lock:
            stands_still = self._now + seconds > self._most < START_S + MOST_S
            self._now = min(self._now + seconds, self._most)
            assert self._now < START_S + MOST_S, "whoever waits here would wait for ever"
            due = [act for when, act in self._due if when <= self._now]
            self._due = [(when, act) for when, act in self._due if when > self._now]
        for act in due:
            act()
        if stands_still:
            time.sleep(_POLL_IN_VAIN_S)

    def after(self, seconds: float, act: Callable[[], object]) -> None:
        """Call `act` once, when so many seconds have passed, by whoever waits for that."""
        self._due.append((self._now + seconds, act))

    def stop(self, how: str = "stopped", at_most_s: float = MOST_S) -> None:
        """Nobody listens any more; or, "silent", nobody answers. Until the broker is back, time
        stands still when `at_most_s` have passed."""
        self._most = min(self._now + at_most_s, START_S + MOST_S)
        self._wait_in_vain(True)
        if how == "stopped":
            self._broker.stop()
        else:
            self._end_of_silence = threading.Event()
            until = stall(self._end_of_silence)
            asked = _ASKED_OF_A_SILENT_BROKER
            self._faults = [self._broker.order(api, send=until, times=None) for api in asked]

    def start(self) -> None:
        """The broker is back, after either; nothing where it is there."""
        if not self._in_vain:
            return
        self._most = START_S + MOST_S
        faults, self._faults = self._faults, []
        if not faults:
            self._broker.start()
        for fault in faults:
            self._broker.lift(fault)
        self._end_of_silence.set()
        self._wait_in_vain(False)

    def mute(self, send: Send) -> Send:
        """The same, after which the broker's reader waits in vain until it is given up."""

        def sending(connection: socket.socket, answer: bytes) -> None:
            self._mute = True
            self._wait_in_vain(True)
            send(connection, answer)

        return sending
