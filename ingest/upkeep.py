"""Looking after a checkpoint directory: what is in it, whether it is good, what can go.

Looking needs no lock: it may be done beside the pipeline that writes there, whose old checkpoints
vanish meanwhile. Pruning keeps writers out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .checkpoint import Checkpoint, read_checkpoint, verify
from .directory import (
    checkpoint_numbers,
    checkpoint_path,
    remove_below,
    remove_checkpoint,
    take_lock,
)
from .errors import CheckpointError
from .journal import Segment, read_segment, read_since, segment_numbers, segment_path


@dataclass(frozen=True)
class Found:
    """A checkpoint that is there. `problem`: why it is not good, None where it is."""

    number: int
    checkpoint: Checkpoint | None  # None where its manifest cannot be read
    problem: str | None


@dataclass(frozen=True)
class FoundSegment:
    """A segment of the journal. `torn`: bytes at its end that a crash left, which are not read."""

    number: int
    nbytes: int
    torn: int
    problem: str | None


@dataclass(frozen=True)
class Report:
    """What `verify_directory` found. `used` is the checkpoint that a resume would go on from;
    None where it would refuse, for the reason `refusal`."""

    checkpoints: list[Found]
    segments: list[FoundSegment]
    used: int | None
    refusal: str | None

    @property
    def problems(self) -> list[str]:
        return [
            *(f"checkpoint {c.number}: {c.problem}" for c in self.checkpoints if c.problem),
            *(s.problem for s in self.segments if s.problem),
        ]


def find_checkpoints(directory: Path, *, every_byte: bool) -> list[Found]:
    """The checkpoints there, rising; `every_byte` reads them against their checksums, else only
    manifests and sizes are looked at. Raises CheckpointError where there is none."""
    found = [
        one
        for number in checkpoint_numbers(directory)
        if (one := _look(directory, number, every_byte)) is not None
    ]
    if not found:
        raise CheckpointError(
            f"{directory}: holds no checkpoint: `lpma ingest --checkpoint` makes one"
        )
    return found


def _look(directory: Path, number: int, every_byte: bool) -> Found | None:
    path = checkpoint_path(directory, number)
    checkpoint = None
    try:
        checkpoint = read_checkpoint(path, number)
        if every_byte:
            verify(checkpoint)
    except CheckpointError as error:
        # Gone meanwhile: the pipeline that writes there has newer ones.
        return Found(number, checkpoint, str(error)) if path.exists() else None
    return Found(number, checkpoint, None)


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
    """Read every byte of the checkpoints and of the journal. Raises CheckpointError where there is
    no checkpoint."""
    checkpoints = find_checkpoints(directory, every_byte=True)
    good = [c.checkpoint for c in checkpoints if c.checkpoint and not c.problem]
    refusal: str | None = "no checkpoint is good"
    if good:
        try:
            read_since(directory, good[-1].segment)
            refusal = None
        except CheckpointError as error:
            refusal = str(error)
    used = None if refusal else good[-1].number
    return Report(checkpoints, _verify_segments(directory), used, refusal)


def _verify_segments(directory: Path) -> list[FoundSegment]:
    found: list[FoundSegment] = []
    following: Segment | None = None
    for number in reversed(segment_numbers(directory)):
        path = segment_path(directory, number)
        try:
            segment = read_segment(directory, number)
        except CheckpointError as error:
            if path.exists():
                found.append(FoundSegment(number, path.stat().st_size, 0, str(error)))
            following = None
            continue
        whole = segment.good if following is None else following.before
        if whole > segment.good:
            problem = f"{path}: damaged at byte {segment.good} of {whole}"
            found.append(FoundSegment(number, segment.size, 0, problem))
        else:
            found.append(FoundSegment(number, segment.size, segment.size - whole, None))
        following = segment
    return found[::-1]


def prune(directory: Path, keep: int = 1) -> tuple[list[int], list[int]]:
    """Remove all checkpoints but the newest `keep` good ones, and what of the journal they do not
    need; the numbers that were removed, and that were kept.

    Raises LockedError where a pipeline writes there, CheckpointError where no checkpoint is good
    or the journal since is damaged: then nothing is removed."""
    find_checkpoints(directory, every_byte=False)  # before there is a lock file
    lock = take_lock(directory)
    try:
        report = verify_directory(directory)
        if report.used is None:
            raise CheckpointError(
                f"{directory}: {report.refusal}: nothing was removed; restore the directory from a "
                "copy"
            )
        good = [c.checkpoint for c in report.checkpoints if c.checkpoint and not c.problem]
        kept = good[-keep:]
        gone = sorted({c.number for c in report.checkpoints} - {c.number for c in kept})
        try:
            for number in gone:
                remove_checkpoint(directory, number)
            remove_below(directory, kept[0].number, kept[0].segment)
        except OSError as error:
            raise CheckpointError(f"{directory}: not all could be removed: {error}") from error
    finally:
        os.close(lock)
    return gone, [checkpoint.number for checkpoint in kept]
