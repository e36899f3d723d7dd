"""The writer: what waits shares a sync, nothing is acknowledged before it, all is bounded."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

import pytest

from ingest import Partition, RecordError, SourceError
from ingest.service import writer as writer_module
from ingest.service.writer import QueueFull, UpdateWriter, Written
from tests.support.shards import MemorySink
from tests.support.waiting import HANGS_S

PLACE = Partition("updates", 0)


class HeldLog(MemorySink):
    """A log whose appends wait to be let go, one by one."""

    def __init__(self) -> None:
        super().__init__(updates=1)
        self.groups: list[list[bytes]] = []
        self.failures: list[Exception] = []
        self.entered = threading.Semaphore(0)
        self.let_go = threading.Semaphore(0)
        self.count = 0
        self.opened = self.closed = 0

    def open(self) -> HeldLog:
        self.opened += 1
        return self

    def append(self, partition: Partition, values: Sequence[bytes]) -> Sequence[int]:
        assert partition == PLACE
        self.groups.append(list(values))
        self.entered.release()
        assert self.let_go.acquire(timeout=HANGS_S)
        if self.failures:
            raise self.failures.pop(0)
        self.count += len(values)
        return range(self.count - len(values), self.count)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def log() -> HeldLog:
    return HeldLog()


@pytest.fixture
def writer(log: HeldLog) -> Iterator[UpdateWriter]:
    with UpdateWriter(log.open, PLACE, 100) as writer:
        yield writer
        for _ in range(100):
            log.let_go.release()


def begun(log: HeldLog, writer: UpdateWriter, value: bytes = b"first") -> Future[Written]:
    """A request that is being written, so that others wait."""
    future = writer.append([value])
    assert log.entered.acquire(timeout=HANGS_S)
    return future


def test_what_waits_is_written_at_once_and_told_when_it_is(
    log: HeldLog, writer: UpdateWriter
) -> None:
    first = begun(log, writer)
    others = [writer.append([b"%d" % i, b"and"]) for i in range(5)]
    assert not first.done()
    log.let_go.release()
    assert first.result(HANGS_S) == Written(0, 0)
    assert log.entered.acquire(timeout=HANGS_S)
    assert not any(other.done() for other in others), "invariant 1"
    log.let_go.release()
    assert [other.result(HANGS_S) for other in others] == [(i, i + 1) for i in range(1, 11, 2)]
    assert [len(group) for group in log.groups] == [1, 10]


def test_what_is_cancelled_while_it_waits_is_never_written(
    log: HeldLog, writer: UpdateWriter
) -> None:
    first = begun(log, writer)
    cancelled, kept = writer.append([b"cancelled"]), writer.append([b"kept"])
    assert cancelled.cancel()
    assert not first.cancel(), "it is being written"
    log.let_go.release(2)
    assert kept.result(HANGS_S) == Written(1, 1)
    assert log.groups == [[b"first"], [b"kept"]]


def test_what_waits_is_bounded(
    log: HeldLog, writer: UpdateWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "MAX_WAITING_BYTES", 1000)
    begun(log, writer)
    waiting = [writer.append([bytes(250)]) for _ in range(4)]
    with pytest.raises(QueueFull, match="4 requests of 1,000 bytes"):
        writer.append([b"x"])
    waiting[0].cancel()
    log.let_go.release(2)
    assert waiting[3].result(HANGS_S)
    assert log.entered.acquire(timeout=HANGS_S)
    fresh = begun(log, writer)
    many = [writer.append([b"x"]) for _ in range(100)]
    with pytest.raises(QueueFull, match="100 requests"):
        writer.append([b"x"])
    log.let_go.release(2)
    assert fresh.result(HANGS_S).first == 4
    assert many[-1].result(HANGS_S).last == 104


def test_a_large_request_is_written_by_itself(log: HeldLog, writer: UpdateWriter) -> None:
    begun(log, writer)
    sizes = [10, writer_module.ALONE_BYTES, 10, 20]
    futures = [writer.append([bytes(size)]) for size in sizes]
    log.let_go.release()
    assert log.entered.acquire(timeout=HANGS_S)
    log.failures.append(RecordError("the brokers take no record so large"))
    log.let_go.release(1)
    with pytest.raises(RecordError):
        futures[0].result(HANGS_S)
    log.let_go.release(2)
    assert [future.result(HANGS_S) for future in futures[1:]] == [(1, 1), (2, 2), (3, 3)]
    assert [[len(v) for v in group] for group in log.groups[1:]] == [[10], sizes[1:2], [10, 20]]


def test_a_log_that_failed_is_opened_again(log: HeldLog, writer: UpdateWriter) -> None:
    log.failures.append(SourceError("away"))
    first = begun(log, writer)
    second = writer.append([b"second"])
    log.let_go.release(2)
    with pytest.raises(SourceError, match="away"):
        first.result(HANGS_S)
    assert second.result(HANGS_S) == Written(0, 0)
    assert (log.opened, log.closed) == (2, 1)


def test_closing_writes_what_waits(log: HeldLog) -> None:
    with UpdateWriter(log.open, PLACE, 10) as writer:
        first = begun(log, writer)
        second = writer.append([b"second"])
        log.let_go.release(2)
    assert (first.result(0), second.result(0)) == ((0, 0), (1, 1))
    assert log.closed == 1
    with pytest.raises(SourceError, match="closed"):
        writer.append([b"third"])
