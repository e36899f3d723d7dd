"""Whether a log still holds what was read of it: the last record of each partition, remembered.

Idea: a log that was rolled back and written again is as it was up to some offset, and differs from
there on. So if the last record read is still the same, so are all before it; and if it is not,
offsets no longer mean what they did. A record is recognised by its `Polled.fingerprint`.

Fingerprints are of what was polled last, which may be more than was applied: they are in the
checkpoint, and in the journal after each poll. A resume compares those of the checkpoint before it
applies anything, and those of the journal as it reads each poll again, before applying that. They
are made of one record a partition and poll, so they cost next to nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ..errors import RewrittenError
from ..events import log_event
from ..types import Partition, RecordFingerprint
from .base import Source


def check_same(
    partition: Partition, found: RecordFingerprint | None, expected: RecordFingerprint
) -> None:
    """Raise RewrittenError if another record was found than expected."""
    if found != expected:
        topic, number = partition
        raise RewrittenError(
            f"{topic}/{number}: offset {expected.offset} holds another record than the one that "
            "was read there: the log was rolled back and written again since; restore the log "
            "that was read, or start a new checkpoint and read this one from its beginning"
        )


def check_fingerprints(source: Source, fingerprints: Mapping[Partition, RecordFingerprint]) -> None:
    """Raise RewrittenError if `source` holds another record where one of these was taken,
    OffsetError where it ends before. If retention or compaction removed that record, this cannot be
    known, and an event says so.

    REQUIRES: the source reads all these partitions."""
    found = source.records_at(
        {partition: fingerprint.offset for partition, fingerprint in fingerprints.items()}
    )
    if found is None:
        return
    for partition, fingerprint in fingerprints.items():
        if partition in found:
            check_same(partition, found[partition].fingerprint, fingerprint)
        else:
            log_event("unchecked", logging.WARNING, topic=partition.topic,
                      partition=partition.number, offset=fingerprint.offset,
                      reason="the last record read is gone: whether the log was written again "
                      "cannot be told")  # fmt: skip
