"""Reading the journal: which part of it counts, and where it is damaged. `journal.py` has the
format.

Each segment is read up to its first bad entry. Its successor or its seal says how far it must be
good; of the newest one the last proof found after the bad entry, or the file `synced`. Short of
that it is damaged. A reader gets the entries before the first damage, which are a true beginning of
what happened.

Reading needs no lock. `synced` is read first, then the segments from the last to the first, since
each may grow until the next one is there, and a writer may begin one at any time.
"""

from __future__ import annotations

import errno
import math
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import msgpack

from lpma.file.atomic import fsync_directory
from lpma.host import sync

from ..errors import CheckpointError
from .journal import (
    CRC,
    ENTRY_HEAD,
    HEAD,
    HEAD_BYTES,
    MAGIC,
    PROOF,
    SEALED,
    SYNCED,
    Entry,
    Fence,
    Journal,
    Synced,
    entry_of,
    read_synced,
    seal,
    segment_numbers,
    segment_path,
)

MAX_ENTRY_BYTES = 1024


@dataclass(frozen=True)
class Segment:
    """A segment as it was found."""

    number: int
    path: Path
    problem: str | None = None  # it is missing, damaged, or does not continue the previous one
    size: int = 0  # of the file
    before: int = 0
    salt: int = 0
    entries: list[Entry] = field(default_factory=list)  # those that count, before any damage
    good: int = HEAD_BYTES  # the bytes of these and of what lies between them
    torn: int = 0  # bytes after them that a crash left
    sealed: bool = False

    @property
    def is_blank(self) -> bool:
        """Whether nothing was noted in it, as where a start failed: no entry, proof or torn end."""
        return self.problem is None and self.good == HEAD_BYTES and not self.torn


@dataclass(frozen=True)
class History:
    """The journal from a segment on, one `Segment` for each number."""

    segments: list[Segment]

    @property
    def damage(self) -> Segment | None:
        """The first segment with a problem; None if the journal is whole."""
        return next((segment for segment in self.segments if segment.problem), None)

    @property
    def entries(self) -> list[Entry]:
        """What happened, up to the first damage."""
        entries: list[Entry] = []
        for segment in self.segments:
            entries += segment.entries
            if segment.problem:
                break
        return entries

    def since(self, first: int) -> History | None:
        """What happened since a later segment; None if that has to be read for itself."""
        segments = [segment for segment in self.segments if segment.number >= first]
        begins = segments and segments[0].number == first and not segments[0].problem
        return History(segments) if begins else None

    @property
    def torn(self) -> int:
        """The bytes at its end that a crash tore off."""
        return self.segments[-1].torn


def read_journal(directory: Path, first: int, last: int | None = None) -> History:
    """What happened since segment `first` was begun, to the end of segment `last` or, if it is
    None, until now. Raises CheckpointError if something other than the journal prevents reading it,
    such as too many open files."""
    synced = read_synced(directory)
    found: list[Segment] = []
    following: Segment | None = None
    # The one after `last` says how far that must be good.
    stop = math.inf if last is None else last + 1
    for number in reversed([n for n in segment_numbers(directory) if first <= n <= stop]):
        if following is not None and following.number > number + 1:
            following = None
            found.append(_missing(directory, number + 1))
        following = _read(directory, number, following, synced)
        if not found and not following.path.exists():
            following = None  # taken back meanwhile; if it was not, the one before it says so
            continue
        found.append(following)
    if not found or found[-1].number > first:
        found.append(_missing(directory, first))
    found.reverse()
    # The seal of the last one says that there is a next one, which a writer may just have begun.
    following = _missing(directory, found[-1].number + 1)
    if found[-1].sealed and not following.path.exists():
        found.append(following)
    # What was synced is there, unless somebody took it away.
    found += [
        _missing(directory, number)
        for number in range(found[-1].number + 1, synced.number + 1 if synced else 0)
    ]
    # Only the first may begin anew: another one that does belongs to a later history.
    for i, segment in enumerate(found[1:], 1):
        if segment.before == 0 and not segment.problem:
            given_up = f"{segment.path.name} begins anew: what was before it was given up"
            found[i] = replace(segment, problem=given_up, entries=[])
    return History([s for s in found if last is None or s.number <= last])


def go_on_behind(
    history: History, fence: Fence | None = None, *, over_blank: bool = False
) -> Journal:
    """A new segment after what another writer has left. over_blank: in place of the blank ones at
    the end, so that failing starts do not pile them up. REQUIRES: no damage; with `over_blank`, no
    checkpoint needs a later segment than the first. Raises CheckpointError if the disk refuses."""
    segments = list(history.segments)
    last = segments[-1]
    try:
        if over_blank:
            while len(segments) > 1 and segments[-1].is_blank and segments[-2].is_blank:
                _take_back(segments.pop(), segments[-1])
            last = segments[-1]
        with _appending(last.path) as file:
            sync(file)  # a writer that was killed may not have
        number, before = last.number + 1, last.good
        if over_blank and last.is_blank:  # one rename puts the new one there
            number, before = last.number, last.before
            segments.pop()
        journal = Journal(last.path.parent, number, before, fence)
        try:
            # All but the last are sealed, unless a writer was stopped just before it sealed one.
            for segment in segments:
                if not segment.sealed:
                    with _appending(segment.path) as file:
                        seal(file, segment.salt, segment.good)
        except BaseException:
            journal.close()
            raise
    except OSError as error:
        raise CheckpointError(f"{last.path}: cannot be sealed ({error}): resume") from error
    return journal


