"""`small`: what it measures is there, and what a store ends with is compared with the stream."""

from __future__ import annotations

import pytest

from benchmarks.report import Setting
from benchmarks.stopwatch import WrongAnswer
from benchmarks.stores.base import Lpma
from benchmarks.stores.small import small

OURS = Setting(quick=True, only=frozenset({"lpma"}))


@pytest.mark.integration
def test_streams_and_single_operations() -> None:
    streams, singles = small(OURS)
    assert [(row["what"], row["batch"]) for row in streams.rows] == [
        (what, size) for size in (10, 100, 1000) for what in ("insert", "window", "delete")
    ]
    assert [row["what"] for row in singles.rows] == [
        "has_edge", "edge", "degree", "neighbors", "insert"
    ]  # fmt: skip
    for row in streams.rows + singles.rows:
        assert row["lpma"] > 0
        assert row["networkit"] is None


def test_a_store_that_loses_edges_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    keeps = Lpma.insert
    monkeypatch.setattr(
        Lpma, "insert", lambda self, batch: keeps(self, (batch[0][1:], batch[1][1:]))
    )
    with pytest.raises(WrongAnswer):
        small(OURS)
