"""Checkpoints: the graph and the offsets it stands at, written in one step that cannot half happen.

Idea: what is in the graph and what has been read from the stream must agree after any crash, so
they are one thing on disk. A commit is one rename; a crash before it leaves the previous checkpoint
and a stray directory that the next start removes.

    directory/lock                   flocked by the one writer, never removed
    directory/fence                  a random token of the last writer to open the directory
    directory/checkpoint-N/graph.lpma, checkpoint.json, journal, and vertices where ids are mapped
    checkpoint.json := JSON {"format", "number", "state", "files": {name: [bytes, blake2b]}}
                       newline, blake2b of that JSON in hex, newline

Commit, in steps that are repeated as comments where they happen:

    1. look whether the fence still holds our token      6. sync the journal before this one
    2. make a temporary directory                        7. rename: this is the commit
    3. save the graph, and the vertices, in it           8. fsync the parent, so that the name lasts
    4. start its journal with what is still waiting      9. remove all but the two newest
    5. write checkpoint.json with all checksums, and fsync every file and the directory

Loading takes the newest checkpoint whose every byte is as it was written, else the one before it,
and then what both journals say happened since. Where none is good it refuses. The lock keeps a
second writer out; where locks do not work (some network file systems), the fence stops the first.
Requires a POSIX file system.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from lpma.errors import FormatError
from lpma.files import atomic_write, fsync_directory

from .batcher import Position
from .errors import CheckpointError, LockedError
from .journal import Chunk, Entry, Journal, read_journal
from .reading import Reading
from .sources.base import Identity, Partition

FORMAT = 2
MAX_MANIFEST_BYTES = 64 << 20
GRAPH = "graph.lpma"
VERTICES = "vertices"  # the vertex dictionary, where ids are mapped
MANIFEST = "checkpoint.json"
JOURNAL = "journal"
_NAME = re.compile(r"checkpoint-(\d{10})")

G = TypeVar("G")


@dataclass(frozen=True)
class State:
    """What a checkpoint holds beside the graph."""

    identity: Identity
    positions: dict[Partition, Position]
    origins: dict[tuple[Partition, str], int] = field(default_factory=dict)  # highest seq applied
    version: int = 0  # of the graph
    stamp: int = 0  # of the last operation applied: stamps never fall below it
    operations: int = 0  # applied since the stream began
    epoch: int = 0  # how many writers there have been
    reading: Reading = field(default_factory=Reading)  # how records became operations
    newest: dict[Partition, int] = field(default_factory=dict)  # event time, for the late policy

    def to_json(self) -> dict[str, Any]:
        return {
            "identity": [self.identity.cluster, dict(self.identity.topics)],
            "positions": [[*p, *position] for p, position in self.positions.items()],
            "origins": [[*p, source, seq] for (p, source), seq in self.origins.items()],
            "counts": [self.version, self.stamp, self.operations, self.epoch],
            "reading": self.reading.to_json(),
            "newest": [[*p, time] for p, time in self.newest.items()],
        }

    @staticmethod
    def from_json(value: dict[str, Any]) -> State:
        version, stamp, operations, epoch = value["counts"]
        return State(
            Identity(*value["identity"]),
            {Partition(t, n): Position(offset, row) for t, n, offset, row in value["positions"]},
            {(Partition(t, n), source): seq for t, n, source, seq in value["origins"]},
            version,
            stamp,
            operations,
            epoch,
            Reading.from_json(value["reading"]),
            {Partition(t, n): time for t, n, time in value["newest"]},
        )


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint found good, byte for byte."""

    number: int
    path: Path
    state: State


