"""The journal: what was buffered since a checkpoint, when, in which order, and where it was cut.

Idea: the log holds the operations, so a crash loses none; but their stamps, the order in which
several partitions were read and the ends of the batches were chosen while running. Written down,
they let a replay build the same batches with the same versions and times, so that a reply that has
left stays true.

It is one sequence of entries in segments, files that lie beside the checkpoints. A checkpoint, and
every writer, begins a new segment; a checkpoint's replay begins at its own and goes through all
that follow, so it does not matter which checkpoint that is.

    directory/journal-K := magic[8] K u8 before u8 crc u4 entry*     little-endian; crc: CRC-32 of
                                                                     what stands before it
    before  := the bytes of segment K − 1 that count, whatever else is there
    entry   := size u4, crc u4, payload[size]                        CRC-32 of the payload
    payload := msgpack [0, stamp, topic, partition, first, last, digest]
                                                                     records buffered, by offset;
                                                                     the mark of the last, or empty
             | msgpack [1, operations]                               a batch was cut here
             | msgpack [2, …]                                        as 0; queries were shed

A segment is begun when the one before is synced, and has its name when its head is synced: so a
crash can tear only the last one. Reading the last stops at the first entry that is cut short or
fails its crc: what a crash tore off. It can have promised nothing, since replies wait for `sync`.
The log still holds its operations: they are applied all the same, under new stamps. Any other
segment must be good up to where its successor says that it ended.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgpack

from lpma.files import fsync_directory, write_all

from .errors import CheckpointError
from .sources.base import Partition

MAGIC = b"LPMAJRN3"
MAX_ENTRY_BYTES = 1024
_START = struct.Struct("<8sQQ")  # the head without its crc
_CRC = struct.Struct("<I")
HEAD_BYTES = _START.size + _CRC.size
_HEAD = struct.Struct("<II")
_NAME = re.compile(r"journal-(\d{10})")
_CHUNK, _CUT, _SHED = range(3)


class Chunk(NamedTuple):
    """Records first … last of a partition, buffered in a row under one stamp. `shed`: queries
    among them are not asked, because too many waited."""

    stamp: int
    partition: Partition
    first: int
    last: int
    shed: bool = False  # whether queries among them were told to come back later
    digest: str = ""  # of the last record, where it is the last of its poll: see marks.py


class Cut(NamedTuple):
    """The next `operations` of what was buffered make a batch."""

    operations: int


Entry = Chunk | Cut


def chunks(records: Iterable[Chunk]) -> list[Chunk]:
    """The same with neighbours that differ in their offsets alone joined."""
    joined: list[Chunk] = []
    for chunk in records:
        if joined and chunk == joined[-1]._replace(first=chunk.first, last=chunk.last):
            joined[-1] = joined[-1]._replace(last=chunk.last)
        else:
            joined.append(chunk)
    return joined


def entry_row(entry: Entry) -> list[Any]:
    """The payload, before it is packed."""
    if isinstance(entry, Cut):
        return [_CUT, entry.operations]
    stamp, (topic, number), first, last, shed, digest = entry
    return [_SHED if shed else _CHUNK, stamp, topic, number, first, last, digest]


def entry_of(row: Sequence[Any]) -> Entry:
    """What `entry_row` took apart. Raises ValueError or TypeError on anything else."""
    tag, *values = row
    if tag == _CUT:
        return Cut(*values)
    stamp, topic, number, first, last, digest = values
    shed = tag == _SHED
    return Chunk(stamp, Partition(topic, number), first, last, shed, digest)


# Writing -------------------------------------------------------------------------------------


class Journal:
    """The segment that is appended to: a new one, whatever there was. Raises CheckpointError where
    the disk does not take it; then the file is as before the call, or no further call is taken.

    number: of the segment. before: bytes of the one before that count; they are synced."""

    def __init__(self, directory: Path, number: int, before: int = 0) -> None:
        self._directory = directory
        self._file = -1
        self._begin(number, before)

    @classmethod
    def after(cls, last: Segment) -> Journal:
        """Go on behind what is good of `last`, which another writer has left."""
        try:
            file = os.open(last.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(file)  # a writer that was killed may not have
            finally:
                os.close(file)
        except OSError as error:
            raise CheckpointError(f"{last.path}: cannot be synced ({error}): resume") from error
        return cls(last.path.parent, last.number + 1, last.good)

    def _begin(self, number: int, before: int) -> None:
        path = segment_path(self._directory, number)
        temporary = path.with_name(f".tmp-{path.name}")
        start = _START.pack(MAGIC, number, before)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._whole = False  # what the old one got from here on would not be read
        try:
            file = os.open(temporary, flags, 0o666)
            try:
                write_all(file, start + _CRC.pack(zlib.crc32(start)))
                os.fsync(file)
                os.rename(temporary, path)
                fsync_directory(self._directory)
            except BaseException:
                os.close(file)
                raise
        except OSError as error:
            raise CheckpointError(
                f"{path}: cannot be written ({error}): free the disk and resume"
            ) from error
        self.close()
        self.path, self.number, self.size = path, number, HEAD_BYTES
        self._file = file
        self._whole, self._unsynced = True, False

    def append(self, entries: Iterable[Entry]) -> None:
        """Write entries. They survive a kill from here on, a power cut from the next `sync`."""
        data = b"".join(map(_encoded, entries))
        self._check_whole()
        self._unsynced = True
        try:
            write_all(self._file, data)
        except OSError as error:
            # Half an entry would hide every later one from a reader.
            self._whole = self._cut_back()
            raise CheckpointError(
                f"{self.path}: cannot be written ({error}): free the disk and resume"
            ) from error
        self.size += len(data)

    def _cut_back(self) -> bool:
        """Drop what follows the last whole entry; whether that succeeded."""
        try:
            os.ftruncate(self._file, self.size)
        except OSError:
            return False
        return True

    def _check_whole(self) -> None:
        if not self._whole:
            raise CheckpointError(f"{self.path}: an earlier write failed: resume")

    def sync(self) -> None:
        """Make what was appended survive a power cut."""
        self._check_whole()
        if self._unsynced:
            try:
                os.fsync(self._file)
            except OSError as error:
                # After a failed fsync the pages may be lost and still look clean: no second try.
                self._whole = False
                raise CheckpointError(f"{self.path}: cannot be synced ({error}): resume") from error
            self._unsynced = False

    def rotate(self) -> int:
        """Begin the next segment, and return its number. All before it is synced then."""
        self.sync()
        self._begin(self.number + 1, self.size)
        return self.number

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _encoded(entry: Entry) -> bytes:
    payload = msgpack.packb(entry_row(entry))
    return _HEAD.pack(len(payload), zlib.crc32(payload)) + payload


# Reading -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Segment:
    """What stands in a segment's file. Entry i ends at byte `ends[i]`, the head at HEAD_BYTES."""

    path: Path
    number: int
    before: int
    entries: list[Entry]
    ends: list[int]
    size: int  # of the file

    @property
    def good(self) -> int:
        """The bytes up to where reading stopped."""
        return self.ends[-1] if self.ends else HEAD_BYTES


