"""Keeping checkpoints: whatever is killed, and wherever, a whole copy is left."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

from ingest import Pipeline, SqliteLog
from ingest.cluster import checkpoint_mirror
from ingest.cluster.checkpoint_mirror import CheckpointMirror, MirrorStatus, restore
from ingest.cluster.storage import Storage
from ingest.state.checkpoint import read_checkpoint
from ingest.state.directory import checkpoint_numbers, checkpoint_path
from ingest.state.inspection import verify_directory
from tests.ingest.cluster.keeping import OPTIONS, event_of, gone_on, resumed, unbroken, whole
from tests.support.object_store import ObjectStore, Stopped
from tests.support.waiting import wait_for


def test_the_last_two_are_kept_and_no_more(
    stream: Pipeline, place: Storage, store: ObjectStore, tmp_path: Path
) -> None:
    mirror = CheckpointMirror(place, 3, tmp_path / "state")
    for expected in ([0], [0, 1], [1, 2], [2, 3]):
        mirror.look()
        mirror.look()  # nothing new
        assert whole(store) == expected
        assert mirror.status.number == expected[-1]
        gone_on(stream, tmp_path)
    folders = {name.split("/")[3] for name in store.objects}
    assert len(folders) == 3, f"two copies and the token: {folders}"
    assert all(name.startswith("bucket/kept/shard-0003/") for name in store.objects)


def test_a_keeper_of_its_own_thread_and_the_last_one(
    stream: Pipeline, place: Storage, store: ObjectStore, tmp_path: Path
) -> None:
    with CheckpointMirror(place, 0, tmp_path / "state", interval_s=0.01) as mirror:
        mirror.start()
        wait_for(lambda: mirror.status == MirrorStatus(0, mirror.status.time), "the first copy")
        gone_on(stream, tmp_path)
    assert mirror.status.number == 1
    mirror.close()


def test_killed_anywhere_a_whole_copy_is_left(
    stream: Pipeline, place: Storage, store: ObjectStore, log: SqliteLog, tmp_path: Path
) -> None:
    expected = unbroken(log)
    for _ in range(2):
        CheckpointMirror(place, 0, tmp_path / "state").look()
        gone_on(stream, tmp_path)
    before = dict(store.objects)
    completed, call = False, 0
    while not completed:
        store.objects.clear()
        store.objects |= before
        store.stop_at(call)
        try:
            CheckpointMirror(place, 0, tmp_path / "state").look()
            completed = True
        except Stopped:
            pass
        store.on_call = lambda _: None
        directory = tmp_path / f"restored-{call}"
        assert restore(place, 0, directory)
        assert checkpoint_numbers(directory) in ([1], [2])
        assert not [p for p in verify_directory(directory).problems if "journal" not in p]
        if call % 4 == 0 or completed:
            assert resumed(log, directory, True) == expected
        mirror = CheckpointMirror(place, 0, tmp_path / "state")
        mirror.look()
        assert whole(store) == [1, 2], "the next mirror cleans up"
        assert len({name.split("/")[3] for name in store.objects}) == 3
        call += 1
    assert call > 8


def test_a_failed_write_leaves_no_part(
    stream: Pipeline, place: Storage, store: ObjectStore, tmp_path: Path
) -> None:
    mirror = CheckpointMirror(place, 0, tmp_path / "state")

    def fail(name: str) -> None:
        if name == "write":
            raise OSError("no more room")

    store.on_call = fail
    mirror.look()
    assert "no more room" in (mirror.status.problem or "")
    assert list(store.objects) == ["bucket/kept/shard-0000/keeper"]

    def fail_late(name: str) -> None:
        if name == "close" and len(store.objects) == 2:
            raise OSError("no more room")  # for the manifest

    store.on_call = fail_late
    mirror.look()
    assert list(store.objects) == ["bucket/kept/shard-0000/keeper"]


def test_a_place_that_fails_is_told_of_and_tried_again(
    stream: Pipeline, place: Storage, store: ObjectStore, tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    mirror = CheckpointMirror(place, 0, tmp_path / "state")
    failing = [True]

    def fail(name: str) -> None:
        if failing[0]:
            raise OSError("the bucket is away")

    store.on_call = fail
    with caplog.at_level(logging.WARNING, "lpma.ingest"):
        mirror.look()
        mirror.look()
    assert [event_of(record) for record in caplog.records] == ["not kept"]
    assert mirror.status.number is None
    assert "the bucket is away" in (mirror.status.problem or "")
    failing[0] = False
    mirror.look()
    assert mirror.status == MirrorStatus(0, mirror.status.time)
    assert stream.stats.operations == 0


def test_removed_while_it_is_copied(
    stream: Pipeline, place: Storage, store: ObjectStore, log: SqliteLog, tmp_path: Path
) -> None:
    directory = gone_on(stream, tmp_path)
    mirror = CheckpointMirror(place, 0, directory)

    def remove(name: str) -> None:
        if name == "write":
            shutil.rmtree(checkpoint_path(directory, 1), ignore_errors=True)

    store.on_call = remove
    mirror.look()
    assert whole(store) == [1]
    assert restore(place, 0, tmp_path / "other")
    assert resumed(log, tmp_path / "other", True) == unbroken(log)


def test_gone_before_it_is_opened(
    stream: Pipeline, place: Storage, store: ObjectStore, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The pipeline takes two more just then: nothing is wrong, and the next look has the newest."""
    directory = gone_on(stream, tmp_path)
    mirror = CheckpointMirror(place, 0, directory)
    read = read_checkpoint

    def too_late(path: Path, number: int) -> Any:
        if number == 1:
            gone_on(stream, tmp_path)
            gone_on(stream, tmp_path)
            assert not path.exists()
        return read(path, number)

    monkeypatch.setattr(checkpoint_mirror, "read_checkpoint", too_late)
    mirror.look()
    assert mirror.status == MirrorStatus()
    mirror.look()
    assert whole(store) == [3]


