"""The checkpoint directory: what is in the graph and what has been read from the stream, as one.

Idea: both must agree after any crash, so they are one thing on disk. A commit is one rename; a
crash before it leaves the previous checkpoint, the journal of all that happened since, and a stray
directory that the next start removes. The stream waits for the first two steps only: what is
written is an image, and what happens in the meantime goes into the journal's next segment.

    directory/lock                   flocked by the one writer, never removed
    directory/fence                  a random token of the last writer to take the directory over
    directory/checkpoint-N/          see checkpoint.py
    directory/journal-K              see journal.py
    directory/synced                 how far the newest of these is synced: see journal.py
    directory/schemas/               of records in Confluent's envelope: see registry/schemas.py

Commit, in steps that are repeated as comments where they happen:

    while the stream waits (checkpointer.py)   while it goes on
    1. copy what is to be kept                 3. make a temporary directory
    2. begin the journal's next segment,       4. write and sync each part, then checkpoint.json
       the one before synced                      with all checksums, then the directory
                                               5. look whether the fence still holds our token
                                               6. rename: this is the commit
                                               7. fsync the parent, so that the name lasts
                                               8. remove all but the two newest and those that
                                                  the retention policy keeps, and the segments
                                                  before all of these

Invariants, at any moment and so after any crash:
1. Once there was a good checkpoint, there is one, with every segment from its own on.
2. A segment is removed only when no checkpoint that is kept begins at it or before it. So between
   two that are kept, nothing of the journal is missing, and any version can be had again.
3. Once a writer has taken over, the previous one commits nothing and sends no reply.

Loading takes the newest checkpoint if every byte of it is as written, else the one before it,
and then what the journal says happened since. If none is good, it refuses; if the journal is
damaged, it refuses too, unless the loss is accepted. The lock keeps a second writer out; if locks
do not work (some network file systems), the fence stops the first. Requires a POSIX file system.

Removal goes in an order that a crash cannot harm: first a checkpoint's manifest, without which
it is none, then the rest of it, and the journal's segments last. Before an old one is relied on,
every byte of it is compared, once.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from lpma.display.words import size_of
from lpma.errors import FormatError
from lpma.file.atomic import fsync_directory, make_directory
from lpma.host import flock_holder

from ..errors import CheckpointError, JournalError, LockedError
from ..events import log_event
from ..registry.schemas import remove_schemas
from .checkpoint import (
    MANIFEST,
    VERIFIED,
    Checkpoint,
    CheckpointSnapshot,
    bytes_of,
    read_checkpoint,
    verify,
    write_checkpoint,
)
from .journal import Fence, Journal, forget_synced, segment_numbers, segment_path
from .journal_reader import History, Segment, go_on_behind, read_journal, remove_blank
from .retention import RetentionPolicy

G = TypeVar("G")
_NAME = re.compile(r"checkpoint-(\d{10})")


class CheckpointDirectory:
    """The directory of one pipeline's checkpoints, held by this writer until `close`.

    Whoever wrote before is stopped by `begin_journal` or `go_on_from`, which `commit` requires.
    Threads: `commit` may run alongside the other methods; each of them is for one thread at a time.
    Raises LockedError if another writer has it, CheckpointError if the disk refuses anything."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = directory_path(path)
        self.kept = KeptCheckpoints(self.path)
        self.journal: Journal | None = None
        self._fence: Fence | None = None  # before this has taken over
        # The newest checkpoint known to be good: its number and its segment.
        self._good: tuple[int, int] | None = None
        self._made = not self.path.is_dir()
        try:
            make_directory(self.path)
        except OSError as error:
            raise CheckpointError(f"{self.path}: cannot hold checkpoints: {error}") from error
        self._lock = take_lock(self.path)

    def _take_over(self) -> Fence:
        """Stop whoever wrote here before, where locks do not work, and remove what a crash has left
        half-written. A start that is refused before has touched nothing."""
        if self._fence is not None:
            return self._fence
        try:
            fence = Fence(self.path)
            for stray in [*self.path.glob(".tmp-*"), *self.path.glob(".fence.*.tmp")]:
                if stray.is_dir():
                    shutil.rmtree(stray)
                else:
                    stray.unlink()
        except OSError as error:
            raise CheckpointError(f"{self.path}: cannot be written: {error}") from error
        self._fence = fence
        return fence

    def close(self) -> None:
        if self.journal is not None:
            self.journal.close()
            self.journal = None
        os.close(self._lock)

    def discard(self) -> None:
        """As `close`, for a stream that has begun here and taken nothing: what it wrote goes, and
        the directory if it was made for it. REQUIRES: no entry was written to the journal, so that
        what a crash leaves of this is what it leaves of a start."""
        try:
            if self._fence is not None:
                self._fence.check()
            for number in self.numbers():
                remove_checkpoint(self.path, number)
            forget_synced(self.path)  # first: it asks for the segments
            for number in segment_numbers(self.path):
                segment_path(self.path, number).unlink()
            remove_schemas(self.path)
            for name in ("fence", "lock"):
                (self.path / name).unlink()
            if self._made:
                with suppress(OSError):  # somebody else has put something there
                    self.path.rmdir()
        except OSError as error:
            raise CheckpointError(f"{self.path}: cannot be emptied: {error}") from error
        finally:
            self.close()

    def numbers(self) -> list[int]:
        """The numbers of the checkpoints there, good or not, in ascending order."""
        return checkpoint_numbers(self.path)

    # The journal -----------------------------------------------------------------------------

    def begin_journal(self) -> Journal:
        """The journal of a stream in which nothing has happened yet. What an interrupted start left
        there is never read, and goes. Raises CheckpointError if something has happened: then its
        checkpoint is lost."""
        if lost_checkpoint(self.path):
            raise CheckpointError(f"{self.path}: {LOST}")
        fence = self._take_over()
        number = max(segment_numbers(self.path), default=-1) + 1
        try:
            remove_schemas(self.path)
            forget_synced(self.path)
        except OSError as error:
            raise CheckpointError(f"{self.path}: cannot be written: {error}") from error
        self.journal = Journal(self.path, number, fence=fence)
        remove_blank(self.path, 0, number)
        return self.journal

    def go_on_from(self, found: Checkpoint, *, accept_loss: bool = False) -> History:
        """What the journal says happened since `found` was taken. What happens from now on goes
        into a new segment of this writer, which takes the place of those that starts that failed
        have left, if nothing stands in them.

        Raises JournalError if it is damaged. With `accept_loss`, what it says from there on is
        given up: then a checkpoint must be taken before anything else happens, since the journal
        after `found` stays as it is."""
        fence = self._take_over()
        history = read_journal(self.path, found.segment)
        damage = history.damage
        # A newer checkpoint that cannot be read at the moment may need any of them.
        is_newest = found.number == self.numbers()[-1]
        if damage is None:
            self.journal = go_on_behind(history, fence, over_blank=is_newest)
        elif accept_loss:
            # Not under the number of a missing one, which may come back.
            end = history.segments[-1].number + 1
            self.journal = Journal(self.path, end, fence=fence)
            if is_newest:
                remove_blank(self.path, damage.number + 1, end)
        else:
            raise journal_error(self.path, found.number, damage)
        return history

    # Writing ---------------------------------------------------------------------------------

    def commit(self, taken: CheckpointSnapshot) -> tuple[int, int]:
        """Write what was taken as a checkpoint; its number and its bytes.

        On an error, the previous checkpoint and the journal are as they were, unless the rename had
        happened: then the new one is complete. Resume to find out."""
        assert self._fence is not None, "the journal has begun"
        number = max(self.numbers(), default=-1) + 1
        temporary = self.path / f".tmp-{number:010d}"
        done = "not written"
        try:
            temporary.mkdir()  # commit 3
            nbytes = write_checkpoint(temporary, number, taken)  # commit 4
            self._fence.check()  # commit 5
            os.rename(temporary, checkpoint_path(self.path, number))  # commit 6: it is visible now
            done = "committed, but what follows failed"
            fsync_directory(self.path)  # commit 7
            oldest = self._good or (number, taken.segment)
            remove_below(self.path, *oldest, self.kept.below(oldest[0]))  # commit 8
            self._good = number, taken.segment
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)  # or it would count as used
            room = _room(self.path, error, taken)
            raise CheckpointError(
                f"{self.path}: checkpoint {number} was {done} ({error}){room}; free the disk and "
                "resume"
            ) from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return number, nbytes

    # Reading ---------------------------------------------------------------------------------

    def newest(self, load: Callable[[Checkpoint], G]) -> tuple[Checkpoint, G]:
        """The newest good checkpoint and what `load` makes of its files. Raises CheckpointError,
        naming what is wrong with each, if none is good; `load` raises that or FormatError."""
        problems = []
        for number in reversed(self.numbers()):
            try:
                found = read_checkpoint(checkpoint_path(self.path, number), number)
                verify(found)
                loaded = load(found)
            except (CheckpointError, OSError) as error:
                check_descriptors(self.path, error)
                problems.append(f"checkpoint {number}: {error}")
            except FormatError as error:
                problems.append(f"checkpoint {number}: it cannot be loaded: {error}")
            else:
                for problem in problems:
                    log_event("damaged checkpoint", logging.WARNING, problem=problem, used=number)
                self._good = number, found.segment
                return found, loaded
        if problems:
            raise CheckpointError(
                f"{self.path}: no checkpoint is good ({'; '.join(problems)}): restore the "
                "directory from a copy, or start a new one and read the stream again"
            )
        raise CheckpointError(f"{self.path}: holds no checkpoint: start with Pipeline(…)")


