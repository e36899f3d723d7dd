"""What is asked of the system: how far a sync goes, and what serves where something is missing."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from lpma import host


@pytest.fixture
def file(tmp_path: Path) -> int:
    return os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The syncs of this process, of a system that has both; none of them does anything."""
    called: list[str] = []
    monkeypatch.setattr(host, "_FULL_SYNC", 51)
    monkeypatch.setattr(fcntl, "fcntl", lambda *_: called.append("full"))
    monkeypatch.setattr(os, "fsync", lambda _: called.append("fsync"))
    return called


def test_a_sync_is_a_full_one_where_that_is_more(file: int, calls: list[str]) -> None:
    host.sync(file)
    assert calls == ["full"]


@pytest.mark.parametrize("number", [errno.ENOTSUP, errno.EINVAL, errno.ENOTTY])
def test_a_file_system_without_a_full_sync_has_the_other(
    file: int, calls: list[str], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    host.sync(file)
    assert calls == ["fsync"]


def test_a_full_sync_that_fails_is_not_made_good(
    file: int, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages may be lost, and look clean to fsync."""

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "fcntl", fail)
    with pytest.raises(OSError, match="Input/output"):
        host.sync(file)
    assert calls == []


def test_without_fdatasync_all_is_synced(
    file: int, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "_HAS_DATA_SYNC", False)
    host.sync_data(file)
    assert calls == ["full"]


def test_processors_are_counted_without_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert host.processors() == 3


def test_threads_that_the_system_does_not_tell_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(path: str) -> list[str]:
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "listdir", missing)
    assert host.threads_of_process() == [0]
