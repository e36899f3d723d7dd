"""One checkpoint: the graph and the offsets it stands at, as files sealed by checksums.

    checkpoint-N/graph.lpma, …       one file for each part that is kept
    checkpoint-N/checkpoint.json     written last
    checkpoint-N/verified            empty: every byte was compared when it was to be kept

    checkpoint.json := JSON {"format", "number", "time", "segment", "waiting", "state", "files"} \\n
                       JSON producers \\n
                       blake2b of both lines in hex \\n
    time     when it was taken, ms since 1970
    segment  of the journal, where what happened since begins
    waiting  journal entries (rows of journal.py's payload) of what was buffered then and not yet
             applied: a replay begins with these
    files    {name: [bytes, blake2b in hex]}
    producers  [[topic, partition, source, seq], …]

Trick: files are summed while they are written, and synced piece by piece, so that the stream's own
syncs do not wait behind a whole graph.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Self

from lpma.file.atomic import Buffer, fsync_directory, write_all
from lpma.host import sync

from ..errors import CheckpointError
from ..settings import RecordSettings
from ..sources.base import Identity
from ..types import Image, Partition, Position, RecordFingerprint
from .journal import Entry, entry_of, entry_row

FORMAT = 3
SEAL_BYTES = 129
GRAPH = "graph.lpma"
VERTICES = "vertices"  # the vertex dictionary, if vertices go by names
MANIFEST = "checkpoint.json"
VERIFIED = "verified"
PIECE_BYTES = 4 << 20  # summed and written at once
SYNC_BYTES = 32 << 20  # written before a sync
ROWS = 1000  # turned into JSON at once
NOTHING = (-1, -1)  # below every place of a result


@dataclass(frozen=True)
class Accepted:
    """Something that was given up, because whoever runs the pipeline accepted the loss."""

    kind: str
    time: int  # ms since 1970
    detail: dict[str, Any]  # plain values


@dataclass(frozen=True)
class Published:
    """A run of results, up to the checkpoint's version: see `results/publisher.py`."""

    run: str
    figures: tuple[str, ...]
    rules: tuple[str, ...]
    visible: bool  # whether the place where they are told can be looked at
    records: int = 0  # since the run began, each once
    last_sent: tuple[int, int] = NOTHING  # the place of the last one
    memo: tuple[int, ...] = ()  # see `publisher.Content`

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        told = found.pop("last_sent")
        if not self.memo:
            del found["memo"]
        return {**found, "told": told}

    @staticmethod
    def from_json(value: dict[str, Any] | None) -> Published | None:
        """What `to_json` gave; None for a stream without results, or one of which it is not known
        how far they went."""
        if value is None or "told" not in value:
            return None
        version, part = value["told"]
        return Published(
            value["run"],
            tuple(value["figures"]),
            tuple(value["rules"]),
            value.get("visible", False),
            value["records"],
            (version, part),
            tuple(value.get("memo", ())),
        )


