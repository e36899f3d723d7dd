"""The compiled reader of plain rows of Avro: edges that are appended, with what most schemas have.

Idea: a schema is a program that walks a record's bytes, made once. It takes the ends, the weight
and the time where the mapping has them, and steps over the rest, without an object for any of it:
a tenth of a microsecond a row, where fastavro takes two. What comes of it is what `plain_rows.py`
makes of our own rows. Every other record is left to `avro.py`: one that is damaged, a value of
another type, an expiry; and so are all records of a schema or a mapping for which there is no
program (`program_of`).

A program is a table of (op, a, b, slot), of which each row is one of these:

    SKIP a               step over so many bytes         LONG, BYTES         step over these
    TAKE_LONG a, b       an integer, times a over b      TAKE_TEXT           text
    TAKE_FLOAT, TAKE_DOUBLE                              BAD                 the record is left
    BRANCH a             a union: go to the row after this one whose number the record says, of a
    JUMP a               go to row a                     END                 where the record ends
    BLOCK a              a block of items: as many as the record says; none: go to row a
    NEXT a               once more from behind row a, the BLOCK, if an item of its block is left
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lpma.arguments.convert import MAX_NAME_BYTES
from lpma.batch.columns import MAX_VERTEX, MAX_WEIGHT
from lpma.cpu.jit import compiled
from lpma.names.column import NEGATIVE, TEXT, Column

from ..fields import Fields
from ..formats.row_reader import PlainRows
from ..types import Array, Values
from .avro import LEAF, MAX_NESTING, Type, time_scale, wanted

SKIP, LONG, BYTES, TAKE_LONG, TAKE_TEXT, TAKE_FLOAT, TAKE_DOUBLE = range(7)
BRANCH, JUMP, BLOCK, NEXT, BAD, END = range(7, 13)
SRC, DST, WEIGHT, TIME = range(4)

_SLOTS = {"src": SRC, "dst": DST, "weight": WEIGHT, "time": TIME}
_UNITS = {"ms": (1, 1), "s": (1000, 1), "us": (1, 1000), "ns": (1, 1_000_000)}
_TEXT, _NEGATIVE = int(TEXT), int(NEGATIVE)


class _Unfit(Exception):
    """There is no program for it."""


class _Writer:
    """Writes the program of a schema. slots: of the mapped fields."""

    def __init__(self, slots: Mapping[str, int], unit: str) -> None:
        self.rows: list[tuple[int, int, int, int]] = []
        self._slots, self._unit = slots, unit
        self.taken: set[int] = set()

    def put(self, op: int, a: int = 0, b: int = 0, slot: int = 0) -> int:
        self.rows.append((op, a, b, slot))
        return len(self.rows) - 1

    def some(self, of: Type, want: Mapping[str, Any], path: str) -> None:
        """A value of which some fields are wanted."""
        if of.kind == "union":
            self.union(of, lambda each: self.some(each, want, path))
        elif of.kind == "map":
            raise _Unfit
        elif of.kind != "record":
            self.skip(of)
        else:
            for name, each in of.parts:
                if "." in name:
                    raise _Unfit
                if name not in want:
                    self.skip(each)
                elif want[name] is LEAF:
                    self.take(each, self._slots[path + name])
                else:
                    self.some(each, want[name], f"{path}{name}.")

    def take(self, of: Type, slot: int) -> None:
        """A value that is wanted."""
        self.taken.add(slot)
        if of.kind == "union":
            self.union(of, lambda each: self.take_branch(each, slot))
        elif not self.take_branch(of, slot):
            raise _Unfit

    def take_branch(self, of: Type, slot: int) -> bool:
        """The same; False: it has a type that is left, which the program says, too."""
        times, over = (1, 1)
        if slot == TIME and of.kind in ("int", "long"):
            times, over = time_scale(of) or _UNITS[self._unit]
        elif of.is_time:
            times, over = time_scale(of) or (1, 1)
        if of.kind == "null":
            return True
        if of.kind in ("int", "long"):
            self.put(TAKE_LONG, times, over, slot)
        elif of.kind == "string" and slot in (SRC, DST):
            self.put(TAKE_TEXT, slot=slot)
        elif of.kind in ("float", "double") and slot == WEIGHT:
            self.put(TAKE_FLOAT if of.kind == "float" else TAKE_DOUBLE, slot=slot)
        else:
            self.put(BAD)
            return False
        return True

    def skip(self, of: Type) -> None:
        """A value that is not wanted."""
        if of.kind == "record":
            for _, each in of.parts:
                self.skip(each)
        elif of.kind == "union":
            self.union(of, self.skip)
        elif of.kind in ("array", "map"):
            block = self.put(BLOCK)
            if of.kind == "map":
                self.put(BYTES)
            self.skip(of.parts[0][1])
            self.put(NEXT, block)
            self.rows[block] = (BLOCK, len(self.rows), 0, 0)
        elif of.kind in ("string", "bytes"):
            self.put(BYTES)
        elif of.kind in ("int", "long", "enum"):
            self.put(LONG)
        elif of.kind != "null":
            self.put(SKIP, of.least)

    def union(self, of: Type, branch: Any) -> None:
        """A table of jumps, and the branches behind it."""
        first = self.put(BRANCH, len(of.parts)) + 1
        for _ in of.parts:
            self.put(JUMP)
        ends = []
        for number, (_, each) in enumerate(of.parts):
            self.rows[first + number] = (JUMP, len(self.rows), 0, 0)
            branch(each)
            ends.append(self.put(JUMP))
        for end in ends:
            self.rows[end] = (JUMP, len(self.rows), 0, 0)


def program_of(of: Type, fields: Fields) -> Array | None:
    """int64[rows, 4]: the program of a schema for a mapping `of_topic`; None: there is none."""
    roles = {role: name for role, name in fields.by_role().items() if name is not None}
    want = wanted(roles.values())
    others = [name for role, name in roles.items() if role not in _SLOTS]
    if fields.has_defaults or any(True for name in others for _ in of.at(name.split("."))):
        return None
    every = roles.values()
    if any(other.startswith(f"{one}.") for one in every for other in every):
        return None  # one lies within another
    writer = _Writer({name: _SLOTS.get(role, -1) for role, name in roles.items()},
                     fields.time_unit or "ms")  # fmt: skip
    try:
        if of.kind != "record":
            return None
        writer.some(of, want, "")
    except _Unfit:
        return None
    if not {SRC, DST} <= writer.taken:
        return None
    writer.put(END)
    return np.array(writer.rows, np.int64)


def read_rows(values: Values, header: int, program: Array, names: bool) -> PlainRows:
    """The rows of these records, behind a header of so many bytes; `plain` says which are read."""
    n, data = len(values), np.frombuffer(values.data, np.uint8)
    plain, weighted, timed = (np.zeros(n, np.bool_) for _ in range(3))
    weight, time = np.ones(n), np.zeros(n, np.int64)
    kinds, keys = np.zeros(2 * n, np.uint8), np.zeros(2 * n, np.uint64)
    size = int((values.stops - values.starts).sum()) if names else 0
    bounds, blob = np.zeros(2 * n + 1, np.int64), np.empty(size, np.uint8)
    texts = read_all(
        data, values.starts + header, values.stops, names, program, plain, weight, time, weighted,
        timed, kinds, keys, bounds, blob,
    )  # fmt: skip
    try:
        # No text begins within a character, so each is UTF-8 if all of them are.
        str(blob[: bounds[texts]].data, "utf-8")
    except UnicodeDecodeError:
        plain[:] = False
    ends = Column(kinds, keys, bounds[: texts + 1], blob)
    return PlainRows(plain, np.zeros(n, np.uint8), weight, time, weighted, timed, ends, names)


@compiled
def read_all(
    data: Any, starts: Any, stops: Any, names: bool, program: Any, plain: Any, weight: Any,
    time: Any, weighted: Any, timed: Any, kinds: Any, keys: Any, bounds: Any, blob: Any,
) -> int:  # fmt: skip
    """As `plain_rows.read_all`, of rows of Avro."""
    texts = 0
    found, sizes = np.zeros(4, np.int64), np.zeros(4, np.int64)
    left, number = np.zeros(MAX_NESTING + 2, np.int64), np.zeros(1)
    for i in range(len(stops)):
        sizes[:] = -2  # not there
        if not _walk(data, starts[i], stops[i], program, found, sizes, number, left):
            continue
        if not _names_vertex(found[0], sizes[0], names):
            continue
        if not _names_vertex(found[1], sizes[1], names):
            continue
        w = number[0] if sizes[2] == 8 else np.float64(found[2])
        if sizes[2] != -2 and not abs(w) <= MAX_WEIGHT:  # NaN fails, too
            continue
        plain[i] = True
        if sizes[2] != -2:
            weight[i], weighted[i] = w, True
        if sizes[3] != -2:
            time[i], timed[i] = found[3], True
        for j in range(2):
            value = found[j]
            if sizes[j] >= 0:
                kinds[2 * i + j] = _TEXT
                used = bounds[texts]
                for at in range(sizes[j]):
                    blob[used + at] = data[value + at]
                value, texts = np.int64(texts), texts + 1
                bounds[texts] = used + sizes[j]
            elif value < 0:
                kinds[2 * i + j] = _NEGATIVE
            keys[2 * i + j] = np.uint64(value)
    return texts


@compiled
def _names_vertex(value: int, size: int, names: bool) -> bool:
    if size == -1:
        return names or 0 <= value <= MAX_VERTEX
    return names and 1 <= size <= MAX_NAME_BYTES


@compiled
def _long(data: Any, at: int, stop: int) -> Any:
    """An integer, and the place behind it; −1: there is none of 64 bits."""
    value, shift = np.uint64(0), np.uint64(0)
    for _ in range(9):  # a tenth byte is left to whoever reads others
        if at >= stop:
            return np.int64(0), -1
        byte = np.uint64(data[at])
        at += 1
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), at
        shift += np.uint64(7)
    return np.int64(0), -1


@compiled
def _float(data: Any, at: int, size: int) -> float:
    """A float of 4 or 8 bytes, little-endian."""
    bits = np.uint64(0)
    for i in range(size):
        bits |= np.uint64(data[at + i]) << np.uint64(8 * i)
    if size == 4:
        return np.float64(np.uint32(bits).view(np.float32))
    return np.uint64(bits).view(np.float64)


@compiled
def _walk(
    data: Any, at: int, stop: int, program: Any, found: Any, sizes: Any, number: Any, left: Any
) -> bool:
    """Run a program. found, sizes, number: see `read_all`; sizes[WEIGHT] is 8 where `number` has
    it. left: items of each block that is open."""
    row, depth = 0, 0
    while True:
        op, a, b, slot = program[row, 0], program[row, 1], program[row, 2], program[row, 3]
        row += 1
        if op == SKIP:
            at += a
        elif op == JUMP:
            row = a
        elif op == END:
            return bool(at == stop)
        elif op == BAD:
            return False
        elif op in (TAKE_FLOAT, TAKE_DOUBLE):
            size = 4 if op == TAKE_FLOAT else 8
            if at + size > stop:
                return False
            number[0] = _float(data, at, size)
            sizes[slot] = 8
            at += size
        elif op == NEXT:
            left[depth] -= 1
            if left[depth] > 0:
                row = a + 1
            else:
                row = a
                depth -= 1
        else:
            value, at = _long(data, at, stop)
            if at < 0:
                return False
            if op in (BYTES, TAKE_TEXT):
                if value < 0 or value > stop - at:
                    return False
                if op == TAKE_TEXT:
                    if value == 0 or data[at] & 0xC0 == 0x80:
                        return False
                    found[slot], sizes[slot] = at, value
                at += value
            elif op == TAKE_LONG:
                if a > 1 and not -(2**63 // a) < value < 2**63 // a:
                    return False
                found[slot], sizes[slot] = value * a // b, -1
            elif op == BRANCH:
                if not 0 <= value < a:
                    return False
                row += value
            elif op == BLOCK:
                if value < 0:
                    _, at = _long(data, at, stop)  # how many bytes it has
                    value = -value
                    if at < 0 or value < 0:
                        return False
                if value == 0:
                    row = a
                else:
                    depth += 1
                    left[depth] = value
        if at > stop:
            return False
