"""Disks that fail: at any call, in any way, nothing is lost and a resume is exact.

Under `make soak` every call fails in every way; else every call in one way, some in the others."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest import CheckpointError, Pipeline, SqliteLog, has_checkpoint
from ingest.state.checkpoint import MANIFEST, read_checkpoint, verify
from ingest.state.directory import checkpoint_numbers, checkpoint_path
from ingest.state.journal import segment_numbers, segment_path
from tests.conftest import soak
from tests.support.stream_model import SavedModel, random_records, serial, weighted

OPTIONS: dict[str, Any] = {
    "batch_size": 7,
    "batch_interval": 10.0,
    "query_interval": 10.0,  # batches close by size, in every run alike
    "poll_records": 9,
    "checkpoint_operations": 20,
}
CALLS = ("open", "write", "fsync", "rename", "replace", "mkdir", "unlink", "rmdir")
PROBLEMS = {"full": errno.ENOSPC, "broken": errno.EIO, "quota": errno.EDQUOT}


class Disk:
    """Counts the calls that reach the disk, from whichever thread, and makes the n-th one fail,
    or, where that is asked for, all from the n-th on. A write that fails has written a part."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int, problem: int, lasting: bool) -> None:
        self.calls = 0
        self.failed: list[str] = []
        self._at, self._problem, self._lasting = at, problem, lasting
        self._lock = threading.Lock()
        for name in CALLS:
            patch.setattr(os, name, self._wrapped(name, getattr(os, name)))

    def _wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if self._fails():
                self.failed.append(name)
                if name == "write":
                    function(args[0], bytes(args[1])[: len(args[1]) // 2])
                raise OSError(self._problem, os.strerror(self._problem))
            return function(*args, **options)

        return call

    def _fails(self) -> bool:
        with self._lock:
            place = self.calls
            self.calls += 1
        return place == self._at or (self._lasting and place > self._at >= 0)


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SavedModel, int]:
    """A log, what it leads to, and how many calls a run over it makes."""
    path = tmp_path_factory.mktemp("stream")
    records = random_records(np.random.default_rng(6), 28)
    with SqliteLog(path / "log") as log:
        log.produce_many("updates", records)
    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(patch, -1, 0, False)
        shutil.copy(path / "log", path / "unbroken")
        assert not run(path / "unbroken", path / "c")
    assert disk.calls > 100
    return path / "log", serial(records)[0], disk.calls


def run(log: Path, checkpoint: Path) -> bool:
    """Start or resume, and go on to the end; whether the disk stopped it. Each checkpoint gets the
    time it needs before the next batch, so that every run makes the same calls."""

    def wait(_: object) -> None:
        running = pipeline._checkpoints._running  # type: ignore[union-attr]
        if running is not None:
            running.exception(60)

    with SqliteLog(log) as source:
        pipeline = None
        try:
            if has_checkpoint(checkpoint):
                pipeline = Pipeline.resume(checkpoint, source, load=SavedModel.load, **OPTIONS)
            else:
                pipeline = Pipeline(source, SavedModel(predecessors=True), checkpoint, **OPTIONS)
            pipeline.run(until="end", progress=wait)
            pipeline.close()
        except CheckpointError:
            if pipeline is not None:
                pipeline.close()
            return True
    return False


def good_ones(checkpoint: Path) -> list[int]:
    """The checkpoints that are good, every byte of them."""
    good = []
    for number in checkpoint_numbers(checkpoint):
        path = checkpoint_path(checkpoint, number)
        if (path / MANIFEST).exists():  # else its removal was stopped half-way
            verify(read_checkpoint(path, number))
            good.append(number)
    return good


def check(log: Path, checkpoint: Path, expected: SavedModel, *, stopped: bool) -> None:
    """What a run left is good, and leads to what it should."""
    good = good_ones(checkpoint)
    # A directory where not even the first was written holds nothing, and may be begun in.
    assert good or stopped
    assert not run(log, checkpoint), "the disk is well again"
    with SqliteLog(log) as source:
        pipeline = Pipeline.resume(checkpoint, source, load=SavedModel.load, **OPTIONS)
        assert pipeline.stats.replayed == 0
        assert isinstance(pipeline.graph, SavedModel)
        assert weighted(pipeline.graph) == weighted(expected)
        assert pipeline.graph.markers == expected.markers
        pipeline.close()
    assert not list(checkpoint.glob(".tmp-*"))
    assert not list(checkpoint.glob(".fence*"))


# (how, lasting, one call in so many)
WAYS = [("full", False, 1), ("broken", False, soak(5, 1)), ("quota", True, soak(4, 1))]


@pytest.mark.soak
@pytest.mark.parametrize("how, lasting, every", WAYS, ids=[way[0] for way in WAYS])
def test_a_disk_that_fails_at_any_call_loses_nothing(
    stream: tuple[Path, SavedModel, int], tmp_path: Path, how: str, lasting: bool, every: int
) -> None:
    """In the commit beside the stream, in the one that is waited for, and in the journal."""
    original, expected, calls = stream
    kinds = set()
    for at in range(0, calls, every):
        directory = tmp_path / str(at)
        directory.mkdir()
        log, checkpoint = directory / "log", directory / "c"
        shutil.copy(original, log)
        with pytest.MonkeyPatch.context() as patch:
            disk = Disk(patch, at, PROBLEMS[how], lasting)
            stopped = run(log, checkpoint)
        # What cleans up after a commit may fail without harm; nothing else may.
        assert stopped or not set(disk.failed) - {"unlink", "rmdir", "open"}
        kinds.update(disk.failed)
        check(log, checkpoint, expected, stopped=stopped)
        shutil.rmtree(directory)
    assert kinds >= {"open", "write", "fsync", "rename", *(["mkdir"] if every == 1 else [])}


@pytest.mark.soak
def test_a_disk_that_fails_while_resuming_loses_nothing(
    stream: tuple[Path, SavedModel, int], tmp_path: Path
) -> None:
    original, expected, _ = stream
    left = tmp_path / "left"
    left.mkdir()
    shutil.copy(original, left / "log")
    with SqliteLog(left / "log") as source:
        pipeline = Pipeline(source, SavedModel(predecessors=True), left / "c", **OPTIONS)
        for _ in range(5):
            pipeline.step()
        pipeline.close(checkpoint=False)
    at, stopped = 0, True
    while stopped:
        directory = tmp_path / str(at)
        shutil.copytree(left, directory)
        with pytest.MonkeyPatch.context() as patch:
            disk = Disk(patch, at, errno.ENOSPC, True)
            stopped = run(directory / "log", directory / "c")
        assert stopped == bool(disk.failed)
        check(directory / "log", directory / "c", expected, stopped=stopped)
        shutil.rmtree(directory)
        at += soak(2, 1)
    assert at > 30


def test_short_writes_lose_nothing(
    stream: tuple[Path, SavedModel, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, expected, _ = stream
    real = os.write
    rng = np.random.default_rng(0)
    shutil.copy(original, tmp_path / "log")
    with monkeypatch.context() as patch:
        patch.setattr(
            os, "write", lambda file, data: real(file, data[: int(rng.integers(1, len(data) + 1))])
        )
        assert not run(tmp_path / "log", tmp_path / "c")
    check(tmp_path / "log", tmp_path / "c", expected, stopped=False)


# Damage ----------------------------------------------------------------------------------------


@pytest.fixture
def crashed(stream: tuple[Path, SavedModel, int], tmp_path: Path) -> tuple[Path, SavedModel]:
    """A directory with a log and two checkpoints, as a crash left it, and what it leads to."""
    original, expected, _ = stream
    shutil.copy(original, tmp_path / "log")
    with SqliteLog(tmp_path / "log") as source:
        pipeline = Pipeline(source, SavedModel(predecessors=True), tmp_path / "c", **OPTIONS)
        for _ in range(3):
            pipeline.step()
        pipeline.checkpoint_now()
        for _ in range(2):
            pipeline.step()
        pipeline.close(checkpoint=False)
    assert len(checkpoint_numbers(tmp_path / "c")) == 2
    return tmp_path, expected


def resume(directory: Path, expected: SavedModel) -> str:
    """How a resume ends: at the stream's end with the right state, or with a refusal."""
    with SqliteLog(directory / "log") as source:
        try:
            pipeline = Pipeline.resume(directory / "c", source, load=SavedModel.load, **OPTIONS)
        except CheckpointError:
            return "refused"
        pipeline.run(until="end")
        pipeline.close(checkpoint=False)
        assert weighted(pipeline.graph) == weighted(expected)
        return "exact"


def damaged(data: bytes, step: int) -> list[bytes]:
    cut = [data[:n] for n in range(0, len(data), step)]
    flipped = [
        data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
        for at in range(0, len(data), step)
        for bit in (0x01, 0x80)
    ]
    return [*cut, *flipped, data + b"\0"]


@pytest.mark.soak
def test_any_damage_is_found_or_does_no_harm(crashed: tuple[Path, SavedModel]) -> None:
    """To a checkpoint: the previous one is used. To a segment: refused where it is needed, unless
    it is the end of the last one, where no reply rests on it: the log has its operations."""
    directory, expected = crashed
    checkpoint = directory / "c"
    kept = directory / "kept"
    shutil.copytree(checkpoint, kept)

    def restore() -> None:
        shutil.rmtree(checkpoint)
        shutil.copytree(kept, checkpoint)

    first, *_, last = segment_numbers(checkpoint)
    older, newer = (checkpoint_path(checkpoint, n) for n in checkpoint_numbers(checkpoint))
    files = {
        newer / "graph.lpma": {"exact"},
        newer / MANIFEST: {"exact"},
        older / "graph.lpma": {"exact"},
        segment_path(checkpoint, first): {"exact"},
        segment_path(checkpoint, last): {"exact", "refused"},
    }
    for path, allowed in files.items():
        data = (kept / path.relative_to(checkpoint)).read_bytes()
        ends = set()
        for content in damaged(data, max(1, len(data) // soak(12, 150))):
            restore()
            path.write_bytes(content)
            ends.add(resume(directory, expected))
        assert ends == allowed, path.name
    # Both checkpoints gone, or the older one needed and its segment damaged: refused.
    for spoiled in ((older / MANIFEST, newer / MANIFEST),
                    (newer / MANIFEST, segment_path(checkpoint, first))):  # fmt: skip
        restore()
        for path in spoiled:
            os.truncate(path, path.stat().st_size // 3)
        assert resume(directory, expected) == "refused"