@dataclass(frozen=True)
class State:
    """What a checkpoint holds besides the graph."""

    identity: Identity
    positions: dict[Partition, Position]
    producers: dict[tuple[Partition, str], int] = field(default_factory=dict)  # highest seq applied
    version: int = 0  # of the graph
    stamp: int = 0  # of the last operation applied: stamps never fall below it
    operations: int = 0  # applied since the stream began
    record_settings: RecordSettings = field(
        default_factory=RecordSettings
    )  # how records became operations
    newest: dict[Partition, int] = field(default_factory=dict)  # event time, for the late policy
    accepted: tuple[Accepted, ...] = ()  # since the stream began
    # Of what was polled last.
    fingerprints: dict[Partition, RecordFingerprint] = field(default_factory=dict)
    window_newest: int | None = None  # what the window's bound lies behind: see `windows.py`
    keep_checkpoints: str = ""  # see `retention.py`
    # Which queries were asked: the settings of that name. None: an older release did not say.
    reply_topics: tuple[str, ...] | None = None
    max_hops: int | None = None
    max_id: int | None = None  # of a vertex; None: any that an older release, or a graph, takes
    published: Published | None = None  # None: no results leave
    expired: int = 0  # edges, since the stream began
    fed: Published | None = None  # likewise of the edge feed; None: none leaves

    def to_json(self) -> dict[str, Any]:
        """All but the producers."""
        return {
            "identity": [self.identity.cluster, dict(self.identity.topics)],
            "read_as": self.identity.read_as and dict(self.identity.read_as),
            "positions": [[*p, *position] for p, position in self.positions.items()],
            "version": self.version,
            "stamp": self.stamp,
            "operations": self.operations,
            "epoch": 0,  # older releases read it
            "reading": self.record_settings.to_json(),
            "newest": [[*p, time] for p, time in self.newest.items()],
            "accepted": [asdict(accepted) for accepted in self.accepted],
            "marks": [[*p, *fingerprint] for p, fingerprint in self.fingerprints.items()],
            "window_newest": self.window_newest,
            "keep_checkpoints": self.keep_checkpoints,
            "reply_topics": self.reply_topics,
            "max_hops": self.max_hops,
            "max_id": self.max_id,
            "published": self.published and self.published.to_json(),
            "expired": self.expired,
            "fed": self.fed and self.fed.to_json(),
        }

    @staticmethod
    def from_json(value: dict[str, Any], producers: list[list[Any]]) -> State:
        return State(
            Identity(value["identity"][0], value["identity"][1], value.get("read_as")),
            {Partition(t, n): Position(offset, row) for t, n, offset, row in value["positions"]},
            {(Partition(t, n), source): seq for t, n, source, seq in producers},
            value["version"],
            value["stamp"],
            value["operations"],
            RecordSettings.from_json(value["reading"]),
            {Partition(t, n): time for t, n, time in value["newest"]},
            tuple(Accepted(**accepted) for accepted in value["accepted"]),
            {Partition(t, n): RecordFingerprint(at, digest) for t, n, at, digest in value["marks"]},
            value.get("window_newest"),  # absent in checkpoints of 0.1
            value.get("keep_checkpoints", ""),
            tuple(value["reply_topics"]) if value.get("reply_topics") else None,
            value.get("max_hops"),
            value.get("max_id"),
            Published.from_json(value.get("published")),
            value.get("expired", 0),
            Published.from_json(value.get("fed")),
        )


@dataclass(frozen=True)
class CheckpointSnapshot:
    """All that a checkpoint is made of, taken at one moment between two batches."""

    state: State
    images: Mapping[str, Image]  # by the name of the file
    segment: int
    waiting: Sequence[Entry]
    time: int  # ms since 1970


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk, as its manifest describes it."""

    number: int
    path: Path
    state: State
    segment: int
    waiting: list[Entry]
    time: int  # ms since 1970
    files: dict[str, tuple[int, str]]  # name: bytes, blake2b

    @property
    def nbytes(self) -> int:
        """Of its files but the manifest."""
        return sum(size for size, _ in self.files.values())

    @property
    def is_verified(self) -> bool:
        """Whether every byte was compared with its checksums once it was to be kept."""
        return (self.path / VERIFIED).exists()


# Writing -------------------------------------------------------------------------------------


def write_checkpoint(directory: Path, number: int, taken: CheckpointSnapshot) -> int:
    """Fill the empty `directory`; the bytes written. All is synced when this returns."""
    files = {}
    for name, image in taken.images.items():
        with _Summed(directory / name) as file:
            image.write(file)
        files[name] = file.sum()
    head = {
        "format": FORMAT,
        "number": number,
        "time": taken.time,
        "segment": taken.segment,
        "waiting": [entry_row(entry) for entry in taken.waiting],
        "state": taken.state.to_json(),
        "files": files,
    }
    producers = ([*p, source, seq] for (p, source), seq in taken.state.producers.items())
    body = f"{_json(head)}\n{_json_rows(producers)}\n".encode()
    with _Summed(directory / MANIFEST) as file:
        file.write(body + _seal(body))
    fsync_directory(directory)
    return sum(size for size, _ in files.values())


def bytes_of(taken: CheckpointSnapshot) -> int:
    """What the parts of a checkpoint have on disk; nothing is written."""
    counted = _Counted()
    for image in taken.images.values():
        image.write(counted)
    return counted.size


class _Counted:
    """Takes what is written, and counts it."""

    size = 0

    def write(self, data: Buffer) -> None:
        self.size += memoryview(data).nbytes


class _Summed:
    """A new file that knows the sum of what was written to it; synced when the block ends."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self._digest = hashlib.blake2b()
        self._size = self._synced = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                sync(self._file)
        finally:
            os.close(self._file)

    def write(self, data: Buffer) -> None:
        whole = memoryview(data)
        for start in range(0, len(whole), PIECE_BYTES):
            piece = whole[start : start + PIECE_BYTES]
            self._digest.update(piece)
            write_all(self._file, piece)
            self._size += len(piece)
            if self._size - self._synced >= SYNC_BYTES:
                sync(self._file)
                self._synced = self._size

    def sum(self) -> tuple[int, str]:
        return self._size, self._digest.hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _json_rows(rows: Iterable[Any]) -> str:
    """JSON of a list that may be long. The interpreter's lock is released between the pieces: a
    stream goes on alongside."""
    left = iter(rows)
    pieces = []
    while piece := list(islice(left, ROWS)):
        pieces.append(_json(piece)[1:-1])
        time.sleep(0)
    return f"[{','.join(pieces)}]"


