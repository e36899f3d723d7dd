"""The rows of tables whose rows may share their ends: what each edge's weight is the sum of.

Idea: an edge's weight is the sum over the rows with its ends. To add what a row gains and subtract
what it loses is not enough: a snapshot reads rows again, a connector that was killed sends changes
again, and after them the sum would be wrong for ever. So each row is remembered by its key, with
its ends and its weight, and a change says what the row is now: said twice, it changes nothing. Then
no change has to say what the row was before, either.

Tricks. A weight is the decimal that it is written as, as in a database: a float stands for its
shortest one. A sum is kept as an integer over a power of ten, so it is exact: 0.1 and 0.2 and -0.3
are 0, and it depends on the rows that are there, and on no others that came and went. How many rows
it is of is kept beside it, so an edge is gone with its last row. Its time is that of the newest of
its rows, which are counted by their times. The file has the rows alone; the sums follow from them.

Rows change when a record is decoded, before its batch is applied, and a checkpoint is of what was
applied. So what each change replaced is kept until then, and an image goes back by as much.

    rows     JSON lines: [topic, [[key, src, dst, weight, time or null], …], table]

A weight that is not the shortest decimal of a float is text.
A topic may hold several tables, whose keys are alike; of each there is a line, even if it has no
rows. The table is left out where records do not say it.

Invariant: `_sums` is what `_rows` say.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

from lpma.file.atomic import Writable

from ..errors import RecordError
from ..types import Name

ROWS = "rows"  # the file of a checkpoint
_AT_ONCE = 1000  # rows of a line

Ends = tuple[Name, Name]
Place = tuple[str, str]  # a topic, and a table in it; "" where that is not known


class TableRow(NamedTuple):
    """What is remembered of a row. weight: a `Decimal` if it is not the shortest one of a float."""

    src: Name
    dst: Name
    weight: float | Decimal
    time: int | None = None


class Sum(NamedTuple):
    """An edge after a change. weight: None if no row has these ends any more. time: of the newest
    of its rows; None if none has one."""

    src: Name
    dst: Name
    weight: float | None
    time: int | None = None


class _Rows:
    """The rows with the same ends: how many, their sum (total / 10^scale), and how many by their
    times."""

    __slots__ = ("count", "newest", "scale", "times", "total")

    def __init__(self) -> None:
        self.count = self.total = self.scale = 0
        self.newest: int | None = None
        self.times: dict[int, int] = {}

    def add(self, row: TableRow) -> None:
        self.count += 1
        self._add(*_scaled(row.weight))
        if row.time is not None:
            self.times[row.time] = self.times.get(row.time, 0) + 1
            if self.newest is None or row.time > self.newest:
                self.newest = row.time

    def remove(self, row: TableRow) -> None:
        self.count -= 1
        unscaled, scale = _scaled(row.weight)
        self._add(-unscaled, scale)
        if row.time is not None:
            self.times[row.time] -= 1
            if not self.times[row.time]:
                del self.times[row.time]
                if row.time == self.newest:
                    self.newest = max(self.times, default=None)

    def _add(self, unscaled: int, scale: int) -> None:
        if scale > self.scale:
            self.total *= 10 ** (scale - self.scale)
            self.scale = scale
        elif scale < self.scale:
            unscaled *= 10 ** (self.scale - scale)
        self.total += unscaled

    @property
    def weight(self) -> float:
        try:
            return self.total / 10**self.scale  # rounded once
        except OverflowError:
            return math.copysign(math.inf, self.total)


def _scaled(weight: float | Decimal) -> tuple[int, int]:
    """An integer, and the power of ten by which it is divided."""
    text = repr(weight) if isinstance(weight, float) else "e"
    if "e" not in text:  # most are; as fast as Python can
        whole, _, fraction = text.partition(".")
        return (int(whole), 0) if fraction == "0" else (int(whole + fraction), len(fraction))
    sign, digits, exponent = Decimal(str(weight)).as_tuple()
    unscaled = int("".join(map(str, digits))) * (-1) ** sign
    assert isinstance(exponent, int)  # it is finite
    return (unscaled * 10**exponent, 0) if exponent > 0 else (unscaled, -exponent)


class _Change(NamedTuple):
    """What a change replaced: the row of a key (None: there was none), which may have lain in
    another place; or, without a key, all rows of some places. is_first: whether it was the first of
    its table."""

    place: Place
    key: str | None
    row: TableRow | None = None
    moved_from: Place | None = None
    is_first: bool = False
    cleared: Mapping[Place, dict[str, TableRow]] = {}


class TableRows:
    """The rows of the tables of a stream, by topic, table and key. One thread at a time. directed:
    whether (u, v) and (v, u) are two edges; where they are one, so are their rows' sums.

    >>> from ingest.state.table_rows import TableRow, TableRows
    >>> rows = TableRows()
    >>> rows.change("payments", '{"id":1}', TableRow("ann", "bob", 0.1))
    [Sum(src='ann', dst='bob', weight=0.1, time=None)]
    >>> rows.change("payments", '{"id":2}', TableRow("ann", "bob", 0.2))
    [Sum(src='ann', dst='bob', weight=0.30000000000000004, time=None)]
    >>> rows.change("payments", '{"id":1}', None)
    [Sum(src='ann', dst='bob', weight=0.2, time=None)]
    """

    def __init__(self, directed: bool = True) -> None:
        self._directed = directed
        self._rows: dict[Place, dict[str, TableRow]] = {}
        self._sums: dict[Ends, _Rows] = {}
        self._changes: deque[_Change] = deque()  # not applied yet

    def __len__(self) -> int:
        return sum(map(len, self._rows.values()))

    # Changes ---------------------------------------------------------------------------------

    def change(self, topic: str, key: str, row: TableRow | None, table: str = "") -> list[Sum]:
        """Let the row of that key be this from now on (None: it is deleted); the edges that this
        changes, the former one first. Raises RecordError as `find`."""
        found = self._place_of(topic, key, table)
        before = None if found is None else self._rows[found][key]
        place = found if found is not None and not table else (topic, table)
        moved_from = None if found == place else found
        self._changes.append(_Change(place, key, before, moved_from, place not in self._rows))
        self._put(place, key, row)
        if moved_from is not None:
            self._put(moved_from, key, None)
        changed = [self._ends(each) for each in (before, row) if each is not None]
        if len(changed) == 2 and changed[0] == changed[1]:
            del changed[0]
        return [self._sum(each) for each in changed]

    def find(self, topic: str, key: str, table: str = "") -> TableRow | None:
        """The row of that key. Raises RecordError if it is not said which table's it is, and
        there are several."""
        place = self._place_of(topic, key, table)
        return None if place is None else self._rows[place][key]

    def has_others(self, topic: str, table: str) -> bool:
        """Whether rows are remembered that `clear` would leave in this topic."""
        own = self._places(topic, table)
        return any(rows for place, rows in self._rows.items() if place[0] == topic
                   and place not in own)  # fmt: skip

    def clear(self, topic: str, table: str = "") -> list[Sum]:
        """Forget all rows of a table, and those of which it is not known; without a table, all of
        the topic. The edges that this changes."""
        cleared = {place: self._rows[place] for place in self._places(topic, table)}
        self._rows.update((place, {}) for place in cleared)
        self._changes.append(_Change((topic, table), None, cleared=cleared))
        rows = [row for of_place in cleared.values() for row in of_place.values()]
        for row in rows:
            self._remove(row)
        return [self._sum(each) for each in dict.fromkeys(map(self._ends, rows))]

    def _places(self, topic: str, table: str) -> list[Place]:
        return [place for place in self._rows if place[0] == topic
                and (not table or place[1] in (table, ""))]  # fmt: skip

    def _place_of(self, topic: str, key: str, table: str) -> Place | None:
        """Where the row of that key lies; None: there is none. A row of which the table was not
        known is of the table that is named with its key."""
        place = topic, table
        if key in self._rows.get(place, ()):
            return place
        if table:
            place = topic, ""
            return place if key in self._rows.get(place, ()) else None
        tables = [each for each in self._rows if each[0] == topic and each[1]]
        if len(tables) > 1:  # even if one alone has the key: it may be the other's that is gone
            raise RecordError(
                "the record does not say which table it is of, and the topic has "
                f"{' and '.join(sorted(name for _, name in tables))}: add the table to flattened "
                "records, with add.fields=db,schema,table, and do not say --on-tombstone delete; "
                "or give each table a topic of its own"
            )
        return tables[0] if tables and key in self._rows[tables[0]] else None

    def revert(self) -> None:
        """Take the last change back."""
        last = self._changes.pop()
        if last.key is None:
            self._rows.update(last.cleared)
            for rows in last.cleared.values():
                for row in rows.values():
                    self._add(row)
        elif last.moved_from is None:
            self._put(last.place, last.key, last.row)
        else:
            self._put(last.moved_from, last.key, last.row)
            self._put(last.place, last.key, None)
        if last.is_first:
            del self._rows[last.place]

    def applied(self, count: int) -> None:
        """The first so many changes are in the graph."""
        for _ in range(count):
            self._changes.popleft()

    def _put(self, place: Place, key: str, row: TableRow | None) -> None:
        rows = self._rows.setdefault(place, {})
        before = rows.pop(key, None) if row is None else rows.get(key)
        if row is not None:  # first, so that what both share need not be found anew
            rows[key] = row
            self._add(row)
        if before is not None:
            self._remove(before)

    def _add(self, row: TableRow) -> None:
        ends = self._ends(row)
        found = self._sums.get(ends)
        if found is None:
            found = self._sums[ends] = _Rows()
        found.add(row)

    def _remove(self, row: TableRow) -> None:
        ends = self._ends(row)
        found = self._sums[ends]
        found.remove(row)
        if not found.count:
            del self._sums[ends]

    def _ends(self, row: TableRow) -> Ends:
        """Of an undirected edge in the order that both ways share."""
        src, dst = ends = row[:2]
        if self._directed or (isinstance(src, str), src) <= (isinstance(dst, str), dst):
            return ends
        return dst, src

    def _sum(self, ends: Ends) -> Sum:
        found = self._sums.get(ends)
        return Sum(*ends, None) if found is None else Sum(*ends, found.weight, found.newest)

    # Files -----------------------------------------------------------------------------------

    def image(self, old: object = None) -> _RowsImage:
        """A copy of the rows as of what was applied."""
        rows = {place: dict(of_place) for place, of_place in self._rows.items()}
        for change in reversed(self._changes):
            if change.key is None:
                rows.update((place, dict(of)) for place, of in change.cleared.items())
                continue
            before = change.moved_from or change.place
            rows[change.place].pop(change.key, None)
            if change.row is not None:
                rows[before][change.key] = change.row
            if change.is_first:
                del rows[change.place]
        return _RowsImage(rows)

    @classmethod
    def load(cls, path: Path, directed: bool = True) -> Self:
        """What an image wrote."""
        found = cls(directed)
        with open(path, "rb") as file:
            for line in file:
                topic, rows, *table = msgspec.json.decode(line)
                place = topic, table[0] if table else ""
                found._rows.setdefault(place, {})
                for key, src, dst, weight, *time in rows:
                    exact = Decimal(weight) if isinstance(weight, str) else float(weight)
                    found._put(place, key, TableRow(src, dst, exact, *time))
        return found


class _RowsImage(NamedTuple):
    rows: dict[Place, dict[str, TableRow]]

    def write(self, file: Writable) -> None:
        """The interpreter's lock is released between the lines: a stream goes on alongside."""
        for (topic, table), rows in self.rows.items():
            for part in _parts(rows):
                file.write(msgspec.json.encode([topic, part, *[table] * bool(table)]) + b"\n")
                time.sleep(0)


def _parts(rows: dict[str, TableRow]) -> Iterator[list[Any]]:
    left = iter(rows.items())
    yield [[key, *row] for key, row in islice(left, _AT_ONCE)]
    while part := [[key, *row] for key, row in islice(left, _AT_ONCE)]:
        yield part