def segment_path(directory: Path, number: int) -> Path:
    return directory / f"journal-{number:010d}"


def segment_numbers(directory: Path) -> list[int]:
    """The numbers of the segments in `directory`, rising."""
    found = [_NAME.fullmatch(name) for name in os.listdir(directory)]
    return sorted(int(match[1]) for match in found if match)


def read_segment(directory: Path, number: int) -> Segment:
    """Raises CheckpointError where it cannot be read, or is no such segment."""
    path = segment_path(directory, number)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error}") from error
    if len(data) < HEAD_BYTES:
        raise CheckpointError(f"{path}: cut short")
    start = data[: _START.size]
    magic, found, before = _START.unpack(start)
    if (zlib.crc32(start),) != _CRC.unpack_from(data, _START.size):
        raise CheckpointError(f"{path}: its head is damaged")
    if (magic, found) != (MAGIC, number):
        raise CheckpointError(f"{path}: of another format or number")
    entries, ends = _entries(data)
    return Segment(path, number, before, entries, ends, len(data))


def _entries(data: bytes) -> tuple[list[Entry], list[int]]:
    entries: list[Entry] = []
    ends: list[int] = []
    at = HEAD_BYTES
    while len(data) - at >= _HEAD.size:
        size, crc = _HEAD.unpack_from(data, at)
        payload = data[at + _HEAD.size : at + _HEAD.size + size]
        if size > MAX_ENTRY_BYTES or len(payload) != size or zlib.crc32(payload) != crc:
            break
        try:
            entries.append(entry_of(msgpack.unpackb(payload)))
        except (ValueError, TypeError, msgpack.UnpackException):
            break  # a run of zeros has the right crc too
        at += _HEAD.size + size
        ends.append(at)
    return entries, ends


def read_since(directory: Path, first: int) -> tuple[list[Entry], Segment]:
    """All entries from segment `first` on, and the last segment. Raises CheckpointError where one
    is missing or damaged in what it must hold."""
    numbers = [n for n in segment_numbers(directory) if n >= first]
    segments = [read_segment(directory, n) for n in range(first, max(numbers, default=first) + 1)]
    entries: list[Entry] = []
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        whole = segment.good if following is None else following.before
        if whole not in (HEAD_BYTES, *segment.ends):
            raise CheckpointError(
                f"{segment.path}: damaged at byte {segment.good} of {whole}: restore the directory "
                "from a copy, or start a new checkpoint and read the stream again"
            )
        entries += segment.entries[: sum(end <= whole for end in segment.ends)]
    return entries, segments[-1]
