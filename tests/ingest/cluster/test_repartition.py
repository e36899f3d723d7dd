"""Repartitioning: what it reads, and what it refuses."""

from __future__ import annotations

import contextlib
import json
import secrets
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
from ingest import Repartition, SourceError, SqliteLog
from ingest.cluster import repartition as module
from ingest.cluster import repartition_source as source_module
from ingest.cluster import repartition_state as state_module
from ingest.formats.markers import encode_marker, marker_of
from lpma import Kind
from tests.conftest import soak
from tests.ingest.cluster.repartitioning import P, fresh, one_of, polled_of, sharded, without_times
from tests.ingest.formats.test_row_reader import WIDE, objects, others, packed
from tests.ingest.test_rows import plain
from tests.support.shards import content
from tests.support.waiting import wait_for

# -- what is read ---------------------------------------------------------------------------------


def test_what_is_no_update_is_counted_and_told(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        twice = ingest.encode_row(1, 2, producer="shop", seq=5)
        records = [twice, b"\xff", twice, encode_marker(3), ingest.encode_row(2, 3)]
        records += [ingest.encode_query("q1", Kind.DEGREE, 1), ingest.encode_row(3, 4, names=True)]
        records += [ingest.encode_row("ann", "bob", names=True)]
        records += [ingest.encode_row(1, kind=Kind.REMOVE_VERTEX)]
        log.produce_many("updates", records)
        letters: list[ingest.DeadLetter] = []
        with one_of(tmp_path, log, shards=1, dead_letters=letters.append) as task:
            done = task.run()
        assert done == ingest.cluster.repartition.Repartitioned(
            records=9, operations=4, repeats=1, queries=1, markers=1, rejected=2
        )
        assert [letter.offset for letter in letters] == [1, 7]
        assert letters[1].reason.startswith("src: ")
        assert polled_of(log.path, ["dead-letters"]) == []


def written(path: Path, values: list[bytes], apart: bool, chunk: int, **options: Any) -> Any:
    """What a stream of these records leaves. apart: each is read by itself."""
    letters: list[ingest.DeadLetter] = []
    with pytest.MonkeyPatch.context() as patch, SqliteLog(path / "log") as log:
        patch.setattr(module, "CHUNK_BYTES", chunk)
        patch.setattr(module, "now_ms", lambda: 7)
        patch.setattr(secrets, "token_hex", lambda size: "0" * size)
        if apart:
            patch.setattr(source_module, "in_runs", iter)
            patch.setattr(SqliteLog, "poll_many", SqliteLog.poll)
        log.create_topic("updates")
        for start in range(0, len(values), 17):
            log.produce_many("updates", values[start : start + 17])
        with one_of(path, log, dead_letters=letters.append, **options) as task:
            done = task.run()
        found = [(one.partition, one.value) for one in polled_of(path / "log", ["split"])]
        progress = json.loads((path / "progress" / state_module.FILE).read_bytes())
        kept = {name: progress[name] for name in ("positions", "seen", "counts", "seq", "marks")}
        kept["marks"] = [mark[:3] for mark in kept["marks"]]  # the others go by the time of writing
        return done, letters, found, kept


@pytest.mark.soak
@pytest.mark.parametrize("names", [False, True])
@given(data=st.data(), chunk=st.sampled_from([1, 300, 10**6]), directed=st.booleans())
@settings(max_examples=soak(20, 1000), deadline=None)
def test_reading_rows_together_changes_nothing(
    names: bool, data: st.DataObject, chunk: int, directed: bool
) -> None:
    """Byte for byte, whatever lies among the rows."""
    good = plain(names)
    one = st.one_of(good, good, good, objects(WIDE), packed(), others)
    values = data.draw(st.lists(one, max_size=40))
    options = {"names": names, "records": WIDE, "directed": directed}
    with tempfile.TemporaryDirectory() as name:
        found = []
        for apart in (False, True):
            path = Path(name) / str(apart)
            path.mkdir()
            found.append(written(path, values, apart, chunk, **options))
        assert repr(found[0]) == repr(found[1])


def test_dead_letters_go_to_the_topic_of_that_name(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", [b"\xff", ingest.encode_row(1, 2)])
        with one_of(tmp_path, log) as task:
            task.run()
        (letter,) = polled_of(log.path, ["dead-letters"])
    found = ingest.decode_dead_letter(letter.value)  # type: ignore[arg-type]
    assert (found.topic, found.partition, found.offset, found.value) == ("updates", 0, 0, b"\xff")


@pytest.mark.parametrize("directed", [True, False])
def test_a_file_of_names_is_split(
    tmp_path: Path, directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK_BYTES", 1)
    rng = np.random.default_rng(3)
    names = ["ann", "bob", "5", "-7", "żółć", "18446744073709551615", *map(str, range(20))]
    picked = rng.choice(names, (500, 2)).tolist()
    lines = [f"{u},{v},{rng.integers(1, 9) / 2}" for u, v in picked]
    path = tmp_path / "own.csv"
    path.write_text("from,to,weight\n" + "\n".join(lines) + "\nonly one\n")

    def source() -> Any:
        return ingest.FileSource(path, names=True, chunk=64)

    expected = fresh(names=True, directed=directed)
    for columns in ingest.read_edges(path, names=True):
        expected.insert(columns.src, columns.dst, columns.weight)
    with SqliteLog(tmp_path / "log") as log:
        with pytest.raises(ingest.PipelineError, match="names=True here as well"):
            Repartition(ingest.FileSource(path), log, "split", tmp_path / "progress", partitions=P)
        options: dict[str, Any] = {"partitions": P, "names": True, "directed": directed}
        for _ in range(3):  # a step each time, as after a crash
            with Repartition(source(), log, "split", tmp_path / "progress", **options) as task:
                task.step()
        with Repartition(source(), log, "split", tmp_path / "progress", **options) as task:
            done = task.run()
        found = without_times(sharded(log.path, names=True))
    assert (done.operations, done.rejected) == (500, 1)
    assert found == without_times(content(expected))


def test_json_is_read(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", [b'{"user": 1, "item": 2}', b'{"user": 2, "item": 3}'])
        fields = ingest.Fields("user", "item")
        with one_of(tmp_path, log, records=fields) as task:
            assert task.run().operations == 2
        with one_of(tmp_path, log, records=fields) as task:
            assert task.resumed
        assert sharded(log.path)[0].keys() == {(1, 2), (2, 3)}


def test_it_follows_until_it_is_stopped(tmp_path: Path) -> None:
    stop = threading.Event()
    with SqliteLog(tmp_path / "log") as log:
        log.produce("updates", ingest.encode_row(1, 2))
        with one_of(tmp_path, log, epoch_interval_s=0.01) as task:
            thread = threading.Thread(target=task.run, kwargs={"follow": True, "stop": stop})
            thread.start()
            for target in range(3, 6):
                log.produce("updates", ingest.encode_row(1, target))
                wait_for(lambda: task.done.operations == target - 1, "an update")  # noqa: B023
            stop.set()
            thread.join()
            assert task.done.operations == 4
        ends = polled_of(log.path, ["split"])[-P:]
        assert {marker_of(one.value) for one in ends} == {task.done.epoch}


# -- what is refused ------------------------------------------------------------------------------


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[SqliteLog]:
    """A log whose updates were repartitioned, with more to come."""
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", [ingest.encode_row(u, u + 1) for u in range(10)])
        with one_of(tmp_path, log) as task:
            task.run()
        log.produce("updates", ingest.encode_row(1, 7))
        yield log


@pytest.mark.parametrize(
    "options", [{"directed": False}, {"names": True}, {"shards": 1}, {"predecessors": True}]
)
def test_it_goes_on_with_the_same_settings_alone(
    begun: SqliteLog, tmp_path: Path, options: dict[str, Any]
) -> None:
    (name,) = options
    with pytest.raises(ingest.CheckpointError, match=name):
        one_of(tmp_path, begun, **options)
    with one_of(tmp_path, begun) as task:
        assert task.run().operations == 11


def test_a_topic_that_was_made_again_is_another(begun: SqliteLog, tmp_path: Path) -> None:
    begun.delete_topic("split")
    begun.create_topic("split", P)
    with pytest.raises(ingest.errors.IdentityError, match="created again"):
        one_of(tmp_path, begun)


def test_a_source_that_was_rewritten_is_another(begun: SqliteLog, tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(begun.path)) as database, database:
        database.execute("UPDATE records SET value = x'01' WHERE offset = 9")
    with pytest.raises(ingest.errors.RewrittenError):
        one_of(tmp_path, begun)


def test_two_do_not_write_at_once(begun: SqliteLog, tmp_path: Path) -> None:
    with one_of(tmp_path, begun), pytest.raises(ingest.LockedError):
        one_of(tmp_path, begun)


def test_a_damaged_file_is_refused(begun: SqliteLog, tmp_path: Path) -> None:
    path = tmp_path / "progress" / state_module.FILE
    good = path.read_bytes()
    for bad in (good[:-5], b"{}", json.dumps({**json.loads(good), "format": 9}).encode()):
        path.write_bytes(bad)
        with pytest.raises(ingest.CheckpointError, match="cannot be read"):
            one_of(tmp_path, begun)


def test_nothing_is_written_twice_with_another_directory(begun: SqliteLog, tmp_path: Path) -> None:
    source = SqliteLog(begun.path, topics=["updates"])
    with pytest.raises(SourceError, match="has records already"):
        Repartition(source, begun, "split", tmp_path / "other", partitions=P, queries="asked")
    with pytest.raises(SourceError, match="what is read"):
        Repartition(source, begun, "updates", tmp_path / "more", partitions=1, queries="queries")
    begun.create_topic("one")
    with pytest.raises(ingest.PipelineError, match="has 1; say how many"):
        Repartition(source, begun, "one", tmp_path / "third")
    with pytest.raises(ingest.PipelineError, match="epoch_interval_s"):
        Repartition(source, begun, "other", tmp_path / "progress", epoch_interval_s=0)
    with ingest.Pipeline(SqliteLog(begun.path), fresh(), tmp_path / "pipeline") as pipeline:
        pipeline.run(until="end")
    with pytest.raises(ingest.CheckpointError, match="pipeline's checkpoints"):
        Repartition(source, begun, "split", tmp_path / "pipeline", partitions=P)
