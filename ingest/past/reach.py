"""Which past views of a stream can be had: the spans behind the kept checkpoints.

Behind each checkpoint lies the journal up to the next one, and behind the newest up to now. If all
of its segments are there, and the source still holds the records from the checkpoint's offsets on,
every version of the span can be had, else that of the checkpoint alone. A look at the journal's
names and the source's first offsets tells; nothing is replayed, and no lock is taken. Without the
source, what is known to be gone is what a stream went on without (`accept_gap`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from ..cluster.cluster_manifest import FILE
from ..sources.base import Source
from ..state.checkpoint import Checkpoint, State
from ..state.inspection import find_checkpoints
from ..state.journal import Chunk, Cut, segment_numbers
from ..state.journal_reader import read_journal
from ..types import Partition


@dataclass(frozen=True)
class Span:
    """Versions first_version … last_version can be had, from a checkpoint of this number. Times
    are stamps of the stream, in ms since 1970; 0: its beginning. If queries were refused, the end
    of the newest span may be some versions too high: batches that held nothing else have none."""

    checkpoint: int
    first_version: int
    last_version: int
    first_time: int
    last_time: int


def reachable(directory: Path, source: Source | None = None) -> list[Span]:
    """What can be had of the good checkpoints in a directory, by rising versions. source: the
    stream's; None: taken to hold all records but those that were given up. Nothing of a cluster.
    Raises CheckpointError if there is no checkpoint."""
    found = find_checkpoints(directory, every_byte=False)
    good = [one.checkpoint for one in found if one.checkpoint and not one.problem]
    if is_of_cluster(directory):
        return []
    firsts = _given_up(good) if source is None else source.first_offsets()
    there = set(segment_numbers(directory))
    next_ones: list[Checkpoint | None] = [*good[1:], None]
    spans = []
    for kept, following in zip(good, next_ones, strict=False):
        if any(at.offset < firsts.get(p, 0) for p, at in kept.state.positions.items()):
            spans.append(_span(kept, kept.state.version, kept.state.stamp))
        elif following is None:
            spans.append(_newest(directory, kept))
        else:
            whole = there.issuperset(range(kept.segment, following.segment))
            state: State = (following if whole else kept).state
            spans.append(_span(kept, state.version, state.stamp))
    return spans


def _given_up(good: Sequence[Checkpoint]) -> dict[Partition, int]:
    """By partition, the first offset after those that the stream went on without: what came before
    had left the log, too."""
    firsts: dict[Partition, int] = {}
    for accepted in good[-1].state.accepted if good else ():
        if accepted.kind == "gap":
            detail = accepted.detail
            partition = Partition(detail["topic"], detail["partition"])
            firsts[partition] = max(firsts.get(partition, 0), detail["to"] + 1)
    return firsts


def is_of_cluster(directory: Path) -> bool:
    """Whether this is the directory of a cluster or of one of its shards."""
    return (directory / FILE).exists() or any(directory.glob("shard-*"))


def _span(kept: Checkpoint, last_version: int, last_time: int) -> Span:
    state = kept.state
    return Span(kept.number, state.version, last_version, state.stamp, last_time)


def _newest(directory: Path, kept: Checkpoint) -> Span:
    """Up to where the journal comes."""
    entries = [*kept.waiting, *read_journal(directory, kept.segment).entries]
    batches = sum(isinstance(entry, Cut) for entry in entries)
    stamps = [entry.stamp for entry in entries if isinstance(entry, Chunk)]
    return _span(kept, kept.state.version + batches, max([kept.state.stamp, *stamps]))


def described(spans: Sequence[Span]) -> str:
    """The spans in words, those that touch as one; and what is missing between them."""
    joined: list[Span] = []
    for span in spans:
        if joined and joined[-1].last_version >= span.first_version:
            before = joined[-1]
            joined[-1] = Span(before.checkpoint, before.first_version, span.last_version,
                              before.first_time, span.last_time)  # fmt: skip
        else:
            joined.append(span)
    said = ", ".join(_words(span) for span in joined) or "nothing"
    missing = [
        _range(before.last_version + 1, after.first_version - 1)
        for before, after in pairwise(joined)
        if before.last_version + 1 < after.first_version
    ]
    return f"{said}; {', '.join(missing)} between them cannot be had" if missing else said


def _words(span: Span) -> str:
    times = moment(span.first_time)
    if span.first_version < span.last_version:
        times += f" … {moment(span.last_time)}"
    return f"{_range(span.first_version, span.last_version)} ({times})"


def _range(first: int, last: int) -> str:
    return f"version {first}" if first == last else f"versions {first} … {last}"


def moment(time_ms: int) -> str:
    """A stamp as people read it, in UTC."""
    if time_ms == 0:
        return "the beginning"
    try:
        said = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"
    return said.replace("+00:00", "Z")
