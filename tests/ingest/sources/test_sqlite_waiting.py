"""Waiting for records: woken by whoever writes, and right where nobody wakes."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from ingest import SqliteLog
from ingest.sources.sqlite import log as waiting
from ingest.sources.sqlite.log import Watch
from tests.support.waiting import wait_for

LONG_S = 600.0
linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


@linux
def test_a_wait_ends_when_the_file_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if that was before it began; but not twice for one touch."""
    monkeypatch.setattr(waiting, "LOOK_S", LONG_S)
    (tmp_path / "log").touch()
    watch = Watch(str(tmp_path / "log"))
    os.utime(tmp_path / "log")
    started = time.monotonic()
    watch.wait(LONG_S)
    watch.wait(0.02)
    assert 0.02 <= time.monotonic() - started < LONG_S / 2
    threading.Timer(0.02, os.utime, [tmp_path / "log"]).start()
    watch.wait(LONG_S)
    assert time.monotonic() - started < LONG_S / 2


@linux
def test_a_reader_rests_between_wakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often others write; the first wake is at once."""
    rests: list[float] = []
    monkeypatch.setattr(waiting, "REST_S", LONG_S)
    monkeypatch.setattr(time, "sleep", rests.append)
    (tmp_path / "log").touch()
    watch = Watch(str(tmp_path / "log"))
    watch._woken = -LONG_S
    for _ in range(3):
        os.utime(tmp_path / "log")
        watch.wait(LONG_S)
    assert rests == [LONG_S] * 2


@linux
def test_whoever_writes_wakes_a_poll(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LOOK_S", LONG_S)
    with SqliteLog(path) as log, SqliteLog(path) as writer:
        writer.create_topic("updates")
        started = time.monotonic()
        threading.Timer(0.05, writer.produce, ["updates", b"x"]).start()
        assert [record.value for record in log.poll(timeout=LONG_S)] == [b"x"]
        assert time.monotonic() - started < LONG_S / 2


@pytest.mark.parametrize("inotify", [False, True])
def test_a_record_that_nobody_announces_is_found(
    path: Path, monkeypatch: pytest.MonkeyPatch, inotify: bool
) -> None:
    """Its writer died, or the kernel does not tell."""
    if not inotify:
        monkeypatch.setattr(waiting, "open_watch", lambda path: None)
    with SqliteLog(path) as log, SqliteLog(path) as writer:
        writer.create_topic("updates")
        monkeypatch.setattr(os, "utime", lambda path: None)
        threading.Timer(0.05, writer.produce, ["updates", b"x"]).start()
        assert [record.value for record in log.poll(timeout=LONG_S)] == [b"x"]


@linux
def test_waiting_leaves_no_descriptor(path: Path) -> None:
    gc.collect()
    before = watches()
    with SqliteLog(path) as log:
        log.create_topic("updates")
        wait_for(lambda: log.poll(timeout=0.1) == [] and watches() > before)
        assert watches() == before + 1
    gc.collect()
    assert watches() == before


def watches() -> int:
    """How many of this process's descriptors are inotify's."""
    found = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    return sum("inotify" in os.readlink(file) for file in found if file.is_symlink())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stream.log"
