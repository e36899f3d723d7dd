"""Kept storage: whatever is killed, and wherever, a whole copy is left, and a shard that begins
with it comes to the state of an unbroken run."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import CheckpointError, Pipeline, SqliteLog
from ingest.cluster import keep, places
from ingest.cluster.keep import Keeper, KeptStatus, restore
from ingest.cluster.places import Place
from ingest.state.admin import verify_directory
from ingest.state.checkpoint import MANIFEST, read_checkpoint
from ingest.state.directory import checkpoint_numbers, checkpoint_path
from tests.conftest import soak
from tests.support.object_store import ObjectStore, Stopped

ROOT = Path(__file__).parents[3]
OPTIONS: dict[str, Any] = {
    "batch_size": 7, "batch_interval": 10.0, "poll_records": 3, "checkpoint_operations": 10**6,
}  # fmt: skip


def fill(log: SqliteLog, rng: np.random.Generator, records: int) -> None:
    """Edges that come and go, in records of a few each, some of a numbered source."""
    for number in range(records):
        src, dst = rng.integers(0, 12, (2, 5))
        kind = lpma.Kind.APPEND if number % 3 else lpma.Kind.DELETE
        log.produce("updates", ingest.encode_updates(src, dst, kind=kind, source="a", seq=number))


def edges(graph: Any) -> list[tuple[int, int]]:
    s = graph.snapshot()
    src = np.repeat(np.arange(s.num_rows), np.diff(s.indptr))
    return list(zip(src.tolist(), s.indices.tolist(), strict=True))


def unbroken(log: SqliteLog) -> list[tuple[int, int]]:
    """What all of the log makes of an empty graph."""
    with SqliteLog(log.path) as again:
        pipeline = Pipeline(again, lpma.Graph(device="cpu"), dead_letters=print, replies=print)
        pipeline.run("end")
        return edges(pipeline.graph)


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore()


@pytest.fixture
def place(store: ObjectStore) -> Place:
    return Place(store.filesystem(), "bucket/kept")


@pytest.fixture
def stream(log: SqliteLog, tmp_path: Path) -> Iterator[Pipeline]:
    """A stream of which a part is read, with something buffered that is not applied."""
    fill(log, np.random.default_rng(3), 30)
    with Pipeline(log, lpma.Graph(device="cpu"), tmp_path / "state", **OPTIONS) as pipeline:
        yield pipeline


def gone_on(stream: Pipeline, tmp_path: Path, batches: int = 1) -> Path:
    """Take a checkpoint after some more batches; the directory."""
    for _ in range(batches):
        stream.step()
    stream.checkpoint_now()
    return tmp_path / "state"


def resumed(log: SqliteLog, directory: Path, lost: bool) -> list[tuple[int, int]]:
    """The edges after all of the log, of a stream that goes on from `directory`."""
    with (
        SqliteLog(log.path) as again,
        Pipeline.resume(directory, again, accept_journal_loss=lost, **OPTIONS) as pipeline,
    ):
        pipeline.run("end")
        assert pipeline.operations == 150, "each record once"
        return edges(pipeline.graph)


def event_of(record: logging.LogRecord) -> str:
    event: Any = record.msg
    return str(event.name)


def whole(store: ObjectStore) -> list[int]:
    copies = {name.split("/")[-2] for name in store.objects if name.endswith(MANIFEST)}
    return sorted(int(copy.split("-")[1]) for copy in copies)


# Keeping -------------------------------------------------------------------------------------


def test_the_last_two_are_kept_and_no_more(
    stream: Pipeline, place: Place, store: ObjectStore, tmp_path: Path
) -> None:
    keeper = Keeper(place, 3, tmp_path / "state")
    for expected in ([0], [0, 1], [1, 2], [2, 3]):
        keeper.look()
        keeper.look()  # nothing new
        assert whole(store) == expected
        assert keeper.status.number == expected[-1]
        gone_on(stream, tmp_path)
    folders = {name.split("/")[3] for name in store.objects}
    assert len(folders) == 3, f"two copies and the token: {folders}"
    assert all(name.startswith("bucket/kept/shard-0003/") for name in store.objects)


def test_a_keeper_of_its_own_thread_and_the_last_one(
    stream: Pipeline, place: Place, store: ObjectStore, tmp_path: Path
) -> None:
    with Keeper(place, 0, tmp_path / "state", interval_s=0.01) as keeper:
        keeper.start()
        deadline = time.monotonic() + 10
        while keeper.status.number is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert keeper.status.number == 0
        gone_on(stream, tmp_path)
    assert keeper.status.number == 1
    keeper.close()


def test_killed_anywhere_a_whole_copy_is_left(
    stream: Pipeline, place: Place, store: ObjectStore, log: SqliteLog, tmp_path: Path
) -> None:
    expected = unbroken(log)
    for _ in range(2):
        Keeper(place, 0, tmp_path / "state").look()
        gone_on(stream, tmp_path)
    before = dict(store.objects)
    completed, call = False, 0
    while not completed:
        store.objects.clear()
        store.objects |= before
        store.stop_at(call)
        try:
            Keeper(place, 0, tmp_path / "state").look()
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
        keeper = Keeper(place, 0, tmp_path / "state")
        keeper.look()
        assert whole(store) == [1, 2], "the next keeper cleans up"
        assert len({name.split("/")[3] for name in store.objects}) == 3
        call += 1
    assert call > 8


def test_a_failed_write_leaves_no_part(
    stream: Pipeline, place: Place, store: ObjectStore, tmp_path: Path
) -> None:
    keeper = Keeper(place, 0, tmp_path / "state")

    def fail(name: str) -> None:
        if name == "write":
            raise OSError("no more room")

    store.on_call = fail
    keeper.look()
    assert "no more room" in (keeper.status.problem or "")
    assert list(store.objects) == ["bucket/kept/shard-0000/keeper"]

    def fail_late(name: str) -> None:
        if name == "close" and len(store.objects) == 2:
            raise OSError("no more room")  # for the manifest

    store.on_call = fail_late
    keeper.look()
    assert list(store.objects) == ["bucket/kept/shard-0000/keeper"]


def test_a_place_that_fails_is_told_of_and_tried_again(
    stream: Pipeline, place: Place, store: ObjectStore, tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    keeper = Keeper(place, 0, tmp_path / "state")
    failing = [True]

    def fail(name: str) -> None:
        if failing[0]:
            raise OSError("the bucket is away")

    store.on_call = fail
    with caplog.at_level(logging.WARNING, "lpma.ingest"):
        keeper.look()
        keeper.look()
    assert [event_of(record) for record in caplog.records] == ["not kept"]
    assert keeper.status.number is None
    assert "the bucket is away" in (keeper.status.problem or "")
    failing[0] = False
    keeper.look()
    assert keeper.status == KeptStatus(0, keeper.status.time)
    assert stream.operations == 0


def test_removed_while_it_is_copied(
    stream: Pipeline, place: Place, store: ObjectStore, log: SqliteLog, tmp_path: Path
) -> None:
    directory = gone_on(stream, tmp_path)
    keeper = Keeper(place, 0, directory)

    def remove(name: str) -> None:
        if name == "write":
            shutil.rmtree(checkpoint_path(directory, 1), ignore_errors=True)

    store.on_call = remove
    keeper.look()
    assert whole(store) == [1]
    assert restore(place, 0, tmp_path / "other")
    assert resumed(log, tmp_path / "other", True) == unbroken(log)


def test_gone_before_it_is_opened(
    stream: Pipeline, place: Place, store: ObjectStore, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The pipeline takes two more just then: nothing is wrong, and the next look has the newest."""
    directory = gone_on(stream, tmp_path)
    keeper = Keeper(place, 0, directory)
    read = read_checkpoint

    def too_late(path: Path, number: int) -> Any:
        if number == 1:
            gone_on(stream, tmp_path)
            gone_on(stream, tmp_path)
            assert not path.exists()
        return read(path, number)

    monkeypatch.setattr(keep, "read_checkpoint", too_late)
    keeper.look()
    assert keeper.status == KeptStatus()
    keeper.look()
    assert whole(store) == [3]


