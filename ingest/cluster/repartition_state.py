"""How far a repartitioning has come, in one file that is replaced as a whole.

    directory/lock                flocked by the one process that writes
    directory/repartition.json    `Progress`; see `lpma/file/atomic.py` for how it is replaced

What is about to be written is in it before it is written (`Pending`): which records, in which
order, under which number. A process that dies may have written all of it, parts, or nothing; the
next one reads the same records again and writes the same under the same numbers, so that what was
there already is a repeat, which every shard drops.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lpma.file.atomic import atomic_write, make_directory

from ..errors import CheckpointError
from ..sources.base import Identity
from ..state.directory import has_checkpoint, take_lock
from ..state.journal import Chunk, entry_of, entry_row
from ..types import Closing, Partition, RecordFingerprint

FILE = "repartition.json"
_FORMAT = 1


@dataclass(frozen=True)
class Pending:
    """What is being written: records of the source, in this order."""

    seq: int  # of the first record that is written
    stamp: int  # of rows without a time, if they need one
    stretches: list[Chunk]


@dataclass
class Progress:
    """positions, fingerprints, seen: of the source, before `pending`."""

    producer: str  # the name that written records carry
    source: Identity
    target: Identity
    settings: dict[str, Any]
    positions: dict[Partition, int]  # to be read next
    fingerprints: dict[Partition, RecordFingerprint] = field(default_factory=dict)
    seen: dict[tuple[Partition, str], int] = field(default_factory=dict)  # producers' last numbers
    counts: Counter[str] = field(default_factory=Counter)
    seq: int = 0  # of the next record that is written
    epoch: int = -1  # the last
    pending: Pending | None = None
    undirected: list[str] | None = None  # see `SourceTopics`; None: nothing was read yet

    def to_json(self) -> dict[str, Any]:
        pending = self.pending
        return {
            "format": _FORMAT,
            "producer": self.producer,
            "source": _identity(self.source),
            "target": _identity(self.target),
            "settings": self.settings,
            "positions": [[*place, offset] for place, offset in self.positions.items()],
            "marks": [[*place, *fingerprint] for place, fingerprint in self.fingerprints.items()],
            "seen": [[*place, source, seq] for (place, source), seq in self.seen.items()],
            "counts": self.counts,
            "seq": self.seq,
            "epoch": self.epoch,
            "pending": pending
            and [pending.seq, pending.stamp, [entry_row(entry) for entry in pending.stretches]],
            "undirected": self.undirected,
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Progress:
        """What `to_json` gave. Raises ValueError, KeyError or TypeError on anything else."""
        if found["format"] != _FORMAT:
            raise ValueError(f"format {found['format']}, not {_FORMAT}")
        pending = None
        if found["pending"] is not None:
            seq, stamp, rows = found["pending"]
            entries = [entry_of(row) for row in rows]
            pending = Pending(seq, stamp, [e for e in entries if isinstance(e, Chunk)])
        was_read = pending is not None or found["counts"]
        return cls(
            found["producer"],
            Identity(**found["source"]),
            Identity(**found["target"]),
            found["settings"],
            {Partition(topic, n): offset for topic, n, offset in found["positions"]},
            {
                Partition(topic, n): RecordFingerprint(*fingerprint)
                for topic, n, *fingerprint in found["marks"]
            },
            {(Partition(topic, n), source): seq for topic, n, source, seq in found["seen"]},
            Counter(found["counts"]),
            found["seq"],
            found["epoch"],
            pending,
            found.get("undirected", [] if was_read else None),
        )


def _identity(identity: Identity) -> dict[str, Any]:
    return {"cluster": identity.cluster, "topics": dict(identity.topics)}


class ProgressFile(Closing):
    """The file in `directory`, which is this process's until `close`. Raises LockedError if another
    one has it, CheckpointError if it cannot be written or holds a pipeline's checkpoints."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.path = Path(directory) / FILE
        if has_checkpoint(directory):
            raise CheckpointError(
                f"{directory}: holds a pipeline's checkpoints: take another directory"
            )
        try:
            make_directory(directory)
        except OSError as error:
            raise CheckpointError(f"{directory}: cannot hold {FILE}: {error}") from error
        self._lock: int | None = take_lock(Path(directory))

    def close(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def load(self) -> Progress | None:
        """What was saved last; None if nothing was. Raises CheckpointError if it is damaged."""
        try:
            return Progress.from_json(json.loads(self.path.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{self.path}: cannot be read ({error}): restore it from a copy, or write another "
                "topic, with another directory"
            ) from error

    def save(self, progress: Progress) -> None:
        """Replace what was saved. Raises CheckpointError."""
        try:
            with atomic_write(self.path) as file:
                file.write(json.dumps(progress.to_json()).encode())
        except OSError as error:
            raise CheckpointError(
                f"{self.path}: cannot be written ({error}): nothing was lost; free the disk and "
                "start again"
            ) from error
