"""The journal: what was buffered since a checkpoint, when, in which order, and where it was cut.

Idea: the log holds the operations, so a crash loses none; but their stamps, the order in which
several partitions were read and the ends of the batches were chosen while running. Written down,
they let a replay build the same batches with the same versions and times, so that a reply that has
left stays true.

It is one sequence of entries in segments, which are files next to the checkpoints. Every checkpoint
and every writer begins a new segment; a replay begins at its checkpoint's segment and goes through
all that follow, so any checkpoint will do. `journal_reader.py` reads them. Where starts failed, as
on a full disk, the next one puts its segment in the place of the blank ones that they left.

    directory/journal-K := magic[8] K u8 before u8 salt u4 crc u4 entry*       little-endian
    before  := the bytes of segment K − 1 that count; 0: nothing before K counts
    salt    := random; crc: CRC-32 of what stands before it
    entry   := size u4, crc u4, payload[size]                 CRC-32 of salt and payload
    payload := msgpack [0, stamp, topic, partition, first, last, digest]
                                                              records buffered, by offset; digest:
                                                              the fingerprint of the last, or empty
             | msgpack [1, operations]                               a batch was cut here
             | msgpack [2, …]                                        as 0; queries were shed
             | "\\xc1synced\\n" whole u8           a proof: `whole` bytes are synced
             | "\\xc1sealed\\n" whole u8           a seal: so they are, and K + 1 is there

    directory/synced := slot, at bytes 0 and 4096 each        written in turns
    slot    := magic[8] turn u8 K u8 salt u4 whole u8 crc u4  CRC-32 of what stands before it

What was synced distinguishes damage from a torn end. A power cut may keep any of the pages that
were not synced, so good entries after a bad one prove nothing. A proof does: it is written after
the fsync returned, and before any reply leaves that waited for it. But a segment that is cut short
loses its proofs with its end. So the same is said in a file beside it, `synced`, by the slot with
the higher turn: `whole` bytes of segment K, which has that salt, are synced. It takes a sync of its
own, of a file that never grows: about as long as the first (0.1 ms on the disk where both were
measured), once for all replies of a batch.

1. A proof, if it is there, proves its bytes: they were on the disk before it was written.
2. A segment proves `before` bytes of the one before it, which are synced before it is begun.
3. A seal proves that there is a next segment: it is written once that has its name durably, and
   synced before the next one gets an entry.
4. What is proven but not as it was written is damage. What is bad but not proven is torn off.
5. All that a reply rests on is proven when the reply leaves, and `synced` says so, itself synced.
   It says nothing that is not: it is written after the bytes are synced. A write of it that tears
   leaves the other slot.
6. Where a segment has a successor, that decides (2), and not `synced`.

So nothing depends on a torn end, and the log still holds its operations: they are applied all the
same, under new stamps. By 5 a byte that changes later, or is gone, is noticed, unless no reply
rests on it, as on the last proof itself. Without `synced`, as older releases leave a directory, the
proofs alone decide: a segment that is then cut short is taken for torn.

Requires that a disk which rewrites a sector to append to it keeps the old content through a power
cut, as disks do.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import struct
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgpack

from lpma.file.atomic import atomic_write, fsync_directory, write_all
from lpma.host import sync, sync_data

from ..errors import CheckpointError, LockedError
from ..types import Partition

MAGIC = b"LPMAJRN3"
HEAD = struct.Struct("<8sQQI")  # the head of a segment without its crc
CRC = struct.Struct("<I")
HEAD_BYTES = HEAD.size + CRC.size
ENTRY_HEAD = struct.Struct("<II")
PROOF = struct.Struct("<8sQ")
SYNCED = b"\xc1synced\n"  # no msgpack begins with this byte, and no text contains it
SEALED = b"\xc1sealed\n"
SYNCED_NAME = "synced"
_SLOT = struct.Struct("<8sQQIQ")  # without its crc
_SLOT_MAGIC = b"LPMASYN1"
_SLOT_STARTS = (0, 4096)  # in pages of their own
_SYNCED_BYTES = 8192
_NAME = re.compile(r"journal-(\d{10})")
_CHUNK, _CUT, _SHED = range(3)


class Chunk(NamedTuple):
    """Records first … last of a partition, buffered together under one stamp. `shed`: queries
    among them are not asked, because too many waited."""

    stamp: int
    partition: Partition
    first: int
    last: int
    shed: bool = False  # whether queries among them were refused with "retry"
    digest: str = ""  # of the last record, if it is the last of its poll: see `Polled.fingerprint`


class Cut(NamedTuple):
    """The next `operations` of what was buffered make a batch."""

    operations: int


Entry = Chunk | Cut


def chunks(records: Iterable[Chunk]) -> list[Chunk]:
    """The same, with neighbours joined that differ only in their offsets."""
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


class Fence:
    """A random token in a file of the directory, put there by the last writer to open it: if locks
    do not work, it stops the previous writer."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._token = secrets.token_hex(16).encode()
        with atomic_write(directory / "fence") as file:
            file.write(self._token)

    def check(self) -> None:
        """Raise LockedError if another writer has taken over, CheckpointError if that cannot
        be read."""
        try:
            found = (self._directory / "fence").read_bytes()
        except OSError as error:
            raise CheckpointError(f"{self._directory}: cannot be read: {error}") from error
        if found != self._token:
            raise LockedError(
                f"{self._directory}: another pipeline has taken over: this one must stop"
            )


