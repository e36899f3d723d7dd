"""A table and its history: rows that are inserted, updated, deleted, read again and truncated.

A `Change` is what one record of a topic says. A row that changes its key is two, as in Debezium:
the deletion of the old one and the insertion of the new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any, Literal, NamedTuple

Row = Mapping[str, Any]  # by column; amounts are Decimal, times are ms since 1970
Key = tuple[Any, ...]
Rows = dict[Key, Row]

DAY_MS = 86_400_000
START_MS = 20_000 * DAY_MS
QUARTER = Decimal("0.25")  # sums are exact in floats


@dataclass(frozen=True)
class Table:
    """Columns and the primary key. nullable: the ends, the amount and the time may be NULL, but for
    those of the key."""

    name: str = "transfers"
    key: tuple[str, ...] = ("id",)
    text_ends: bool = False
    nullable: bool = True
    source: str = "payer"
    target: str = "payee"
    amount: str = "amount"
    time: str = "at"

    @property
    def columns(self) -> tuple[str, ...]:
        own = [name for name in self.key if name not in self._mapped]
        return (*own, *self._mapped, "note")

    @property
    def _mapped(self) -> tuple[str, ...]:
        return self.source, self.target, self.amount, self.time

    def key_of(self, row: Row) -> Key:
        return tuple(row[name] for name in self.key)

    def may_be_null(self, column: str) -> bool:
        return column == "note" or (self.nullable and column not in self.key)


class Position(NamedTuple):
    """Where the database's log has a change: its transaction, its place in there, and when."""

    transaction: int
    number: int
    time_ms: int


class Change(NamedTuple):
    """One row's change. before and after: the whole rows, whatever an envelope shows of them."""

    op: Literal["c", "r", "u", "d", "t"]
    before: Row | None
    after: Row | None
    at: Position
    snapshot: Literal["false", "true", "last", "incremental"] = "false"
    moved: bool = False  # one half of a change of the key


def apply(rows: Rows, change: Change, table: Table) -> Rows:
    """The table after `change`."""
    if change.op == "t":
        return {}
    left = dict(rows)
    if change.before is not None:
        left.pop(table.key_of(change.before), None)
    if change.after is not None:
        left[table.key_of(change.after)] = change.after
    return left


@dataclass
class Database:
    """A table that is written to at random. Whoever draws the numbers decides: `st.randoms()` of
    Hypothesis, or a generator with a seed. step_ms: what times are whole multiples of;
    quantum: what amounts are."""

    table: Table
    random: Random
    vertices: int = 5
    keys: int = 9
    step_ms: int = 1000
    quantum: Decimal = QUARTER
    truncates: bool = True
    negative: bool = True
    rows: Rows = field(default_factory=dict)
    history: list[Change] = field(default_factory=list)
    _transaction: int = 0
    _clock_ms: int = START_MS

    def run(self, transactions: int) -> list[Change]:
        """So many transactions more; the whole history."""
        for _ in range(transactions):
            self._transaction += 1
            self._clock_ms += self.random.choice([1, 7, self.step_ms])
            what = self.random.randrange(40)
            if what == 0 and self.truncates:
                self._note("t", None, None)
            elif what in (1, 2):
                self.read_again()
            else:
                for _ in range(self.random.choice([1, 1, 1, 2, 3])):
                    self._write()
        return self.history

    def read_first(self) -> None:
        """The snapshot that a connector begins with: every row, the last of them marked."""
        found = list(self.rows.values())
        for number, row in enumerate(found, 1):
            self._note("r", None, row, "last" if number == len(found) else "true")

    def read_again(self) -> None:
        """A chunk of an incremental snapshot: rows that the topic has already, as they are now."""
        chunk = sorted(self.rows, key=repr)[: self.random.choice([1, 3, 100])]
        for key in chunk:
            self._note("r", None, self.rows[key], "incremental")

    def _write(self) -> None:
        row = self._row()
        key = self.table.key_of(row)
        old = self.rows.get(key)
        if old is None:
            self._note("c", None, row)
            return
        what = self.random.choice(["amount", "all", "key", "delete", "delete", "note"])
        if what == "delete":
            self._note("d", old, None)
        elif what == "amount":
            self._note("u", old, {**old, self.table.amount: row[self.table.amount]})
        elif what == "all":
            self._note("u", old, row)
        elif what == "note":
            self._note("u", old, {**old, "note": f"x{self.random.randrange(100)}"})
        else:
            self._move(old)

    def _move(self, old: Row) -> None:
        moved = {**old, **{name: self._value(name) for name in self.table.key}}
        if self.table.key_of(moved) in self.rows:
            return  # a database refuses it
        self._note("d", old, None, moved=True)
        self._note("c", None, moved, moved=True)

    def _note(
        self, op: Any, before: Row | None, after: Row | None, snapshot: Any = "false",
        moved: bool = False,
    ) -> None:  # fmt: skip
        at = Position(self._transaction, len(self.history), self._clock_ms)
        change = Change(op, before, after, at, snapshot, moved)
        self.history.append(change)
        self.rows = apply(self.rows, change, self.table)

    def _row(self) -> Row:
        return {name: self._value(name) for name in self.table.columns}

    def _value(self, column: str) -> Any:
        table, random = self.table, self.random
        if table.may_be_null(column) and random.randrange(10) == 0:
            return None
        if column in (table.source, table.target):
            number = random.randrange(self.vertices)
            return f"v{number}" if table.text_ends else number
        if column == table.amount:
            return random.randrange(-4 if self.negative else 1, 25) * self.quantum
        if column == table.time:
            return (self._clock_ms // self.step_ms - random.randrange(3)) * self.step_ms
        if column in table.key:
            return random.randrange(self.keys)
        return f"n{random.randrange(1000)}"
