"""Restoring: a shard that begins with a copy comes to the state of an unbroken run."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest import CheckpointError, Pipeline, SqliteLog
from ingest.cluster.checkpoint_mirror import CheckpointMirror, restore
from ingest.cluster.storage import Storage
from ingest.state.directory import checkpoint_numbers, checkpoint_path
from tests.ingest.cluster.keeping import event_of, gone_on, resumed, unbroken
from tests.support.object_store import ObjectStore, Stopped

RMTREE = shutil.rmtree


@pytest.mark.parametrize("local", [False, True])
def test_a_lost_disk(
    stream: Pipeline, place: Storage, log: SqliteLog, tmp_path: Path, local: bool
) -> None:
    kept = str(tmp_path / "kept") if local else place
    for _ in range(2):
        gone_on(stream, tmp_path, 2)
        CheckpointMirror(kept, 5, tmp_path / "state", "in").look()
    stream.step()  # after the checkpoint: lost with the disk, and in the log
    stream.close(checkpoint=False)
    shutil.rmtree(tmp_path / "state")
    assert restore(kept, 5, tmp_path / "state", "in")
    assert checkpoint_numbers(tmp_path / "state") == [2]
    # Killed before the resume, it is to be told again; and not once it has taken its own.
    assert restore(kept, 5, tmp_path / "state", "in")
    assert resumed(log, tmp_path / "state", True) == unbroken(log)
    assert not restore(kept, 5, tmp_path / "state", "in")
    assert resumed(log, tmp_path / "state", False) == unbroken(log)


def test_nothing_kept_is_a_beginning(place: Storage, tmp_path: Path) -> None:
    assert not restore(place, 0, tmp_path / "state")
    assert not restore(str(tmp_path / "nowhere"), 0, tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_what_is_there_is_left_alone(
    stream: Pipeline, place: Storage, log: SqliteLog, tmp_path: Path
) -> None:
    directory = gone_on(stream, tmp_path)
    CheckpointMirror(place, 0, directory).look()
    assert not restore(place, 0, directory), "its own checkpoints are newer"
    stream.step()
    stream.close(checkpoint=False)
    for number in checkpoint_numbers(directory):
        shutil.rmtree(checkpoint_path(directory, number))
    assert not restore(place, 0, directory), "a journal says what happened: see `LOST`"
    assert checkpoint_numbers(directory) == []


def flipped(data: bytes) -> bytes:
    return data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]


def damaged(store: ObjectStore, number: int, change: Callable[[bytes], bytes]) -> Iterator[str]:
    """Each object of that copy, changed in turn."""
    for name in [name for name in store.objects if f"checkpoint-{number:010d}" in name]:
        was = store.objects[name]
        store.objects[name] = change(was)
        yield name
        store.objects[name] = was


def test_a_damaged_copy_gives_way_to_the_one_before(
    stream: Pipeline, place: Storage, store: ObjectStore, log: SqliteLog, tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    mirror = CheckpointMirror(place, 0, tmp_path / "state")
    mirror.look()
    gone_on(stream, tmp_path, 3)
    mirror.look()
    for change in (flipped, lambda data: data[: len(data) // 2], lambda data: b""):
        for name in damaged(store, 1, change):
            directory = tmp_path / "restored"
            with caplog.at_level(logging.WARNING, "lpma.ingest"):
                assert restore(place, 0, directory), name
            assert checkpoint_numbers(directory) == [0]
            assert event_of(caplog.records[-1]) == "damaged checkpoint"
            shutil.rmtree(directory)
    for _ in damaged(store, 0, flipped):
        for _ in damaged(store, 1, flipped):
            with pytest.raises(CheckpointError, match="no copy of a checkpoint"):
                restore(place, 0, tmp_path / "restored")
            assert checkpoint_numbers(tmp_path / "restored") == []


def test_a_restore_killed_anywhere_is_begun_again(
    stream: Pipeline, place: Storage, store: ObjectStore, log: SqliteLog, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    gone_on(stream, tmp_path, 3)
    CheckpointMirror(place, 0, tmp_path / "state").look()
    stream.close(checkpoint=False)
    expected = unbroken(log)
    left = [0]

    def counting(module: Any, name: str) -> None:
        plain = getattr(module, name)

        def counted(*args: Any, **given: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Stopped
            return plain(*args, **given)

        monkeypatch.setattr(module, name, counted)

    for module, name in ((os, "write"), (os, "fsync"), (os, "rename"), (os, "replace")):
        counting(module, name)
    # A killed one removes nothing.
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    call, done = 0, False
    while not done:
        directory = tmp_path / f"restored-{call}"
        left[0] = call
        store.on_call = lambda _: _taken(left)
        try:
            restore(place, 0, directory)
            done = True
        except Stopped:
            pass
        left[0] = 10**9
        monkeypatch.setattr(shutil, "rmtree", RMTREE)
        assert restore(place, 0, directory), f"killed at call {call}"
        assert checkpoint_numbers(directory) == [1]
        assert not list(directory.glob(".tmp-*"))
        if call % 5 == 0 or done:
            assert resumed(log, directory, True) == expected
        monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
        call += 1
    assert call > 10


def _taken(left: list[int]) -> None:
    left[0] -= 1
    if left[0] < 0:
        raise Stopped
