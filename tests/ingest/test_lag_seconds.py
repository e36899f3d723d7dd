"""How old the state of a graph is: how long the first record that is not applied has waited."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ingest
import lpma
from ingest.pipeline.written import WrittenTimes
from ingest.sources.base import Source
from ingest.types import Partition, Polled, Position, Values

UPDATES = Partition("updates", 0)
START = 1_700_000_000_000


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ingest.SqliteLog]:
    with ingest.SqliteLog(tmp_path / "stream.log") as log:
        log.create_topic("updates")
        yield log


def written(
    log: ingest.SqliteLog, monkeypatch: pytest.MonkeyPatch, *at_s: int, rows: int = 1
) -> None:
    """Write a record of so many rows at each of these seconds."""
    for second in at_s:
        at = (START + 1000 * second) * 1_000_000
        monkeypatch.setattr("ingest.sources.sqlite.log.time.time_ns", lambda at=at: at)
        log.produce("updates", ingest.encode_updates([second] * rows, range(rows)))


def test_it_is_how_long_the_first_record_has_waited(
    log: ingest.SqliteLog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    now = [START]
    settings: Any = {"clock": lambda: now[0], "batch_size": 2, "poll_records": 1}
    graph = lpma.Graph(device="cpu")
    with ingest.Pipeline(log, graph, tmp_path / "c", **settings) as stream:
        assert stream.stats.lag_seconds()[UPDATES] == 0.0, "nothing waits"
        written(log, monkeypatch, 10, 20, 30, 40)
        now[0] = START + 90_000
        assert stream.stats.lag_seconds()[UPDATES] == 90.0, "the state is that of the start"
        stream.step()
        assert stream.stats.lag_seconds()[UPDATES] == 70.0, "since the second record of four"
        stream.step()
        assert stream.stats.lag_seconds()[UPDATES] == 0.0
        written(log, monkeypatch, 85, rows=3)
        assert stream.stats.lag_seconds()[UPDATES] == 50.0, "it was not read yet"
        stream.step()
        assert stream.stats.lag_seconds()[UPDATES] == 5.0, "two of its rows are applied"
    now[0] = START + 200_000
    written(log, monkeypatch, 100)
    with ingest.Pipeline.resume(tmp_path / "c", log, **settings) as stream:
        assert stream.stats.lag_seconds()[UPDATES] == 115.0, "its third row waits again"
        stream.run("end")
        assert stream.stats.lag_seconds()[UPDATES] == 0.0


def test_a_file_has_none(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("1 2\n2 3\n")
    source: Source = ingest.FileSource(tmp_path / "e.txt")
    with ingest.Pipeline(source, lpma.Graph(device="cpu")) as stream:
        stream.run("end")
        assert stream.stats.lag_seconds() == {}


@given(
    runs=st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=8),
    cuts=st.lists(st.integers(0, 40), max_size=12), knows=st.booleans(),
)  # fmt: skip
def test_times_follow_the_positions(
    runs: list[tuple[int, bool]], cuts: list[int], knows: bool
) -> None:
    """The oracle has the time of every record, 100 ms apart, or that of the last one of a run."""
    times, offset = WrittenTimes(), 0
    known: dict[int, int] = {}  # by how many records are before, when the last of them was written
    waits: list[int] = []  # since when each record would wait, if it were the first
    for count, has_times in runs:
        of_each = np.arange(offset, offset + count) * 100 + 100
        values = Values.of([b"x"] * count)
        values.times = of_each if has_times else None
        last = int(of_each[-1]) if knows else 0
        times.buffer(Polled(UPDATES, offset, values, last))
        waits += of_each.tolist() if has_times else [last] * count
        if knows:
            known |= {
                offset + at + 1: int(of_each[at]) for at in range(count)
                if has_times or at == count - 1
            }  # fmt: skip
        offset += count
    for cut in sorted(min(cut, offset) for cut in cuts):
        times.apply({UPDATES: Position(cut)})
        expected = max((time for end, time in known.items() if end <= cut), default=None)
        assert times.applied.get(UPDATES) == expected
        assert times.waiting.get(UPDATES) == (waits[cut] if knows and cut < offset else None)