class Synced(NamedTuple):
    """So many bytes of a segment are synced. salt: of that segment."""

    number: int
    salt: int
    whole: int


class SyncedFile:
    """The file of a directory that says how far the newest segment is synced, for writing; it is
    made if it is not there. Raises OSError. REQUIRES: its name is synced before what it says is
    relied on."""

    def __init__(self, directory: Path) -> None:
        self._file = os.open(directory / SYNCED_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            found = _slots(os.pread(self._file, _SYNCED_BYTES, 0))
            if os.fstat(self._file).st_size < _SYNCED_BYTES:
                os.ftruncate(self._file, _SYNCED_BYTES)  # so that a write changes no size
        except BaseException:
            self.close()
            raise
        self._turn, self._at, _ = max(found, default=(0, _SLOT_STARTS[-1], None))

    def say(self, synced: Synced) -> None:
        """Say so, durably. REQUIRES: those bytes are synced."""
        turn = self._turn + 1
        at = next(start for start in _SLOT_STARTS if start != self._at)  # the other one stays
        slot = _SLOT.pack(_SLOT_MAGIC, turn, *synced)
        slot += CRC.pack(zlib.crc32(slot))
        if os.pwrite(self._file, slot, at) != len(slot):
            raise OSError(errno.EIO, "only a part was written")
        sync_data(self._file)
        self._turn, self._at = turn, at

    def close(self) -> None:
        os.close(self._file)


def read_synced(directory: Path) -> Synced | None:
    """How far the newest segment is known to be synced; None if nothing says so. Raises
    CheckpointError if something else than the file prevents reading it."""
    path = directory / SYNCED_NAME
    try:
        with open(path, "rb") as file:
            found = _slots(file.read(_SYNCED_BYTES))
    except FileNotFoundError:
        return None  # an older release wrote the journal, or nothing was synced yet
    except OSError as error:
        if error.errno != errno.EIO:
            raise CheckpointError(f"{path}: cannot be read ({error}): resume") from error
        return None
    return max(found)[2] if found else None


def _slots(data: bytes) -> list[tuple[int, int, Synced]]:
    """(turn, where it begins, what it says) of each good slot."""
    found = []
    for start in _SLOT_STARTS:
        slot = data[start : start + _SLOT.size]
        crc = data[start + _SLOT.size : start + _SLOT.size + CRC.size]
        if len(crc) == CRC.size and crc == CRC.pack(zlib.crc32(slot)):
            magic, turn, *synced = _SLOT.unpack(slot)
            if magic == _SLOT_MAGIC:
                found.append((turn, start, Synced(*synced)))
    return found


def forget_synced(directory: Path) -> None:
    """Remove what is said of segments that are never read again. Raises OSError."""
    (directory / SYNCED_NAME).unlink(missing_ok=True)


class Journal:
    """The segment that is appended to: a new one, whatever there was before. Raises CheckpointError
    if the disk refuses a write; then the file is as before the call, or no further call is
    accepted.

    number: of the segment. before: the bytes of the previous one that count; they are synced.
    fence: that of the directory; None: no check for another writer.

    `sync` may be called from any thread while another one appends: it proves what was written when
    it began. All else is for one thread, and `rotate` and `close` for a time without a sync."""

    def __init__(
        self, directory: Path, number: int, before: int = 0, fence: Fence | None = None
    ) -> None:
        self._directory = directory
        self._fence = fence
        self._file = -1
        self._syncing = threading.Lock()  # one sync at a time
        self._writing = threading.Lock()  # entries are whole and in their order
        path = segment_path(directory, number)
        with self._only_once(path, "written"):
            self._synced = SyncedFile(directory)
        try:
            self._begin(number, before)  # which syncs the name of that file, too
        except BaseException:
            self._synced.close()
            raise

    def _begin(self, number: int, before: int) -> None:
        """Go on in a new segment, whose name is durable from here on."""
        path = segment_path(self._directory, number)
        temporary = path.with_name(f".tmp-{path.name}")
        salt = secrets.randbits(32)
        head = HEAD.pack(MAGIC, number, before, salt)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with self._only_once(path, "written"):
            file = os.open(temporary, flags, 0o666)
            try:
                write_all(file, head + CRC.pack(zlib.crc32(head)))
                sync(file)
                os.rename(temporary, path)
                fsync_directory(self._directory)
            except BaseException:
                os.close(file)
                raise
        self.path, self.number, self.size = path, number, HEAD_BYTES
        self._file, self._salt = file, salt
        self._unsynced, self._whole = False, True

    @contextmanager
    def _only_once(self, path: Path, done: str) -> Iterator[None]:
        """A block whose failure is final: no further call is accepted."""
        try:
            yield
        except BaseException as error:
            self._whole = False
            if not isinstance(error, OSError):
                raise
            raise CheckpointError(
                f"{path}: cannot be {done} ({error}): free the disk and resume"
            ) from error

    def append(self, entries: Iterable[Entry]) -> None:
        """Write entries. They survive a kill from here on, a power cut from the next `sync`."""
        data = b"".join(encoded(msgpack.packb(entry_row(e)), self._salt) for e in entries)
        with self._writing:
            self._check_whole()
            self._unsynced = True
            self._write(data)

    def _write(self, data: bytes) -> None:
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
        """Make what was appended survive a power cut, and record that in the segment and beside it:
        then replies may leave. Raises LockedError if another writer has taken over."""
        with self._syncing:
            with self._writing:
                self._check_whole()
                whole, unsynced = self.size, self._unsynced
            if unsynced:
                self._fsync()
                with self._writing:
                    self._check_whole()
                    self._unsynced = self.size > whole  # what was appended meanwhile is
                    self._write(encoded(PROOF.pack(SYNCED, whole), self._salt))
                with self._only_once(self.path, "synced"):
                    self._synced.say(Synced(self.number, self._salt, whole))
        if self._fence is not None:
            self._fence.check()

    def _fsync(self) -> None:
        # After a failed fsync the pages may be lost and still look clean: no second try.
        with self._only_once(self.path, "synced"):
            sync(self._file)

    def rotate(self) -> int:
        """Begin the next segment, and return its number. Everything before it is synced by then.
        Raises LockedError if another writer has taken over."""
        if self._fence is not None:
            self._fence.check()
        self._check_whole()
        self._fsync()  # the last proof too: it counts
        file, path, salt, size = self._file, self.path, self._salt, self.size
        self._begin(self.number + 1, size)
        try:
            with self._only_once(path, "sealed"):
                seal(file, salt, size)
        finally:
            os.close(file)
        return self.number

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self._synced.close()


def seal(file: int, salt: int, whole: int) -> None:
    """Record at the end of a segment, open for appending, that `whole` bytes of it count and that
    the next one is there. REQUIRES: they are synced, and so is its name."""
    write_all(file, encoded(PROOF.pack(SEALED, whole), salt))
    sync(file)


def encoded(payload: bytes, salt: int) -> bytes:
    return ENTRY_HEAD.pack(len(payload), zlib.crc32(payload, salt)) + payload


# Names ---------------------------------------------------------------------------------------


def segment_path(directory: Path, number: int) -> Path:
    return directory / f"journal-{number:010d}"


def segment_numbers(directory: Path) -> list[int]:
    """The numbers of the segments in `directory`, ascending. Raises CheckpointError if it cannot
    be read."""
    try:
        found = [_NAME.fullmatch(name) for name in os.listdir(directory)]
    except OSError as error:
        raise CheckpointError(f"{directory}: cannot be read: {error}") from error
    return sorted(int(match[1]) for match in found if match)