def test_what_is_damaged_here_is_not_kept(
    stream: Pipeline, place: Storage, store: ObjectStore, tmp_path: Path
) -> None:
    graph = checkpoint_path(tmp_path / "state", 0) / "graph.lpma"
    data = bytearray(graph.read_bytes())
    data[-1] ^= 1
    graph.write_bytes(data)
    mirror = CheckpointMirror(place, 0, tmp_path / "state")
    mirror.look()
    assert "damaged" in (mirror.status.problem or "")
    assert whole(store) == []


def test_an_object_that_is_shorter_there_completes_no_copy(
    stream: Pipeline, place: Storage, store: ObjectStore, tmp_path: Path
) -> None:
    def cut(name: str) -> None:
        for path in store.objects:
            if path.endswith("graph.lpma"):
                store.objects[path] = b"short"

    store.on_call = cut
    mirror = CheckpointMirror(place, 0, tmp_path / "state")
    mirror.look()
    assert "not as it was written" in (mirror.status.problem or "")
    assert whole(store) == []


def test_one_keeper_at_a_time(
    stream: Pipeline, place: Storage, store: ObjectStore, tmp_path: Path
) -> None:
    first = CheckpointMirror(place, 0, tmp_path / "state")
    first.look()
    CheckpointMirror(place, 0, tmp_path / "elsewhere")
    gone_on(stream, tmp_path)
    before = whole(store)
    first.look()
    assert "another mirror" in (first.status.problem or "")
    assert whole(store) == before == [0]


def test_a_history_that_was_given_up_is_removed(
    stream: Pipeline, place: Storage, store: ObjectStore, log: SqliteLog, tmp_path: Path
) -> None:
    CheckpointMirror(place, 0, tmp_path / "state").look()
    shutil.copytree(tmp_path / "state", tmp_path / "copy")  # of long ago
    for _ in range(3):
        CheckpointMirror(place, 0, gone_on(stream, tmp_path)).look()
    assert whole(store) == [2, 3]
    (tmp_path / "copy" / "fence").unlink()
    with SqliteLog(log.path) as again:
        with Pipeline.resume(tmp_path / "copy", again, accept_journal_loss=True, **OPTIONS) as old:
            old.step()
        CheckpointMirror(place, 0, tmp_path / "copy").look()
    newest = checkpoint_numbers(tmp_path / "copy")[-1]
    assert whole(store)[-1] == newest
