"""From what a source hands over to what the batcher buffers: decoded, admitted, or refused.

Each polled record becomes one piece, also where nothing of it is applied, so that the offsets move
past it. A record that is malformed, or that cannot be served, becomes a dead letter, and so do late
rows where the policy says so; a record that was sent before is dropped. The decisions depend on the
records before and on the stamp alone, so a replay decides alike. What is left is given the ids of
the graph, where ids are mapped.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lpma.batch import Columns

from .batcher import Origin, Piece
from .errors import RecordError
from .formats.codec import encode_record
from .formats.reading import Reading
from .formats.records import Names, Query, Record
from .formats.replies import MAX_KEPT_BYTES, DeadLetter
from .lateness import Lateness
from .queries.answering import Directions, QueryLimits, refusal
from .queries.sinks import Outputs
from .sources.base import Partition, Polled, Rejected, rows
from .state.checkpoint import State

if TYPE_CHECKING:
    from .state.vertex_ids import VertexIds

MAX_SOURCES = 100_000  # a partition, whose last seq is remembered


class Intake:
    """Turns polled records into pieces.

    vertices: None where ids are dense. state: where the stream is read from; of its positions, the
    rows of a record that were applied before are dropped."""

    def __init__(
        self,
        graph: Directions,
        outputs: Outputs,
        limits: QueryLimits,
        reading: Reading,
        vertices: VertexIds | None,
        state: State,
    ) -> None:
        self._graph = graph
        self._outputs = outputs
        self._limits = limits
        self._reading = reading
        self._vertices = vertices
        self._lateness = Lateness(reading.late, reading.max_lateness, state.newest)
        self._done = {p: position for p, position in state.positions.items() if position.row}
        self._seen = dict(state.origins)
        self._sources = Counter(partition for partition, _ in self._seen)
        self.duplicates = 0  # records dropped because they were sent before

    def pieces(self, polled: Polled, stamp: int, shed: bool = False) -> Iterator[Piece]:
        """The operations of what was polled in one place. `shed`: a query is not asked. Raises
        VertexLimitError."""
        if isinstance(polled.value, Columns):
            yield from self._rows_of_a_file(polled, polled.value, stamp)
        else:
            yield self._piece(polled, polled.value, stamp, shed)

    def _piece(self, polled: Polled, value: bytes | Rejected, stamp: int, shed: bool) -> Piece:
        """The operations of one record, none where it is refused or a repeat."""
        partition, offset = polled.partition, polled.offset
        try:
            if isinstance(value, Rejected):
                raise RecordError(value.reason, "unreadable")
            record = self._reading.decode(value)
            query = record.queries[0] if record.queries else None
            if query is not None:
                self._outputs.check_topic(query.reply)
            origin = self._origin(partition, record)
        except RecordError as error:
            raw = value.value if isinstance(value, Rejected) else value
            self._reject(partition, offset, str(error), raw, error.kind)
            return Piece(partition, offset, stamp)
        if origin is not None and not self._is_new(partition, origin):
            self.duplicates += 1
            return Piece(partition, offset, stamp)
        if query is not None:
            refused = refusal(query, stamp, self._graph, self._limits, shed)
            query = self._asked(query)
            return Piece(partition, offset, stamp, query=query, refusal=refused, origin=origin)
        assert isinstance(value, bytes)
        record = self._in_time(polled, record, value)
        newest = self._lateness.advance(partition, record.batch.time)
        batch = self._with_ids(record)
        done = self._rows_done(partition, offset)
        batch = rows(batch, done, len(batch))
        return Piece(partition, offset, stamp, batch, row=done, origin=origin, newest=newest)

    def _rows_of_a_file(self, polled: Polled, value: Columns, stamp: int) -> Iterator[Piece]:
        """Each row is a record of its own, so a late one is a piece of its own, with nothing in
        it; those between late ones stay together."""
        partition = polled.partition
        mapped = self._reading.ids == "mapped"
        late = self._lateness.late_rows(partition, value.time)
        if late is None:
            late = np.zeros(len(value), bool)
        bounds = np.flatnonzero(late[1:] | late[:-1]) + 1
        for start, stop in zip([0, *bounds.tolist()], [*bounds.tolist(), len(late)], strict=True):
            part, offset = rows(value, start, stop), polled.offset + start
            record = Record(part, names=Names(part.src, part.dst) if mapped else None)
            if stop > start and late[start]:
                data = encode_record(record)
                self._reject(partition, offset, self._lateness.reason(late[start:stop]), data)
                yield Piece(partition, offset, stamp)
            else:
                newest = self._lateness.advance(partition, part.time)
                batch = self._with_ids(record)
                yield Piece(partition, offset, stamp, batch, counts_rows=True, newest=newest)

    def _in_time(self, polled: Polled, record: Record, value: bytes) -> Record:
        """The record without its late rows, which become a dead letter: the record as it came where
        all of it goes, else its late rows as a record."""
        late = self._lateness.late_rows(polled.partition, record.batch.time)
        if late is None:
            return record
        if self._reading.late == "reject":
            late_rows, kept = value, np.zeros(len(late), bool)
        else:
            late_rows = value if late.all() else encode_record(record.only(late))
            kept = ~late
        self._reject(polled.partition, polled.offset, self._lateness.reason(late), late_rows)
        return record.only(kept)

    def _reject(
        self, partition: Partition, offset: int, reason: str, value: bytes, kind: str = "late"
    ) -> None:
        kept, sha256 = bytes(value[:MAX_KEPT_BYTES]), hashlib.sha256(value).digest()
        letter = DeadLetter(*partition, offset, reason, len(value), kept, sha256)
        self._outputs.reject(letter, kind)

    def _with_ids(self, record: Record) -> Columns:
        """The updates, their vertices by the ids of the graph."""
        if self._vertices is None or record.names is None:
            return record.batch
        return self._vertices.mapped(record.batch, record.names)

    def _asked(self, query: Query) -> Query:
        return query if self._vertices is None else self._vertices.found(query)

    def _origin(self, partition: Partition, record: Record) -> Origin | None:
        if record.source is None or record.seq is None:
            return None
        known = (partition, record.source) in self._seen
        if not known and self._sources[partition] >= MAX_SOURCES:
            # To forget another would let what that one repeats be applied twice, unseen.
            raise RecordError(
                f"source {record.source!r}: {MAX_SOURCES} of this partition are remembered "
                "already: let producers keep their names, or send without source and seq",
                "unserved",
            )
        return Origin(record.source, record.seq)

    def _is_new(self, partition: Partition, origin: Origin) -> bool:
        key = partition, origin.source
        if origin.seq <= self._seen.get(key, -1):
            return False
        self._sources[partition] += key not in self._seen
        self._seen[key] = origin.seq
        return True

    def _rows_done(self, partition: Partition, offset: int) -> int:
        """Rows of this record that the graph had when it was saved; asked once a record."""
        done = self._done.get(partition)
        if done is None or done.offset != offset:
            return 0
        del self._done[partition]
        return done.row
