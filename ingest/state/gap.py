"""Going on although a log has dropped records that were still to be read, if that is accepted.

Idea: retention drops records from the front of a partition, and nothing brings them back. If that
is accepted, a resume does exactly what can still be done, and counts the rest:

    1. the journal is replayed up to the first records that are gone: the same batches, versions
       and times as before the crash
    2. in each partition, the records from where that ended to the first one still there are the gap
    3. the stream goes on after it. What the journal says of later records no longer counts: they
       are read again under new stamps, and replies to queries among them may differ from the
       first ones

The gap is kept in the state, and a checkpoint is taken at once: no later resume meets it again.
Only retention is accepted. A position beyond the end, or other records than those that were read,
remain errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..errors import OffsetError
from ..sources.base import Source
from ..types import Partition
from .journal import Chunk, Entry


class Gap(NamedTuple):
    """Offsets start … stop − 1 of a partition, which are gone."""

    partition: Partition
    start: int
    stop: int

    def __str__(self) -> str:
        topic, number = self.partition
        count = self.stop - self.start
        return f"{topic}/{number}: {count:,} records are gone, {self.start} … {self.stop - 1}"

    def detail(self) -> dict[str, Any]:
        topic, number = self.partition
        place = {"topic": topic, "partition": number, "from": self.start, "to": self.stop - 1}
        return {**place, "records": self.stop - self.start}


def seek_to(source: Source, positions: Mapping[Partition, int], accept_gap: bool) -> list[Gap]:
    """Let the source stand at these offsets; if gaps are accepted, at the first record still there.
    Returns the gaps. Raises OffsetError if anything else is wrong with an offset."""
    if not accept_gap:
        source.seek(positions)
        return []
    while True:
        firsts = source.first_offsets()
        gaps = [Gap(p, at, firsts[p]) for p, at in positions.items() if at < firsts.get(p, at)]
        try:
            source.seek({**positions, **{gap.partition: gap.stop for gap in gaps}})
        except OffsetError:
            # Retention may have dropped more since; if not, it is not the cause.
            if source.first_offsets() == firsts:
                raise
        else:
            return gaps


def exact(entries: Iterable[Entry], gaps: Iterable[Gap]) -> Iterator[Entry]:
    """The entries that can be replayed as they were: all before the first that names lost
    records."""
    firsts = {gap.partition: gap.stop for gap in gaps}
    for entry in entries:
        if isinstance(entry, Chunk) and entry.first < firsts.get(entry.partition, 0):
            return
        yield entry