def test_what_is_damaged_here_is_not_kept(
    stream: Pipeline, place: Place, store: ObjectStore, tmp_path: Path
) -> None:
    graph = checkpoint_path(tmp_path / "state", 0) / "graph.lpma"
    data = bytearray(graph.read_bytes())
    data[-1] ^= 1
    graph.write_bytes(data)
    keeper = Keeper(place, 0, tmp_path / "state")
    keeper.look()
    assert "damaged" in (keeper.status.problem or "")
    assert whole(store) == []


def test_an_object_that_is_shorter_there_completes_no_copy(
    stream: Pipeline, place: Place, store: ObjectStore, tmp_path: Path
) -> None:
    def cut(name: str) -> None:
        for path in store.objects:
            if path.endswith("graph.lpma"):
                store.objects[path] = b"short"

    store.on_call = cut
    keeper = Keeper(place, 0, tmp_path / "state")
    keeper.look()
    assert "not as it was written" in (keeper.status.problem or "")
    assert whole(store) == []


def test_one_keeper_at_a_time(
    stream: Pipeline, place: Place, store: ObjectStore, tmp_path: Path
) -> None:
    first = Keeper(place, 0, tmp_path / "state")
    first.look()
    Keeper(place, 0, tmp_path / "elsewhere")
    gone_on(stream, tmp_path)
    before = whole(store)
    first.look()
    assert "another keeper" in (first.status.problem or "")
    assert whole(store) == before == [0]


