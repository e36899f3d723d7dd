"""A source of some partitions speaks of these alone, and may leave some unread for a while."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ingest
import lpma
from ingest import OffsetError, Partition, Pipeline, SourceError, SqliteLog
from ingest.sources.chosen import Chosen

WIDE = [Partition("wide", number) for number in range(4)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log with the numbers 0 … 19 in four partitions in turn."""
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("wide", 4)
        for number in range(20):
            log.produce("wide", b"%d" % number, number % 4)
        log.produce("queries", b"q")
    return tmp_path / "log"


def values(log: SqliteLog, most: int = 500) -> list[Any]:
    return [record.value for record in log.poll(most)]


def test_only_these_are_read(path: Path) -> None:
    with SqliteLog(path, ("wide",), partitions={"wide": [1, 3]}) as log:
        own = {WIDE[1], WIDE[3]}
        for found in (log.positions(), log.end_offsets(), log.first_offsets(), log.known_ends()):
            assert found.keys() == own
        assert not log.at_end()
        assert values(log) == [b"%d" % n for n in range(20) if n % 4 in (1, 3)]
        assert log.at_end()
        with SqliteLog(path) as writer:
            writer.produce("wide", b"another's", 0)
            assert log.at_end()
            assert log.poll() == []
            writer.produce("wide", b"ours", 3)
        assert values(log) == [b"ours"]
        log.seek({WIDE[1]: 4})
        assert values(log) == [b"17"]
        with pytest.raises(OffsetError, match="not a partition of wide that is read here"):
            log.seek({WIDE[0]: 0})


def test_a_topic_that_is_not_named_is_read_whole(path: Path) -> None:
    with SqliteLog(path, ("wide", "queries"), partitions={"wide": [0]}) as log:
        assert log.positions().keys() == {WIDE[0], Partition("queries", 0)}
        assert log.identity().topics.keys() == {"wide", "queries"}
    with SqliteLog(path, ("wide", "queries"), partitions={"wide": []}) as log:
        assert log.identity().topics.keys() == {"queries"}
        assert values(log) == [b"q"]


def test_what_is_not_there_is_refused(path: Path) -> None:
    with pytest.raises(SourceError, match=r"'wide' has no partition 4, only 4 of them"):
        SqliteLog(path, ("wide",), partitions={"wide": [0, 4]})
    with pytest.raises(SourceError, match="topic 'others' were chosen, but the topics read are w"):
        SqliteLog(path, ("wide",), partitions={"others": [0]})
    for number in (-1, True, "0", 1.0):
        with pytest.raises(SourceError, match="is not a partition of topic 'wide'"):
            Chosen(("wide",), {"wide": [number]})  # type: ignore[list-item]


def test_some_are_left_unread_for_a_while(path: Path) -> None:
    with SqliteLog(path, ("wide",), partitions={"wide": [1, 2, 3]}) as log:
        assert values(log, 3) == [b"1", b"2", b"3"]
        log.read_only([WIDE[2]])
        assert values(log) == [b"6", b"10", b"14", b"18"]
        assert log.poll(500, 0.02) == []
        assert log.queries_ahead(10) == []
        assert not log.at_end()
        assert log.positions() == {WIDE[1]: 1, WIDE[2]: 5, WIDE[3]: 1}
        assert log.end_offsets() == dict.fromkeys(WIDE[1:], 5)
        log.read_only([])
        assert log.poll() == []
        log.read_only(None)
        assert values(log, 2) == [b"5", b"7"]
        with pytest.raises(SourceError, match="wide/0 is not read here"):
            log.read_only([WIDE[0]])


def test_queries_ahead_keep_to_them(tmp_path: Path) -> None:
    """Of the partitions that are read for the time being."""
    query = ingest.encode_query("q", lpma.Kind.DEGREE, 1)
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("queries", 2)
        log.produce("updates", bytes(2 << 20))
        for number in range(2):
            log.produce("queries", query, number)
    with SqliteLog(tmp_path / "log") as log:
        log.read_only([Partition("updates", 0), Partition("queries", 1)])
        assert [r.partition for r in log.queries_ahead(9)] == [Partition("queries", 1)]
        log.read_only(None)
        assert [r.partition for r in log.queries_ahead(9)] == [Partition("queries", 0)]


def test_a_pipeline_over_a_share(tmp_path: Path) -> None:
    """Its lag is of its share; with another share it does not go on."""
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates", 4)
        for number in range(4):
            log.produce("updates", ingest.encode_row(number, 9), number)
    with SqliteLog(tmp_path / "log", partitions={"updates": [1, 3]}) as log:
        pipeline = Pipeline(log, lpma.Graph(device="cpu"), tmp_path / "c")
        assert sum(pipeline.stats.lag().values()) == 2
        pipeline.run("end")
        assert pipeline.graph.num_edges == 2
        assert sum(pipeline.stats.lag().values()) == 0
        pipeline.close()
    other = SqliteLog(tmp_path / "log", partitions={"updates": [1]})
    with other, pytest.raises(OffsetError, match=r"'updates', number=3.*that is read here"):
        Pipeline.resume(tmp_path / "c", other)
