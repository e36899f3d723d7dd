"""Which checkpoints a directory holds, which of them stay, and how the others are removed.

What is removed goes in an order that a crash cannot harm: first a checkpoint's manifest, without
which it is none, then the rest of it, and the journal's segments last. `retention.py` says which
old checkpoints are to stay; before one is counted on, every byte of it is compared, once.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..errors import CheckpointError
from ..events import log_event
from .checkpoint import MANIFEST, VERIFIED, Checkpoint, read_checkpoint, verify
from .journal import segment_numbers, segment_path
from .retention import Ladder, on_ladder

_NAME = re.compile(r"checkpoint-(\d{10})")


class Rungs:
    """The checkpoints of a directory that are on its ladder. One thread at a time."""

    def __init__(self, path: Path) -> None:
        self.ladder: Ladder = ()
        self._path = path
        self._manifests: dict[int, Checkpoint] = {}

    def below(self, number: int) -> dict[int, int]:
        """The checkpoints below a number that the ladder keeps, each with its segment. They are
        verified once; one that is damaged is told, and not kept."""
        found = {n: kept for n in checkpoint_numbers(self._path) if (kept := self._kept(n))}
        while self.ladder:
            times = {n: kept.time for n, kept in found.items()}
            rungs = [n for n in on_ladder(self.ladder, times) if n < number]
            damaged = [n for n in rungs if not _verified(found[n])]
            if not damaged:
                return {n: found[n].segment for n in rungs}
            for n in damaged:
                del found[n]
        return {}

    def _kept(self, number: int) -> Checkpoint | None:
        """What the manifest of a checkpoint says, None if it is damaged. It is read once."""
        if self.ladder and number not in self._manifests:
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
