"""From what a source hands over to what the batcher buffers: decoded, admitted, or refused.

Each polled record becomes one piece, also where nothing of it is applied, so that the offsets move
past it. A record that is malformed, or that cannot be served, becomes a dead letter; one that was
sent before is dropped. The decisions depend on the records before and on the stamp alone, so a
replay decides alike.
"""

from __future__ import annotations

from collections.abc import Mapping

from lpma.batch import Columns

from .batcher import Origin, Piece, Position
from .codec import Record, decode_record
from .errors import RecordError
from .outputs import Outputs
from .queries import Directions, QueryLimits, refusal
from .replies import MAX_KEPT_BYTES, DeadLetter
from .sources.base import Partition, Polled, Rejected, rows

MAX_SOURCES = 100_000  # whose last seq is remembered, in a partition each


class Intake:
    """Turns polled records into pieces.

    positions: where the partitions are read from; the rows of a record that were applied before
    are dropped. origins: the highest seq applied, by partition and source."""

    def __init__(
        self,
        graph: Directions,
        outputs: Outputs,
        limits: QueryLimits,
        positions: Mapping[Partition, Position],
        origins: Mapping[tuple[Partition, str], int],
    ) -> None:
        self._graph = graph
        self._outputs = outputs
        self._limits = limits
        self._done = {p: position for p, position in positions.items() if position.row}
        self._seen = dict(origins)
        self.duplicates = 0  # records dropped because they were sent before

    def piece(self, polled: Polled, stamp: int) -> Piece:
        """The operations of one polled record, none where it is refused or a repeat."""
        partition, offset, value = polled.partition, polled.offset, polled.value
        if isinstance(value, Columns):
            return Piece(partition, offset, stamp, value, counts_rows=True)
        try:
            if isinstance(value, Rejected):
                raise RecordError(value.reason, "unreadable")
            record = decode_record(value)
            query = record.queries[0] if record.queries else None
            if query is not None:
                self._outputs.check_topic(query.reply)
            origin = self._origin(partition, record)
        except RecordError as error:
            raw = value.value if isinstance(value, Rejected) else value
            letter = DeadLetter(*partition, offset, str(error), len(raw), raw[:MAX_KEPT_BYTES])
            self._outputs.reject(letter, error.kind)
            return Piece(partition, offset, stamp)
        if origin is not None and not self._is_new(partition, origin):
            self.duplicates += 1
            return Piece(partition, offset, stamp)
        if query is not None:
            refused = refusal(query, stamp, self._graph, self._limits)
            return Piece(partition, offset, stamp, query=query, refusal=refused, origin=origin)
        done = self._rows_done(partition, offset)
        batch = rows(record.batch, done, len(record.batch))
        return Piece(partition, offset, stamp, batch, row=done, origin=origin)

    def _origin(self, partition: Partition, record: Record) -> Origin | None:
        if record.source is None or record.seq is None:
            return None
        if (partition, record.source) not in self._seen and len(self._seen) >= MAX_SOURCES:
            raise RecordError(
                f"source {record.source!r}: {MAX_SOURCES} are remembered already", "unserved"
            )
        return Origin(record.source, record.seq)

    def _is_new(self, partition: Partition, origin: Origin) -> bool:
        key = partition, origin.source
        if origin.seq <= self._seen.get(key, -1):
            return False
        self._seen[key] = origin.seq
        return True

    def _rows_done(self, partition: Partition, offset: int) -> int:
        """Rows of this record that the graph had when it was saved; asked once a record."""
        done = self._done.get(partition)
        if done is None or done.offset != offset:
            return 0
        del self._done[partition]
        return done.row