def _seal(body: bytes) -> bytes:
    return hashlib.blake2b(body).hexdigest().encode() + b"\n"


# Reading -------------------------------------------------------------------------------------


def read_checkpoint(path: Path, number: int) -> Checkpoint:
    """What the manifest in `path` says. Raises CheckpointError if it is damaged, of another
    format or number, or if a file has another length."""
    try:
        with open(path / MANIFEST, "rb") as file:
            data = file.read()  # as long as the producers of all partitions make it
        body, seal = data[:-SEAL_BYTES], data[-SEAL_BYTES:]
        _check_format(body)
        if seal != _seal(body):
            raise CheckpointError(f"{MANIFEST} is damaged")
        head, producers = map(json.loads, body.splitlines())
        if head["number"] != number:
            raise CheckpointError(f"{MANIFEST} is of checkpoint {head['number']}")
        found = Checkpoint(
            number,
            path,
            State.from_json(head["state"], producers),
            head["segment"],
            [entry_of(row) for row in head["waiting"]],
            head["time"],
            {name: (size, digest) for name, (size, digest) in head["files"].items()},
        )
        for name, (size, _) in found.files.items():
            if (path / name).stat().st_size != size:
                raise CheckpointError(f"{name} is damaged: it should have {size} bytes")
    except OSError as error:
        raise CheckpointError(f"cannot be read: {error}") from error
    return found


def _check_format(body: bytes) -> None:
    """Say so if this is the manifest of another release. It need not be whole to say that."""
    try:
        found = json.loads(body.partition(b"\n")[0])["format"]
    except (ValueError, TypeError, KeyError):
        return  # the seal will not match
    if found != FORMAT:
        raise CheckpointError(
            f"{MANIFEST} is of format {found}, but this release reads {FORMAT}: go on with the "
            "release that wrote it, or start a new checkpoint and read the stream again"
        )


def verify(found: Checkpoint) -> None:
    """Read every byte of a checkpoint's files against its checksums. Raises CheckpointError."""
    for name in found.files:
        verify_file(found, name)


def verify_file(found: Checkpoint, name: str) -> None:
    try:
        with open(found.path / name, "rb") as file:
            digest = hashlib.file_digest(file, "blake2b").hexdigest()
            if (file.tell(), digest) != found.files[name]:
                raise CheckpointError(f"{name} is damaged")
    except OSError as error:
        raise CheckpointError(f"{name} cannot be read: {error}") from error
