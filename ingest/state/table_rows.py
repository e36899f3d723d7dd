"""The rows of tables whose rows may share their ends: what each edge's weight is the sum of.

Idea: an edge's weight is the sum over the rows with its ends. To add what a row gains and subtract
what it loses is not enough: a snapshot reads rows again, a connector that was killed sends changes
again, and after them the sum would be wrong for ever. So each row is remembered by its key, with
its ends and its weight, and a change says what the row is now: said twice, it changes nothing. Then
no change has to say what the row was before, either.

Tricks. A sum is kept as an integer, in units of the smallest float, so it is exact: it depends on
the rows that are there, and on no others that came and went. How many rows it is of is kept beside
it, so an edge is gone with its last row. The file has the rows alone; the sums follow from them.

Rows change when a record is decoded, before its batch is applied, and a checkpoint is of what was
applied. So what each change replaced is kept until then, and an image goes back by as much.

    rows     JSON lines: [topic, [[key, src, dst, weight], …]]

Invariant: `_sums` is what `_rows` say.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

from lpma.file.atomic import Writable

from ..types import Name

ROWS = "rows"  # the file of a checkpoint
_AT_ONCE = 1000  # rows of a line
_DENORMAL = 1074  # the smallest float is 2 to the power of minus this
_MANTISSA = 53

Ends = tuple[Name, Name]


class TableRow(NamedTuple):
    """What is remembered of a row."""

    src: Name
    dst: Name
    weight: float


class Sum(NamedTuple):
    """An edge after a change. weight: None if no row has these ends any more."""

    src: Name
    dst: Name
    weight: float | None


class _Change(NamedTuple):
    """What a change replaced: a row (None: there was none), or, without a key, all of a topic."""

    topic: str
    key: str | None
    row: TableRow | None = None
    rows: dict[str, TableRow] | None = None


class TableRows:
    """The rows of the tables of a stream, by topic and key. One thread at a time.

    >>> from ingest.state.table_rows import TableRow, TableRows
    >>> rows = TableRows()
    >>> rows.change("payments", '{"id":1}', TableRow("ann", "bob", 0.1))
    [Sum(src='ann', dst='bob', weight=0.1)]
    >>> rows.change("payments", '{"id":2}', TableRow("ann", "bob", 0.2))
    [Sum(src='ann', dst='bob', weight=0.30000000000000004)]
    >>> rows.change("payments", '{"id":1}', None)
    [Sum(src='ann', dst='bob', weight=0.2)]
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, TableRow]] = {}
        self._sums: dict[Ends, list[int]] = {}  # how many rows, and their sum
        self._changes: deque[_Change] = deque()  # not applied yet

    def __len__(self) -> int:
        return sum(map(len, self._rows.values()))

    # Changes ---------------------------------------------------------------------------------

    def change(self, topic: str, key: str, row: TableRow | None) -> list[Sum]:
        """Let the row of that key be this from now on (None: it is deleted); the edges that this
        changes, the former one first."""
        rows = self._rows.setdefault(topic, {})
        before = rows.get(key)
        self._changes.append(_Change(topic, key, before))
        self._put(rows, key, row)
        ends = dict.fromkeys(each[:2] for each in (before, row) if each is not None)
        return [Sum(src, dst, self._weight((src, dst))) for src, dst in ends]

    def clear(self, topic: str) -> None:
        """Forget all rows of a topic."""
        rows = self._rows.pop(topic, {})
        self._changes.append(_Change(topic, None, rows=rows))
        for row in rows.values():
            self._count(row, -1)

    def revert(self) -> None:
        """Take the last change back."""
        last = self._changes.pop()
        if last.key is not None:
            self._put(self._rows[last.topic], last.key, last.row)
            return
        self._rows[last.topic] = last.rows or {}
        for row in self._rows[last.topic].values():
            self._count(row, 1)

    def applied(self, count: int) -> None:
        """The first so many changes are in the graph."""
        for _ in range(count):
            self._changes.popleft()

    def _put(self, rows: dict[str, TableRow], key: str, row: TableRow | None) -> None:
        before = rows.pop(key, None) if row is None else rows.get(key)
        if before is not None:
            self._count(before, -1)
        if row is not None:
            rows[key] = row
            self._count(row, 1)

    def _count(self, row: TableRow, sign: int) -> None:
        ends = row.src, row.dst
        found = self._sums.get(ends)
        if found is None:
            found = self._sums[ends] = [0, 0]
        found[0] += sign
        found[1] += sign * _in_units(row.weight)
        if not found[0]:
            del self._sums[ends]

    def _weight(self, ends: Ends) -> float | None:
        found = self._sums.get(ends)
        if found is None:
            return None
        try:
            return found[1] / (1 << _DENORMAL)  # rounded once
        except OverflowError:
            return math.inf

    # Files -----------------------------------------------------------------------------------

    def image(self, old: object = None) -> _RowsImage:
        """A copy of the rows as of what was applied."""
        rows = {topic: dict(of_topic) for topic, of_topic in self._rows.items()}
        for change in reversed(self._changes):
            if change.key is None:
                rows[change.topic] = dict(change.rows or {})
            elif change.row is None:
                rows[change.topic].pop(change.key, None)
            else:
                rows[change.topic][change.key] = change.row
        return _RowsImage(rows)

    @classmethod
    def load(cls, path: Path) -> Self:
        """What an image wrote."""
        found = cls()
        with open(path, "rb") as file:
            for line in file:
                topic, rows = msgspec.json.decode(line)
                of_topic = found._rows.setdefault(topic, {})
                for key, *row in rows:
                    found._put(of_topic, key, TableRow(row[0], row[1], float(row[2])))
        return found


class _RowsImage(NamedTuple):
    rows: dict[str, dict[str, TableRow]]

    def write(self, file: Writable) -> None:
        """The interpreter's lock is released between the lines: a stream goes on alongside."""
        for topic, rows in self.rows.items():
            for part in _parts(rows):
                file.write(msgspec.json.encode([topic, part]) + b"\n")
                time.sleep(0)


def _parts(rows: dict[str, TableRow]) -> Iterator[list[Any]]:
    left = iter(rows.items())
    while part := [[key, *row] for key, row in islice(left, _AT_ONCE)]:
        yield part


def _in_units(weight: float) -> int:
    """A float, exactly, as a multiple of the smallest one."""
    mantissa, exponent = math.frexp(weight)
    shift = exponent - _MANTISSA + _DENORMAL
    units = int(mantissa * (1 << _MANTISSA))
    return units << shift if shift >= 0 else units >> -shift
