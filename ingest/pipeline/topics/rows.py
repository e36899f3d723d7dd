"""A topic of rows, in our own forms or as a mapping says, by themselves or in Confluent's envelope.

Idea: many rows become columns (`formats/row_reader.py`), those in the envelope schema by schema.
Where such records cannot be unwrapped together, the halves are tried, so that one that is bad costs
the others little.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import RecordError
from ...fields import Fields
from ...formats.records import decode_record
from ...formats.row_reader import RowReader, Stretch
from ...registry.envelope import Envelope, Unwrapping, in_stretches
from ...types import Record, Rejected, Values
from .base import TopicReader, bytes_of


class RowTopic(TopicReader):
    """fields: the mapping; None: records are in our own forms. names: whether vertices go by names.
    envelope: of the same mapping."""

    envelope: Envelope

    def __init__(self, fields: Fields | None, names: bool, envelope: Envelope) -> None:
        self.fields, self.envelope = fields, envelope
        self._names = names
        self._readers: dict[str | None, RowReader] = {}  # by the unit of times

    def one(self, value: bytes | Rejected, key: bytes, stamp: int) -> tuple[Record, int]:
        inner, fields = self.envelope.inner(bytes_of(value), stamp)
        return decode_record(inner, names=self._names, fields=fields), 0

    def stretches(self, values: Values, stamp: int) -> Iterator[Stretch]:
        for start, stop, id in in_stretches(values):
            part = values[start:stop]
            if id is None:
                found = self._reader(self.fields).stretches(part)
            else:
                found = self._enveloped(part, id, stamp)
            for stretch in found:
                yield stretch.moved(start)

    def _reader(self, fields: Fields | None) -> RowReader:
        """fields: the mapping, maybe with another unit of times."""
        unit = None if fields is None else fields.time_unit
        found = self._readers.get(unit)
        if found is None:
            found = self._readers[unit] = RowReader(fields, self._names)
        return found

    def _enveloped(self, values: Values, id: int, stamp: int) -> Iterator[Stretch]:
        """Records of one schema."""
        try:
            unwrapping = self.envelope.unwrapping(id, stamp)
        except RecordError:  # each says why
            yield Stretch(0, len(values))
            return
        rows = unwrapping.plain_rows(values, self._names)
        if rows is None:
            yield from self._unwrapped(values, 0, unwrapping)
            return
        for start, stop in rows.bounds():
            if rows.plain[start]:
                yield rows.stretch(start, stop)
            else:
                yield from self._unwrapped(values[start:stop], start, unwrapping)

    def _unwrapped(self, values: Values, first: int, unwrapping: Unwrapping) -> Iterator[Stretch]:
        """The same of those from number `first` on, which are no plain rows."""
        inner = unwrapping.many(values)
        if inner is not None:
            for stretch in self._reader(unwrapping.fields).stretches(inner):
                yield stretch.moved(first)
        elif len(values) == 1:
            yield Stretch(first, first + 1)
        else:
            half = len(values) // 2
            yield from self._unwrapped(values[:half], first, unwrapping)
            yield from self._unwrapped(values[half:], first + half, unwrapping)
