"""Whether a log still holds what was read of it: the last record of each partition, remembered.

Idea: a log that was rolled back and written again is as it was up to some offset, and from there on
it is another. So where the last record read is still the same, all before it are; and where it is
not, offsets mean something else than they did. `Polled.mark` is what a record is recognised by.

Marks are of what was polled last, which may be more than was applied: they stand in the checkpoint,
and in the journal behind what each poll brought. A resume compares the first before anything is
applied, the others as it reads again what they stand behind, before that is.
Digests are made of one record a partition and poll, so that they cost next to nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ..errors import RewrittenError
from ..events import tell
from ..types import Mark, Partition
from .base import Inspectable, Source


def check_same(partition: Partition, found: Mark | None, expected: Mark) -> None:
    """Raise RewrittenError where another record was found than expected."""
    if found != expected:
        topic, number = partition
        raise RewrittenError(
            f"{topic}/{number}: offset {expected.offset} holds another record than the one that "
            "was read there: the log was rolled back and written again since; restore the log "
            "that was read, or start a new checkpoint and read this one from its beginning"
        )


def check_marks(source: Source, marks: Mapping[Partition, Mark]) -> None:
    """Raise RewrittenError where `source` holds another record at a mark, OffsetError where it ends
    before one. What is gone by retention or compaction cannot be told, and an event says so.

    REQUIRES: the source reads all these partitions."""
    if not isinstance(source, Inspectable):
        return
    found = source.records_at({partition: mark.offset for partition, mark in marks.items()})
    for partition, mark in marks.items():
        if partition in found:
            check_same(partition, found[partition].mark, mark)
        else:
            tell("unchecked", logging.WARNING, topic=partition.topic, partition=partition.number,
                 offset=mark.offset, reason="the last record read is gone: whether the log was "
                 "written again cannot be told")  # fmt: skip
