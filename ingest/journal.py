"""The journal: what was buffered since a checkpoint, when, in which order, and where it was cut.

Idea: the log holds the operations, so a crash loses none; but their stamps, the order in which
several partitions were read and the ends of the batches were chosen while running. Written down,
they let a replay build the same batches with the same versions and times, so that a reply that has
left stays true.

    file    := magic[8] entry*
    entry   := size u4, crc u4, payload[size]            little-endian; CRC-32 of the payload
    payload := msgpack [0, stamp, topic, partition, first, last]     records buffered, by offset
             | msgpack [1, stamp, topic, partition, first, last]     carried: still waiting when the
                                                                     checkpoint was taken
             | msgpack [2, operations]                               a batch was cut here
             | msgpack [3, …] and [4, …] as 0 and 1                  queries among them were shed

Reading stops at the first entry that is cut short or fails its crc: what a crash tore off. It can
have promised nothing, since replies wait for `sync`. The log still holds its operations: they are
applied all the same, under new stamps.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgpack

from .errors import CheckpointError
from .sources.base import Partition

MAGIC = b"LPMAJRN1"
MAX_ENTRY_BYTES = 1024
_HEAD = struct.Struct("<II")
_CHUNK, _CARRIED, _CUT, _SHED, _CARRIED_SHED = range(5)
_TAGS = {(False, False): _CHUNK, (True, False): _CARRIED,
         (False, True): _SHED, (True, True): _CARRIED_SHED}  # fmt: skip


class Chunk(NamedTuple):
    """Records first … last of a partition, buffered in a row under one stamp. `shed`: queries
    among them are not asked, because too many waited."""

    stamp: int
    partition: Partition
    first: int
    last: int
    carried: bool = False
    shed: bool = False


class Cut(NamedTuple):
    """The next `operations` of what was buffered make a batch."""

    operations: int


Entry = Chunk | Cut


def chunks(records: Iterable[Chunk]) -> list[Chunk]:
    """The same with neighbours that differ in their offsets alone joined."""
    joined: list[Chunk] = []
    for chunk in records:
        if joined and joined[-1] == chunk._replace(first=joined[-1].first, last=joined[-1].last):
            joined[-1] = joined[-1]._replace(last=chunk.last)
        else:
            joined.append(chunk)
    return joined


class Journal:
    """An open journal, to append to. Raises CheckpointError where the disk does not take it; then
    the file is as before the call, or no further call is taken."""

    def __init__(self, path: Path) -> None:
        """Open `path`, made where there is none, and drop what a crash tore off its end."""
        self.path = path
        self._unsynced = True
        self._whole = True
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise CheckpointError(
                f"{path}: cannot be opened ({error}): free the disk and resume"
            ) from error
        try:
            _, self.size, _ = read_journal(path)
            os.ftruncate(self._file, self.size)
            if self.size == 0:
                self._write(MAGIC)
        except OSError as error:
            os.close(self._file)
            raise CheckpointError(
                f"{path}: cannot be written ({error}): free the disk and resume"
            ) from error
        except BaseException:
            os.close(self._file)
            raise

    def append(self, entries: Iterable[Entry]) -> None:
        """Write entries. They survive a kill from here on, a power cut from the next `sync`."""
        self._write(b"".join(_encoded(entry) for entry in entries))

    def _write(self, data: bytes) -> None:
        if not self._whole:
            raise CheckpointError(f"{self.path}: an earlier write failed: resume")
        self._unsynced = True
        try:
            written = 0
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError as error:
            # Half an entry would hide every later one from a reader.
            self._whole = False
            os.ftruncate(self._file, self.size)
            self._whole = True
            raise CheckpointError(
                f"{self.path}: cannot be written ({error}): free the disk and resume"
            ) from error
        self.size += len(data)

    def sync(self) -> None:
        """Make what was appended survive a power cut."""
        if self._unsynced:
            try:
                os.fsync(self._file)
            except OSError as error:
                # After a failed fsync the pages may be lost and still look clean: no second try.
                self._whole = False
                raise CheckpointError(f"{self.path}: cannot be synced ({error}): resume") from error
            self._unsynced = False

    def close(self) -> None:
        os.close(self._file)


def _encoded(entry: Entry) -> bytes:
    if isinstance(entry, Cut):
        payload = msgpack.packb([_CUT, entry.operations])
    else:
        stamp, (topic, number), first, last, carried, shed = entry
        payload = msgpack.packb([_TAGS[carried, shed], stamp, topic, number, first, last])
    return _HEAD.pack(len(payload), zlib.crc32(payload)) + payload


def read_journal(path: Path) -> tuple[list[Entry], int, int]:
    """The good entries from the start on, the bytes they take, and the bytes there are: none and 0
    where the beginning is not a journal's. Raises CheckpointError where it cannot be read."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error}") from error
    if not data.startswith(MAGIC):
        return [], 0, len(data)
    entries: list[Entry] = []
    at = len(MAGIC)
    while len(data) - at >= _HEAD.size:
        size, crc = _HEAD.unpack_from(data, at)
        payload = data[at + _HEAD.size : at + _HEAD.size + size]
        if size > MAX_ENTRY_BYTES or len(payload) != size or zlib.crc32(payload) != crc:
            break
        entry = _decoded(payload)
        if entry is None:
            break
        entries.append(entry)
        at += _HEAD.size + size
    return entries, at, len(data)


def _decoded(payload: bytes) -> Entry | None:
    """The entry, or None where the bytes are none (a run of zeros has the right crc too)."""
    try:
        tag, *values = msgpack.unpackb(payload)
        if tag == _CUT:
            return Cut(*values)
        stamp, topic, number, first, last = values
        carried, shed = tag in (_CARRIED, _CARRIED_SHED), tag in (_SHED, _CARRIED_SHED)
        return Chunk(stamp, Partition(topic, number), first, last, carried, shed)
    except (ValueError, TypeError, msgpack.UnpackException):
        return None
