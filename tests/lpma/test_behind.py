"""Compiled functions that a thread has ready (lpma/cpu/ready.py)."""

from __future__ import annotations

import threading

import pytest

from lpma.cpu.ready import Behind

MODULE = "lpma.cpu.driver_calls"


def test_one_thread_reads_them_however_often_they_are_asked_for() -> None:
    go, readers = threading.Event(), []

    def take() -> None:
        readers.append(threading.current_thread())
        assert go.wait(60)

    behind = Behind([MODULE], take)
    assert [behind.is_ready(), behind.is_ready()] == [False, False]
    go.set()
    behind.get_ready()
    assert behind.is_ready()
    assert len(readers) == 1
    assert readers[0] is not threading.current_thread()


def test_the_first_who_asks_waits_where_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LPMA_COMPILE", "ahead")
    readers: list[threading.Thread] = []
    behind = Behind([MODULE], lambda: readers.append(threading.current_thread()))
    assert behind.is_ready()
    assert readers == [threading.current_thread()]


def test_a_forked_child_has_no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    behind = Behind([MODULE], lambda: None)
    behind._reader = threading.Thread()  # of the parent: it never runs here
    behind.forget_thread()
    behind.get_ready()
    assert behind.is_ready()
