"""While a service runs, Python's looks for garbage leave out what was there before."""

from __future__ import annotations

import gc
import weakref

import pytest

import lpma

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from ingest.cli._serve_options import serving
from ingest.process import short_pauses
from ingest.service.context import Context
from ingest.service.security import Access
from ingest.service.stored import StoredGraph


class Loop:
    """Garbage that only a look finds."""

    def __init__(self) -> None:
        self.itself = self


def test_what_was_there_is_set_aside_until_the_end() -> None:
    before = len(gc.get_objects())
    with short_pauses():
        assert gc.get_freeze_count() > before / 2
        assert len(gc.get_objects()) < before / 10
    assert gc.get_freeze_count() == 0


def test_garbage_is_not_set_aside() -> None:
    gone = weakref.ref(Loop())
    with short_pauses():
        assert gone() is None


def test_what_comes_later_is_looked_at() -> None:
    with short_pauses():
        gone = weakref.ref(Loop())
        gc.collect()
        assert gone() is None


def test_an_error_ends_it() -> None:
    with pytest.raises(ZeroDivisionError), short_pauses():
        _ = 1 / 0
    assert gc.get_freeze_count() == 0


def test_the_command_line_serves_so() -> None:
    graph = lpma.Graph()
    with StoredGraph(graph) as stored, serving(Context(stored.requests, graph), "0", Access()):
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0