def test_a_history_that_was_given_up_is_removed(
    stream: Pipeline, place: Place, store: ObjectStore, log: SqliteLog, tmp_path: Path
) -> None:
    Keeper(place, 0, tmp_path / "state").look()
    shutil.copytree(tmp_path / "state", tmp_path / "copy")  # of long ago
    for _ in range(3):
        Keeper(place, 0, gone_on(stream, tmp_path)).look()
    assert whole(store) == [2, 3]
    (tmp_path / "copy" / "fence").unlink()
    with SqliteLog(log.path) as again:
        with Pipeline.resume(tmp_path / "copy", again, accept_journal_loss=True, **OPTIONS) as old:
            old.step()
        Keeper(place, 0, tmp_path / "copy").look()
    newest = checkpoint_numbers(tmp_path / "copy")[-1]
    assert whole(store)[-1] == newest


# Restoring -----------------------------------------------------------------------------------


@pytest.mark.parametrize("local", [False, True])
def test_a_lost_disk(
    stream: Pipeline, place: Place, log: SqliteLog, tmp_path: Path, local: bool
) -> None:
    kept = str(tmp_path / "kept") if local else place
    for _ in range(2):
        gone_on(stream, tmp_path, 2)
        Keeper(kept, 5, tmp_path / "state", "in").look()
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


