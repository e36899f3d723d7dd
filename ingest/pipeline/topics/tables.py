"""A topic of the changes of a table, as Debezium tells them.

Idea: the graph is as the last change of each row left it, or, where the rows are remembered
(`state/table_rows.py`), an edge is the sum over the rows with its ends. Many changes become columns
(`formats/debezium/rows.py`); for sums these are what the rows are now, and the sums take the place
of their weights. Records in one of our own forms, as queries are, are read among the changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np

from lpma.batch.columns import MAX_WEIGHT

from ...errors import RecordError
from ...formats.debezium.changes import Event, Skipped
from ...formats.debezium.rows import ChangeRows
from ...formats.mapped import is_msgpack
from ...formats.records import decode_record
from ...formats.row_reader import Stretch, named_ends
from ...registry.envelope import Envelope, in_stretches
from ...state.table_rows import Sum, TableRow, TableRows
from ...types import NO_UPDATES, NO_VALUE, Record, Rejected, Values
from .base import TopicReader, bytes_of


class TableTopic(TopicReader):
    """The last change of a row counts. changes: reads them. envelope: of whole rows, and of keys.
    skipped: where records are counted that are about no row. reader: of one change."""

    envelope: Envelope

    def __init__(self, changes: ChangeRows, envelope: Envelope, skipped: Counter[str]) -> None:
        self.envelope = envelope
        self._changes, self.reader = changes, changes.reader
        self._skipped = skipped

    def one(self, value: bytes | Rejected, key: bytes, stamp: int) -> tuple[Record, int]:
        data = None
        if value != NO_VALUE:
            data = bytes_of(value)
            if is_msgpack(data):
                return decode_record(data, names=self.reader.names), 0
            data, _ = self.envelope.inner(data, stamp)
        event = self.reader.event(data, self.envelope.inner(key, stamp)[0])
        if isinstance(event, Skipped):
            self._skipped[event.what] += 1
            return Record(NO_UPDATES), 0
        return self._read(event)

    def _read(self, event: Event) -> tuple[Record, int]:
        return self.reader.record(event), 0

    def stretches(self, values: Values, stamp: int) -> Iterator[Stretch]:
        try:
            inner = self._unwrapped(values, stamp)
            keys = None if values.keys is None else self._unwrapped(values.keys, stamp)
        except RecordError:  # the bad one says why
            yield Stretch(0, len(values))
            return
        yield from self._rows(Values(inner.data, inner.starts, inner.stops, keys=keys))

    def _unwrapped(self, values: Values, stamp: int) -> Values:
        """These, out of the envelope. Raises RecordError."""
        if all(part.id is None for part in in_stretches(values)):
            return values
        return Values.of([self.envelope.inner(value, stamp)[0] for value in values])

    def _rows(self, values: Values) -> Iterator[Stretch]:
        return self._changes.stretches(values)


class SummedTableTopic(TableTopic):
    """An edge's weight is the sum over the rows with its ends. rows: that are remembered."""

    def __init__(
        self, topic: str, changes: ChangeRows, envelope: Envelope, skipped: Counter[str],
        rows: TableRows,
    ) -> None:  # fmt: skip
        super().__init__(changes, envelope, skipped)
        self._topic = topic
        self._remembered = rows

    def revert(self) -> None:
        self._remembered.revert()

    def _read(self, event: Event) -> tuple[Record, int]:
        reader, rows, topic, table = self.reader, self._remembered, self._topic, event.table
        key = None
        if event.op != "t":
            key = reader.row_key(event)
            event = event._replace(remembered=rows.find(topic, key, table))
        time = reader.time_ms(event)
        if key is None:
            reader.check_order()
            if reader.is_of_another_table(event) or (
                reader.is_alone and not rows.has_others(topic, table)
            ):
                record = reader.truncation(event)
                rows.clear(topic, table)
                return record, 1
            sums = rows.clear(topic, table)
        else:
            row = reader.table_row(event)
            sums = rows.change(topic, key, None if row is None else TableRow(*row), table)
        try:
            return reader.summed(sums, time), 1
        except RecordError:
            rows.revert()
            raise

    def _rows(self, values: Values) -> Iterator[Stretch]:
        for stretch in super()._rows(values):
            if stretch.rows is None:
                yield stretch
                continue
            keys = values[stretch.start : stretch.stop].keys
            assert keys is not None
            yield from self._summed(stretch, self._changes.row_keys(keys))

    def _summed(self, stretch: Stretch, keys: Sequence[str]) -> Iterator[Stretch]:
        """The same of rows that are set. Those that change their own edge alone stay together, with
        the sums in place of their weights; others are left to `one`."""
        rows = stretch.rows
        assert rows is not None
        ends = (rows.src, rows.dst) if stretch.ends is None else named_ends(stretch.ends)
        weights = repeat(1.0) if rows.weight is None else rows.weight.tolist()
        times = repeat(None) if rows.time is None else rows.time.tolist()
        sums: list[Sum] = []  # of the rows from number `first` on
        first = 0
        for at, (key, src, dst, weight, time, table) in enumerate(zip(
            keys, ends[0].tolist(), ends[1].tolist(), weights, times, stretch.tables, strict=False
        )):  # fmt: skip
            found = self._own_sum(key, TableRow(src, dst, weight, time), table)
            if found is not None:
                sums.append(found)
                continue
            yield from _as_sums(stretch, first, sums)
            yield Stretch(stretch.start + at, stretch.start + at + 1)
            sums, first = [], at + 1
        yield from _as_sums(stretch, first, sums)

    def _own_sum(self, key: str, row: TableRow, table: str) -> Sum | None:
        """Let the row of that key be this; the sum of its edge, if it changes no other. None: that
        is left to `one`, and nothing is changed."""
        try:
            changed = self._remembered.change(self._topic, key, row, table)
        except RecordError:
            return None
        if len(changed) == 1 and abs(changed[0].weight or 0.0) <= MAX_WEIGHT and (
            row.time is not None or changed[0].time is None
        ):  # fmt: skip
            return changed[0]
        self._remembered.revert()
        return None


def _as_sums(stretch: Stretch, first: int, sums: list[Sum]) -> Iterator[Stretch]:
    """The rows of a stretch from number `first` on as these sums."""
    if not sums:
        return
    assert stretch.rows is not None
    count, start = len(sums), stretch.start + first
    rows = stretch.rows.rows(first, first + count)
    rows = rows.replace(weight=np.array([each.weight for each in sums]))
    if rows.time is not None:
        rows = rows.replace(time=np.array([each.time for each in sums], np.int64))
    ends = stretch.ends and stretch.ends.take(slice(2 * first, 2 * (first + count)))
    yield Stretch(start, start + count, rows, ends, changes=count)
