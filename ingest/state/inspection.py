"""Looking after a checkpoint directory: what is in it, whether it is good, what can be removed.

Looking needs no lock: it is safe while a pipeline writes there, even though old checkpoints may
vanish. Pruning keeps writers out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ..errors import CheckpointError
from .checkpoint import Checkpoint, read_checkpoint, verify
from .directory import (
    LOST,
    checkpoint_numbers,
    checkpoint_path,
    journal_error,
    lost_checkpoint,
    remove_below,
    remove_checkpoint,
    take_lock,
)
from .journal import Cut, segment_numbers, segment_path
from .journal_reader import Segment, read_journal


@dataclass(frozen=True)
class FoundCheckpoint:
    """A checkpoint that is there. `problem`: why it is not good, None if it is."""

    number: int
    checkpoint: Checkpoint | None  # None if its manifest cannot be read
    problem: str | None


@dataclass(frozen=True)
class Resume:
    checkpoint: int  # from which it goes on
    segments: list[int]  # of the journal, which it reads
    operations: int  # which it applies again


@dataclass(frozen=True)
class Report:
    """What `verify_directory` found: `segments` are those of the journal that a good checkpoint
    needs, missing ones too. `resume` is None if it would be refused, for the reason `refusal`.
    """

    checkpoints: list[FoundCheckpoint]
    segments: list[Segment]
    resume: Resume | None
    refusal: str | None

    @property
    def problems(self) -> list[str]:
        return [
            *(f"checkpoint {c.number}: {c.problem}" for c in self.checkpoints if c.problem),
            *(s.problem for s in self.segments if s.problem),
        ]

    @property
    def good(self) -> list[Checkpoint]:
        return _good(self.checkpoints)


def _good(found: list[FoundCheckpoint]) -> list[Checkpoint]:
    return [c.checkpoint for c in found if c.checkpoint and not c.problem]


def find_checkpoints(directory: Path, *, every_byte: bool) -> list[FoundCheckpoint]:
    """The checkpoints there, in ascending order; `every_byte` checks them against their checksums,
    else only manifests and sizes are checked. Raises CheckpointError if there is none."""
    found = [
        one
        for number in checkpoint_numbers(directory)
        if (one := _look(directory, number, every_byte)) is not None
    ]
    if not found and directory.is_dir() and lost_checkpoint(directory):
        raise CheckpointError(f"{directory}: {LOST}")
    if not found:
        raise CheckpointError(
            f"{directory}: holds no checkpoint: `lpma ingest --checkpoint` makes one"
        )
    return found


def _look(directory: Path, number: int, every_byte: bool) -> FoundCheckpoint | None:
    path = checkpoint_path(directory, number)
    checkpoint = None
    try:
        checkpoint = read_checkpoint(path, number)
        if every_byte:
            verify(checkpoint)
    except CheckpointError as error:
        # Removed since: the pipeline that writes there has newer ones.
        return FoundCheckpoint(number, checkpoint, str(error)) if path.exists() else None
    return FoundCheckpoint(number, checkpoint, None)


def segment_sizes(directory: Path) -> dict[int, int]:
    """The journal's segments that are there, with their bytes."""
    sizes = {}
    for number in segment_numbers(directory):
        try:
            sizes[number] = os.stat(segment_path(directory, number)).st_size
        except FileNotFoundError:
            continue
    return sizes


def verify_directory(directory: Path) -> Report:
    """Read every byte of the checkpoints and of the journal. Raises CheckpointError if there is
    no checkpoint.

    A pipeline removes what it no longer needs, checkpoints first: then the directory is read
    again."""
    while True:
        report = _verified(directory)
        gone = {c.number for c in report.checkpoints} - {*checkpoint_numbers(directory)}
        if not (gone and report.problems):
            return report


def _verified(directory: Path) -> Report:
    checkpoints = find_checkpoints(directory, every_byte=True)
    segments: dict[int, Segment] = {}
    resume = None
    refusal: str | None = "no checkpoint is good"
    good = _good(checkpoints)
    whole = read_journal(directory, good[0].segment) if good else None  # once, for all
    for found in good:  # the verdict on the newest one is the one kept
        since = whole.since(found.segment) if whole is not None else None
        history = since or read_journal(directory, found.segment)
        segments |= {segment.number: segment for segment in history.segments}
        if history.damage is not None:
            resume, refusal = None, str(journal_error(directory, found.number, history.damage))
        else:
            entries = [*found.waiting, *history.entries]
            again = sum(entry.operations for entry in entries if isinstance(entry, Cut))
            numbers = [segment.number for segment in history.segments]
            resume, refusal = Resume(found.number, numbers, again), None
    return Report(checkpoints, [*segments.values()], resume, refusal)


def prune(directory: Path, keep: int = 1) -> tuple[list[int], list[int], Report]:
    """Remove all checkpoints but the newest `keep` good ones, and the part of the journal that
    these do not need; the numbers that were removed, those kept, and what was found before.

    Damage to the journal after the newest checkpoint is not a reason to keep older ones: they need
    the same part of it, and more. Raises LockedError if a pipeline writes there, CheckpointError if
    no checkpoint is good, or if the newest is not and the journal that would make up for
    it is damaged too: then nothing is removed."""
    find_checkpoints(directory, every_byte=False)  # before there is a lock file
    lock = take_lock(directory)
    try:
        report = verify_directory(directory)
        if report.resume is None and report.checkpoints[-1].problem:
            raise CheckpointError(
                f"{directory}: {'; '.join(report.problems)}: nothing was removed; restore the "
                "directory from a copy"
            )
        kept = report.good[-keep:]
        gone = sorted({c.number for c in report.checkpoints} - {c.number for c in kept})
        try:
            for number in gone:
                remove_checkpoint(directory, number)
            remove_below(directory, kept[0].number, kept[0].segment)
        except OSError as error:
            raise CheckpointError(f"{directory}: not all could be removed: {error}") from error
    finally:
        os.close(lock)
    return gone, [checkpoint.number for checkpoint in kept], report