def test_nothing_kept_is_a_beginning(place: Place, tmp_path: Path) -> None:
    assert not restore(place, 0, tmp_path / "state")
    assert not restore(str(tmp_path / "nowhere"), 0, tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_what_is_there_is_left_alone(
    stream: Pipeline, place: Place, log: SqliteLog, tmp_path: Path
) -> None:
    directory = gone_on(stream, tmp_path)
    Keeper(place, 0, directory).look()
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
    stream: Pipeline, place: Place, store: ObjectStore, log: SqliteLog, tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    keeper = Keeper(place, 0, tmp_path / "state")
    keeper.look()
    gone_on(stream, tmp_path, 3)
    keeper.look()
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
    stream: Pipeline, place: Place, store: ObjectStore, log: SqliteLog, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    gone_on(stream, tmp_path, 3)
    Keeper(place, 0, tmp_path / "state").look()
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


RMTREE = shutil.rmtree


def _taken(left: list[int]) -> None:
    left[0] -= 1
    if left[0] < 0:
        raise Stopped


# Places --------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["nowhere://x/y", "s3://", "file://relative"])
def test_an_address_that_is_none(address: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="give a path, or a URI"):
        Keeper(address, 0, tmp_path)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """A stream that has its own disk begins all the same; one that has nothing does not."""
    (tmp_path / "file").write_text("")
    keeper = Keeper(str(tmp_path / "file"), 0, tmp_path)
    assert "cannot be written" in (keeper.status.problem or "")
    with pytest.raises(CheckpointError, match="cannot be written"):
        restore(str(tmp_path / "file"), 0, tmp_path / "state")


def test_a_place_that_is_away_at_the_start(
    stream: Pipeline, place: Place, store: ObjectStore, tmp_path: Path
) -> None:
    def fail(_: str) -> None:
        raise OSError("the bucket is away")

    store.on_call = fail
    keeper = Keeper(place, 0, tmp_path / "state")
    assert "away" in (keeper.status.problem or "")
    store.on_call = lambda _: None
    keeper.look()
    assert keeper.status.problem is None
    assert whole(store) == [0]
    other = Keeper(place, 0, tmp_path / "elsewhere")
    keeper.look()
    assert other.status.problem is None


def test_a_uri_is_a_path_too(tmp_path: Path) -> None:
    Place.of(f"file://{tmp_path}/a").write("b/c", b"1")
    assert Place.of(str(tmp_path)).list() == {"a/b/c": 1}
    Place.of(str(tmp_path)).remove("a", "b/c")
    Place.of(str(tmp_path)).remove("a", "b/c")
    assert Place.of(str(tmp_path)).list() == {}


def test_large_objects_go_piece_by_piece(
    place: Place, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "PIECE_BYTES", 10)
    (tmp_path / "file").write_bytes(bytes(range(45)))
    with open(tmp_path / "file", "rb") as file:
        pieces = list(place.copy(file, "a"))
    assert [len(piece) for piece in pieces] == [10, 10, 10, 10, 5]
    assert b"".join(pieces) == bytes(range(45)) == b"".join(place.pieces("a"))


def test_an_object_appears_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "PIECE_BYTES", 10)
    (tmp_path / "file").write_bytes(bytes(range(45)))
    local = Place.of(str(tmp_path / "kept"))
    with open(tmp_path / "file", "rb") as file:
        copying = local.copy(file, "a/b")
        next(copying)
        assert "a/b" not in local.list()
        list(copying)
    assert local.list() == {"a/b": 45}


def test_a_write_that_fails_leaves_no_object(place: Place, store: ObjectStore) -> None:
    def fail(name: str) -> None:
        if name == "write":
            raise OSError("no more room")

    store.on_call = fail
    with pytest.raises(CheckpointError, match="no more room"):
        place.write("a", b"1")
    assert store.objects == {}


def test_a_removal_begins_with_the_manifest(place: Place, store: ObjectStore) -> None:
    for name in ("a", "b", MANIFEST):
        place.write(f"copy/{name}", b"1")
    deleted: list[str] = []

    def stop(name: str) -> None:
        if name == "delete":
            if deleted:
                raise Stopped
            deleted.append(name)

    store.on_call = stop
    with pytest.raises(Stopped):
        place.remove("copy", MANIFEST)
    assert {name.split("/")[-1] for name in store.objects} == {"a", "b"}


# Kill -9 -------------------------------------------------------------------------------------

PROGRAM = """
import sys
from ingest.cluster.keep import Keeper, KeptStatus, restore
print("ready", flush=True)
while True:
    keeper = Keeper("kept", 0, "state")
    keeper.look()
"""
RESTORING = """
import os, shutil
from ingest.cluster.keep import restore
print("ready", flush=True)
while True:
    restore("kept", 0, "restored")
    shutil.rmtree("gone", ignore_errors=True)
    os.rename("restored", "gone")  # at once: half a removal is not what is tested
"""


def killed(program: str, folder: Path, after_s: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=folder, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(after_s)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.soak
def test_kill_9_in_the_middle_of_either(stream: Pipeline, log: SqliteLog, tmp_path: Path) -> None:
    """Both loop without a pause, so that a kill is in the middle of one."""
    gone_on(stream, tmp_path, 3)
    stream.close(checkpoint=False)
    expected = unbroken(log)
    Keeper(str(tmp_path / "kept"), 0, tmp_path / "state").look()
    rng = np.random.default_rng(5)
    for number in range(soak(2, 20)):
        killed(PROGRAM, tmp_path, rng.uniform(0, 0.05))
        directory = tmp_path / f"{number}"
        assert restore(str(tmp_path / "kept"), 0, directory)
        assert resumed(log, directory, True) == expected
        killed(RESTORING, tmp_path, rng.uniform(0, 0.05))
        assert restore(str(tmp_path / "kept"), 0, tmp_path / "restored")
        assert resumed(log, tmp_path / "restored", True) == expected
        RMTREE(tmp_path / "restored")