def _room(directory: Path, error: OSError, taken: CheckpointSnapshot) -> str:
    """What is said of a checkpoint for which there is no room: how much it needs and is free, and
    how much `lpma checkpoint prune` can free; "" of another error."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return ""
    found = ""
    with suppress(OSError):
        found = f": it needs {size_of(bytes_of(taken))}"
        if error.errno == errno.ENOSPC:  # of a quota, the file system's figure says nothing
            found += f", and {size_of(shutil.disk_usage(directory).free)} are free"
        older = checkpoint_numbers(directory)[:-1]
        files = [f for n in older for f in checkpoint_path(directory, n).iterdir()]
        if size := sum(file.stat().st_size for file in files):
            found += (
                f"; `lpma checkpoint prune {directory}` frees {size_of(size)} of older "
                "checkpoints, once the stream has stopped"
            )
    return found


class KeptCheckpoints:
    """The old checkpoints of a directory that its retention policy keeps. One thread at a time."""

    def __init__(self, path: Path) -> None:
        self.policy = RetentionPolicy()
        self._path = path
        self._manifests: dict[int, Checkpoint] = {}

    def below(self, number: int) -> dict[int, int]:
        """The checkpoints below a number that the policy keeps, each with its segment. Each is
        verified once; one that is damaged is logged, and not kept."""
        found = {n: kept for n in checkpoint_numbers(self._path) if (kept := self._kept(n))}
        while self.policy:
            times = {n: kept.time for n, kept in found.items()}
            old = [n for n in self.policy.kept(times) if n < number]
            damaged = [n for n in old if not _verified(found[n])]
            if not damaged:
                return {n: found[n].segment for n in old}
            for n in damaged:
                del found[n]
        return {}

    def _kept(self, number: int) -> Checkpoint | None:
        """What the manifest of a checkpoint says, None if it is damaged. It is read once."""
        if self.policy and number not in self._manifests:
            try:
                found = read_checkpoint(checkpoint_path(self._path, number), number)
                # Of its state nothing else is asked, and the producers may be many.
                found = replace(found, state=replace(found.state, producers={}), waiting=[])
                self._manifests[number] = found
            except CheckpointError as error:
                check_descriptors(self._path, error)
                log_event("damaged checkpoint", logging.WARNING,
                          problem=f"checkpoint {number}: {error}", used=None)  # fmt: skip
        return self._manifests.get(number)


def _verified(found: Checkpoint) -> bool:
    """Whether a checkpoint is as it was written. It is read only if that is not noted yet."""
    if found.is_verified:
        return True
    try:
        verify(found)
        (found.path / VERIFIED).touch()
    except CheckpointError as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno != errno.EIO:
            return True  # something else prevents reading it: it is kept, and read another time
        log_event("damaged checkpoint", logging.WARNING,
                  problem=f"checkpoint {found.number}: {error}", used=None)  # fmt: skip
        return False
    return True


def check_descriptors(path: Path, error: BaseException) -> None:
    """Raise CheckpointError if a checkpoint could not be read for a reason outside it."""
    cause = error if isinstance(error, OSError) else error.__cause__
    if isinstance(cause, OSError) and cause.errno in (errno.EMFILE, errno.ENFILE):
        raise CheckpointError(
            f"{path}: cannot be read: {cause}: close files or raise the limit (ulimit -n), and "
            "resume"
        ) from cause


def checkpoint_path(directory: Path, number: int) -> Path:
    return directory / f"checkpoint-{number:010d}"


def checkpoint_numbers(path: str | os.PathLike[str]) -> list[int]:
    """The numbers of the checkpoints in directory `path`, ascending; empty if there is none.
    Raises CheckpointError if it cannot be read."""
    try:
        found = [_NAME.fullmatch(name) for name in os.listdir(path)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error}") from error
    return sorted(int(match[1]) for match in found if match)


def remove_below(
    directory: Path, number: int, segment: int, kept: Mapping[int, int] | None = None
) -> None:
    """Remove the checkpoints below `number`, then the journal's segments below `segment`; but not
    the checkpoints `kept`, nor any segment from the first of theirs on."""
    kept = kept or {}
    for old in checkpoint_numbers(directory):
        if old < number and old not in kept:
            remove_checkpoint(directory, old)
    first = min([segment, *kept.values()])
    for old in segment_numbers(directory):
        if old < first:
            segment_path(directory, old).unlink()


def remove_checkpoint(directory: Path, number: int) -> None:
    path = checkpoint_path(directory, number)
    # Without its manifest it is not a checkpoint, should the removal stop half-way.
    (path / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(path)


LOST = (
    "holds a journal of what happened, but no checkpoint any more: restore the checkpoints from a "
    "copy, or take a new directory and read the stream again"
)


def lost_checkpoint(path: Path) -> bool:
    """Whether there is a journal with entries, but no checkpoint. No entry is written before the
    first checkpoint is committed."""
    segments = segment_numbers(path)
    if not segments or checkpoint_numbers(path):
        return False
    return any(found.entries for found in read_journal(path, segments[0]).segments)


def check_can_begin(path: Path) -> None:
    """Raise CheckpointError if no stream can begin in this directory, or make it, as far as can be
    told without writing."""
    if path.is_dir() and lost_checkpoint(path):
        raise CheckpointError(f"{path}: {LOST}")
    place = path.absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise CheckpointError(f"{path}: cannot hold checkpoints: {place} is not a directory")
    if not os.access(place, os.W_OK | os.X_OK):
        raise CheckpointError(f"{path}: cannot hold checkpoints: {place} cannot be written")


def writer_of(path: Path) -> int | None:
    """The process that holds a directory, without touching its lock; None if there is none, or it
    cannot be told: it is on another machine or in another container, or this is no Linux."""
    try:
        return flock_holder((path / "lock").stat())
    except OSError:
        return None


def take_lock(
    path: Path, file: str = "lock", mode: int = 0o666, who: str = "another pipeline writes here"
) -> int:
    """Keep others out of directory `path`, by its lock `file`, until the descriptor returned is
    closed. Raises LockedError if another one is there, CheckpointError if it cannot be written."""
    lock = -1
    try:
        lock = os.open(path / file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if lock >= 0:
            os.close(lock)
        if isinstance(error, BlockingIOError):
            raise LockedError(f"{path}: {who}: stop it, or use another directory") from None
        raise CheckpointError(f"{path / file}: cannot be locked: {error}") from error
    if not _is_at(lock, path / file):  # whoever held it has just discarded the directory
        os.close(lock)
        raise LockedError(f"{path}: another pipeline has just ended here: start again")
    return lock


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def journal_error(directory: Path, number: int, damage: Segment) -> JournalError:
    """Why a resume from checkpoint `number` is refused, and what can be done."""
    return JournalError(
        f"{directory}: {damage.problem}: restore it from a copy; or give up what the journal says "
        "from there on, with `lpma ingest --set checkpoints.accept_journal_loss=true` or "
        f"Pipeline.resume(…, accept_journal_loss=True): checkpoint {number} and the log lose no "
        "update, but stamps are new, and replies that are repeated may differ"
    )


def directory_path(given: str | os.PathLike[str]) -> Path:
    """The path of a checkpoint directory. Raises CheckpointError for what is none."""
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str):
        raise CheckpointError(f"checkpoint is {given!r}: expected the path of a directory")
    return Path(given)


def has_checkpoint(directory: str | os.PathLike[str]) -> bool:
    """Whether there is a checkpoint there for `Pipeline.resume`, good or not.

    >>> ingest.has_checkpoint("nowhere")
    False
    """
    return bool(checkpoint_numbers(directory_path(directory)))
