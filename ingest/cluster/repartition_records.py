"""What of a stretch of a stream is to be written again: its updates.

The rules are those of a pipeline (`record_decoder.py`): a record that is none becomes a dead
letter, and one that its producer sent before is dropped. Queries and markers belong to the stream
that is read, and are left out. Everything that is left out is counted.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lpma.batch.columns import Columns

from ..errors import RecordError
from ..fields import fields_of
from ..formats.encode import encode_record
from ..formats.markers import marker_of
from ..formats.records import decode_record
from ..formats.replies import MAX_KEPT_BYTES, DeadLetter
from ..formats.row_reader import RowReaders, as_columns
from ..pipeline.record_decoder import MAX_PRODUCERS
from ..types import Names, Partition, Polled, Record, Rejected
from .encoding import Rows
from .partitioned import PartitionedSink
from .repartition_source import SourceTopics

Seen = Mapping[tuple[Partition, str], int]  # the last number of each producer in a partition


@dataclass
class Admitted:
    """The updates in their order, the dead letters, and what this
    adds to `seen` and to the counts."""

    rows: list[Rows] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)
    seen: dict[tuple[Partition, str], int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


def admit(
    polled: Iterable[Polled],
    sink: PartitionedSink,
    seen: Seen,
    readers: RowReaders,
    topics: SourceTopics,
) -> Admitted:
    """What `sink` is to write of these. Depends on nothing but them, `seen` and `topics`. Raises
    SourceError for what cannot be written again at all."""
    found = Admitted()
    for one in as_columns(list(polled), readers):
        try:
            record = _decoded(one, readers, found.counts)
            if record is None or _is_repeat(one.partition, record, seen, found):
                continue
            rows = sink.checked(replace(record, producer=None, seq=None))
        except RecordError as error:
            found.letters.append(_letter(one, error, readers.names))
            continue
        rows = topics.once(one.partition, rows)
        found.counts["operations"] += len(rows.batch)
        found.rows.append(rows)
    return found


def _decoded(polled: Polled, readers: RowReaders, counts: Counter[str]) -> Record | None:
    """The record, None if it is no update. Raises RecordError."""
    value = polled.value
    if isinstance(value, Columns):
        counts["records"] += len(value)
        return Record(value, names=Names(value.src, value.dst) if readers.names else None)
    counts["records"] += 1
    if isinstance(value, Rejected):
        raise RecordError(value.reason, "unreadable")
    if marker_of(value) is not None:
        counts["markers"] += 1
        return None
    fields = fields_of(readers.records, polled.partition.topic)
    assert isinstance(value, bytes)
    record = decode_record(value, names=readers.names, fields=fields)
    counts["queries"] += len(record.queries)
    return None if record.queries else record


def _is_repeat(partition: Partition, record: Record, seen: Seen, found: Admitted) -> bool:
    """Whether its producer sent it before; if not, it has now. Raises RecordError if there are too
    many producers."""
    if record.producer is None or record.seq is None:
        return False
    key = partition, record.producer
    last = found.seen.get(key, seen.get(key))
    if last is not None and record.seq <= last:
        found.counts["repeats"] += 1
        return True
    if last is None and len(seen) + len(found.seen) >= MAX_PRODUCERS:
        raise RecordError(
            f"source {record.producer!r}: {MAX_PRODUCERS} are remembered already: let producers "
            "keep their names",
            "unserved",
        )
    found.seen[key] = record.seq
    return False


def _letter(polled: Polled, error: RecordError, names: bool) -> DeadLetter:
    value = polled.value
    if isinstance(value, Rejected):
        raw = value.value
    elif isinstance(value, Columns):
        raw = encode_record(Record(value, names=Names(value.src, value.dst) if names else None))
    else:
        assert isinstance(value, bytes)
        raw = value
    digest = hashlib.sha256(raw).digest()
    kept = bytes(raw[:MAX_KEPT_BYTES])
    return DeadLetter(
        *polled.partition, polled.offset, str(error), len(raw), kept, digest, error.kind
    )
