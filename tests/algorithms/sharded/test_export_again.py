"""An export that fails leaves nothing of its own and touches nothing else, however its writers
end; the next one into the same directory is whole."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import algorithms
import lpma
from algorithms.sharded import Worker, read_manifest, read_parquet, split
from algorithms.sharded.local import LocalWorkers
from algorithms.sharded.parquet import file_name
from lpma.file.atomic import PathError, atomic_write
from tests.support.waiting import HANGS_S

SHARDS = 3
NAMES = [*(file_name(number, SHARDS) for number in range(SHARDS)), "manifest.json"]


class Died(Exception):
    """What becomes of a shard."""


@pytest.fixture
def whole() -> lpma.Snapshot:
    graph = lpma.Graph(device="cpu")
    graph.insert(*np.random.default_rng(3).integers(0, 50, (2, 300)))
    return graph.snapshot()


def exported(whole: lpma.Snapshot, directory: Path) -> None:
    """Into the same directory, by shards that do not die: all of it, and nothing else."""
    algorithms.ShardedSnapshot.of(split(whole, SHARDS)).write_parquet(directory)
    assert sorted(path.name for path in directory.iterdir()) == sorted(NAMES)
    assert read_manifest(directory).edges == len(read_parquet(directory)) == whole.num_edges


def failing(whole: lpma.Snapshot, worker: int, write: Callable[..., Any]) -> Any:
    """A snapshot of which one worker writes otherwise."""
    s = algorithms.ShardedSnapshot.of(split(whole, SHARDS))
    workers: Any = s.workers
    workers.workers[worker].write_parquet = write
    return s


def test_a_shard_that_is_killed_while_it_writes(whole: lpma.Snapshot, tmp_path: Path) -> None:
    """Its temporary file stays behind, as kill -9 leaves it."""

    def killed(directory: str, *_: Any) -> None:
        left = Path(directory) / f".{NAMES[1]}.0123456789abcdef.tmp"
        left.write_bytes(b"half")
        raise Died

    with pytest.raises(Died):
        failing(whole, 1, killed).write_parquet(tmp_path)
    assert not list(tmp_path.iterdir())
    exported(whole, tmp_path)


class Careless(LocalWorkers):
    """Raises the first error at once, as where a machine is out of reach, and waits for nobody."""

    late: threading.Thread

    def call(self, method: str, *args: Any) -> list[Any]:
        if method != "write_parquet":
            return super().call(method, *args)
        own: Any = self.workers[0]
        self.late = threading.Thread(target=self._ignored, args=(own, *args))
        self.late.start()
        own.is_at_it.wait(10)
        raise Died

    def _ignored(self, worker: Any, *args: Any) -> None:
        try:
            worker.write_parquet(*args)
        except OSError as error:
            worker.problem = error


class Straggler(Worker):
    """Writes on only when it is let, from one of several places."""

    def __init__(self, part: Any, place: str) -> None:
        super().__init__(part)
        self.is_at_it, self.is_let = threading.Event(), threading.Event()
        self.problem: OSError | None = None
        self._place = place

    def write_parquet(self, directory: str, *rest: Any) -> Any:
        if self._place == "half":
            with atomic_write(Path(directory) / NAMES[0]) as file:
                file.write(b"half")
                self._wait()
        if self._place == "before":
            self._wait()
        found = super().write_parquet(directory, *rest)
        if self._place == "after":
            self._wait()
        return found

    def _wait(self) -> None:
        self.is_at_it.set()
        assert self.is_let.wait(10)


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("place", ["before", "half", "after"])
def test_a_writer_that_nobody_waits_for(
    whole: lpma.Snapshot, tmp_path: Path, place: str, is_late: bool
) -> None:
    """It goes on when the directory is empty again, or when the next export is there already."""
    parts: Any = split(whole, SHARDS)
    own = Straggler(parts.workers[0].part, place)
    workers = Careless([own, *parts.workers[1:]])
    with pytest.raises(Died):
        algorithms.ShardedSnapshot.of(workers).write_parquet(tmp_path)
    assert not list(tmp_path.iterdir())
    if is_late:
        exported(whole, tmp_path)
    own.is_let.set()
    workers.late.join(HANGS_S)
    assert (own.problem is None) == (place == "after")
    if is_late:
        assert read_manifest(tmp_path).edges == whole.num_edges
        assert len(list(tmp_path.iterdir())) == len(NAMES)
    else:
        assert not list(tmp_path.iterdir())
        exported(whole, tmp_path)


STRANGERS = ["notes.txt", f".{NAMES[0]}.tmp", f".{NAMES[0]}.0123.tmp", f"x{NAMES[0]}"]


@pytest.mark.parametrize("name", STRANGERS)
def test_files_of_strangers_stay(whole: lpma.Snapshot, tmp_path: Path, name: str) -> None:
    """Wherever somebody puts them meanwhile."""
    for folder in ("there", "in the room"):
        target = tmp_path / folder
        put: list[Path] = []

        def write(directory: str, *_: Any) -> None:
            room = Path(directory)
            put.append((room.parent if folder == "there" else room) / name)  # noqa: B023
            put[0].write_text("mine")  # noqa: B023
            raise Died

        with pytest.raises(Died):
            failing(whole, 1, write).write_parquet(target)
        assert put[0].read_text() == "mine"
        assert [path for path in target.rglob("*") if path.is_file()] == put


def test_a_final_name_that_is_taken_meanwhile(whole: lpma.Snapshot, tmp_path: Path) -> None:
    s = algorithms.ShardedSnapshot.of(split(whole, SHARDS))
    workers: Any = s.workers
    own = workers.workers[2]
    real = own.write_parquet

    def write(*args: Any) -> Any:
        (tmp_path / NAMES[1]).write_text("mine")
        return real(*args)

    own.write_parquet = write
    with pytest.raises(PathError, match="somebody else has put it there"):
        s.write_parquet(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [NAMES[1]]
    assert (tmp_path / NAMES[1]).read_text() == "mine"


def test_no_manifest_that_can_be_written(
    whole: lpma.Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("algorithms.sharded.parquet.json.dumps", full)
        with pytest.raises(OSError, match="full"):
            algorithms.ShardedSnapshot.of(split(whole, SHARDS)).write_parquet(tmp_path)
    assert not list(tmp_path.iterdir())
    exported(whole, tmp_path)