class CheckpointDirectory:
    """The directory of one pipeline's checkpoints, held by this writer until `close`.

    Raises LockedError where another writer has it, CheckpointError on whatever the disk refuses."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.journal: Journal | None = None  # of the newest checkpoint: what is appended to
        self._good = 0  # the newest checkpoint known to be good
        self._token = secrets.token_hex(16)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise CheckpointError(f"{self.path}: cannot hold checkpoints: {error}") from error
        try:
            self._take_over()
        except BaseException:
            os.close(self._lock)
            raise

    def _take_over(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with atomic_write(self.path / "fence") as file:
                file.write(self._token.encode())
            for stray in self.path.glob(".tmp-*"):
                shutil.rmtree(stray)
        except BlockingIOError:
            raise LockedError(
                f"{self.path}: another pipeline writes here: stop it, or use another directory"
            ) from None
        except OSError as error:
            raise CheckpointError(f"{self.path}: cannot be written: {error}") from error

    def close(self) -> None:
        if self.journal is not None:
            self.journal.close()
            self.journal = None
        os.close(self._lock)

    def numbers(self) -> list[int]:
        """The numbers of the checkpoints there are, good or not, rising."""
        return checkpoint_numbers(self.path)

    def sync(self) -> None:
        """Make what the journal says survive a power cut."""
        if self.journal is not None:
            self.journal.sync()

    @property
    def journal_bytes(self) -> int:
        return 0 if self.journal is None else self.journal.size

    # Writing ---------------------------------------------------------------------------------

    def commit(
        self,
        state: State,
        save: Callable[[Path], object],
        waiting: Iterable[Chunk],
        save_vertices: Callable[[Path], object] | None = None,
    ) -> None:
        """Write a checkpoint; `save(path)` writes the graph, `save_vertices(path)` the vertex
        dictionary, `waiting` is what was buffered and is not in the graph. On an error the previous
        checkpoint and its journal are as they were, unless the rename had happened: then the new
        one is complete. Resume to find out."""
        number = max(self.numbers(), default=-1) + 1
        temporary = self.path / f".tmp-{number:010d}"
        try:
            self._check_fence()  # 1
            temporary.mkdir()  # 2
            save(temporary / GRAPH)  # 3
            if save_vertices is not None:
                save_vertices(temporary / VERTICES)
            journal = Journal(temporary / JOURNAL)  # 4
            journal.append(chunk._replace(carried=True) for chunk in waiting)
            journal.close()
            _write_manifest(temporary, number, state)  # 5
            _fsync_tree(temporary)
            self.sync()  # 6
            final = self._of(number)
            os.rename(temporary, final)  # 7: the commit
            fsync_directory(self.path)  # 8
            self._append_to(final / JOURNAL)
            self._remove_below(self._good)  # 9; the journals from the one kept on are needed
            self._good = number
        except OSError as error:
            raise CheckpointError(
                f"{self.path}: checkpoint {number} was not written ({error}); free the disk and "
                "resume"
            ) from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _check_fence(self) -> None:
        if (self.path / "fence").read_bytes() != self._token.encode():
            raise LockedError(f"{self.path}: another pipeline has taken over: this one must stop")

    def _of(self, number: int) -> Path:
        return self.path / f"checkpoint-{number:010d}"

    def _append_to(self, path: Path) -> None:
        old, self.journal = self.journal, Journal(path)
        if old is not None:
            old.close()

    def _remove_below(self, number: int) -> None:
        for old in self.numbers():
            if old < number:
                # Without its manifest it is no checkpoint, should the removal stop half-way.
                (self._of(old) / MANIFEST).unlink(missing_ok=True)
                shutil.rmtree(self._of(old))

    # Reading ---------------------------------------------------------------------------------

    def newest(self, load: Callable[[Path], G]) -> tuple[Checkpoint, G]:
        """The newest good checkpoint and what `load` makes of its graph file. Raises
        CheckpointError, naming what is wrong with each, where none is good."""
        problems = []
        for number in reversed(self.numbers()):
            try:
                found = _verify(self._of(number), number)
                graph = load(found.path / GRAPH)
            except CheckpointError as error:
                problems.append(f"checkpoint {number}: {error}")
            except FormatError as error:
                problems.append(f"checkpoint {number}: its graph cannot be loaded: {error}")
            else:
                self._good = number
                return found, graph
        if problems:
            raise CheckpointError(
                f"{self.path}: no checkpoint is good ({'; '.join(problems)}): restore the "
                "directory from a copy, or start a new one and read the stream again"
            )
        raise CheckpointError(f"{self.path}: holds no checkpoint: start with Pipeline(…)")

    def history_since(self, number: int) -> list[Entry]:
        """What the journals say happened since checkpoint `number`; appends go on from there."""
        entries: list[Entry] = []
        following = [n for n in self.numbers() if n >= number]
        for n in following:
            path = self._of(n) / JOURNAL
            if n == following[-1]:
                self._append_to(path)
            found, good, size = read_journal(path)
            if good < size:
                raise CheckpointError(
                    f"{path}: damaged at byte {good}, and checkpoint {n + 1} cannot be used "
                    "either: restore the directory from a copy"
                )
            # What was carried into a later journal stands in the one before it already.
            carried_is_new = n == number
            entries += [
                entry
                for entry in found
                if carried_is_new or not (isinstance(entry, Chunk) and entry.carried)
            ]
        return entries


def checkpoint_numbers(path: str | os.PathLike[str]) -> list[int]:
    """The numbers of the checkpoints in directory `path`, rising; empty where there is none."""
    try:
        found = [_NAME.fullmatch(name) for name in os.listdir(path)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(int(match[1]) for match in found if match)


def _digest(path: Path) -> list[Any]:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "blake2b").hexdigest()
        return [file.tell(), digest]


def _write_manifest(directory: Path, number: int, state: State) -> None:
    files = {
        str(path.relative_to(directory)): _digest(path)
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != JOURNAL  # the journal grows, and checks itself
    }
    content = {"format": FORMAT, "number": number, "state": state.to_json(), "files": files}
    body = json.dumps(content, separators=(",", ":")).encode()
    (directory / MANIFEST).write_bytes(body + b"\n" + _seal(body) + b"\n")


def _seal(body: bytes) -> bytes:
    return hashlib.blake2b(body).hexdigest().encode()


def _fsync_tree(directory: Path) -> None:
    for path in directory.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        else:
            fsync_directory(path)
    fsync_directory(directory)


def _verify(path: Path, number: int) -> Checkpoint:
    """Read every byte of a checkpoint against its checksums. Raises CheckpointError."""
    try:
        with open(path / MANIFEST, "rb") as file:
            data = file.read(MAX_MANIFEST_BYTES)
        body, _, seal = data.partition(b"\n")
        if seal != _seal(body) + b"\n":
            raise CheckpointError(f"{MANIFEST} is damaged")
        content = json.loads(body)
        if content["format"] != FORMAT or content["number"] != number:
            raise CheckpointError(f"{MANIFEST} is of another format or number")
        for name, expected in content["files"].items():
            if _digest(path / name) != expected:
                raise CheckpointError(f"{name} is damaged")
        return Checkpoint(number, path, State.from_json(content["state"]))
    except OSError as error:
        raise CheckpointError(f"cannot be read: {error}") from error