def _take_back(last: Segment, previous: Segment) -> None:
    """Remove `last`, behind a blank one, whose seal goes first: it says that `last` is there."""
    with _appending(previous.path) as file:
        os.ftruncate(file, previous.good)
        sync(file)
    last.path.unlink()
    fsync_directory(last.path.parent)


def remove_blank(directory: Path, first: int, end: int) -> None:
    """Remove the blank segments from `first` on, below `end`, that failed starts have left.
    REQUIRES: nobody reads them, since segment `end` begins anew. Raises CheckpointError."""
    blank = [n for n in segment_numbers(directory)
             if first <= n < end and _read(directory, n, None, None).is_blank]  # fmt: skip
    try:
        for number in blank:
            segment_path(directory, number).unlink()
    except OSError as error:
        raise CheckpointError(f"{directory}: cannot be written ({error}): resume") from error


@contextmanager
def _appending(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        yield file
    finally:
        os.close(file)


# One segment ---------------------------------------------------------------------------------


class _Proof(NamedTuple):
    at: int  # where it stands
    whole: int
    seals: bool


def _read(
    directory: Path, number: int, following: Segment | None, synced: Synced | None
) -> Segment:
    """Segment `number`; `following` is the next one as it was found, damaged or not."""
    path = segment_path(directory, number)
    data = b""
    try:
        data = path.read_bytes()
        before, salt = _head(data, number)
    except FileNotFoundError:
        return _missing(directory, number)
    except OSError as error:
        if error.errno != errno.EIO:  # then the segment is not to blame
            raise CheckpointError(f"{path}: cannot be read ({error}): resume") from error
        return Segment(number, path, f"{path.name} cannot be read: {error}")
    except ValueError as error:
        return Segment(number, path, f"{path.name} {error}", len(data))
    items, proofs = _items(data, salt)
    sealed = next((proof for proof in proofs if proof.seals), None)
    limit = following.before if following is not None else 0
    limit = limit or (sealed.whole if sealed else 0)
    said = [synced.whole] if synced is not None and synced[:2] == (number, salt) else []
    proven = limit or max([proof.whole for proof in proofs] + said, default=0)
    ends = [HEAD_BYTES, *(end for end, _ in items)]
    good = max(end for end in ends if not limit or end <= limit)
    problem = None
    if proven > good:
        problem = f"{path.name} is damaged at byte {good} of {proven}"
    return Segment(
        number,
        path,
        problem,
        len(data),
        before,
        salt,
        [item for end, item in items if end <= good and not isinstance(item, _Proof)],
        good,
        0 if problem else (sealed.at if sealed else len(data)) - good,
        sealed is not None,
    )


def _missing(directory: Path, number: int) -> Segment:
    path = segment_path(directory, number)
    return Segment(number, path, f"{path.name} is missing")


def _head(data: bytes, number: int) -> tuple[int, int]:
    """`before` and `salt` of a segment. Raises ValueError, with the end of a sentence."""
    if len(data) < HEAD_BYTES:
        raise ValueError("is cut short")
    if data[:7] == MAGIC[:7] and data[7:8] != MAGIC[7:]:
        raise ValueError(f"is of format {data[7:8]!r}, but this release reads {MAGIC[7:]!r}")
    magic, found, before, salt = HEAD.unpack_from(data)
    if magic != MAGIC or (zlib.crc32(data[: HEAD.size]),) != CRC.unpack_from(data, HEAD.size):
        raise ValueError("is damaged in its head")
    if found != number:
        raise ValueError(f"is segment {found} under another name")
    return before, salt


def _items(data: bytes, salt: int) -> tuple[list[tuple[int, Entry | _Proof]], list[_Proof]]:
    """What stands in a segment up to the first bad entry or the seal, each with the byte it ends
    at; and all proofs there, even those after it."""
    items: list[tuple[int, Entry | _Proof]] = []
    proofs: list[_Proof] = []
    at = HEAD_BYTES
    while (found := _item(data, at, salt)) is not None:
        end, item = found
        if isinstance(item, _Proof):
            proofs.append(item)
            if item.seals:
                return items, proofs
        items.append((end, item))
        at = end
    return items, [*proofs, *_proofs_behind(data, at, salt)]


def _item(data: bytes, at: int, salt: int) -> tuple[int, Entry | _Proof] | None:
    """The entry or proof at byte `at`, with the byte it ends at; None if none is good."""
    start = at + ENTRY_HEAD.size
    if len(data) < start:
        return None
    size, crc = ENTRY_HEAD.unpack_from(data, at)
    payload = data[start : start + min(size, MAX_ENTRY_BYTES)]
    if len(payload) != size or zlib.crc32(payload, salt) != crc:
        return None
    if payload[:8] in (SYNCED, SEALED) and size == PROOF.size:
        kind, whole = PROOF.unpack(payload)
        return start + size, _Proof(at, whole, kind == SEALED)
    try:
        return start + size, entry_of(msgpack.unpackb(payload))
    except (ValueError, TypeError, msgpack.UnpackException):
        return None


def _proofs_behind(data: bytes, at: int, salt: int) -> Iterator[_Proof]:
    """The proofs from byte `at` on, wherever they stand."""
    for kind in (SYNCED, SEALED):
        place = data.find(kind, at)
        while place >= 0:
            found = _item(data, place - ENTRY_HEAD.size, salt)
            if found is not None and isinstance(found[1], _Proof):
                yield found[1]
            place = data.find(kind, place + 1)
