"""Edges as lines of csv: the bytes that Arrow's writer makes of them, on all threads.

Idea: what a vertex goes by is made into text once and copied to each of its edges; integers are
written here. Arrow formats the weights that are not small whole numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arguments.arrow import as_arrow
from ...arrays import Array, address
from ...cpu.instructions import load_i64, load_u32, move_bytes, store_u8
from ...cpu.jit import compiled, inlined
from ...dependencies import optional_import

Texts = tuple[Array, Array]  # int64[n+1], uint8: text i lies between two offsets of the bytes

ID, TEXT_OF_ROW, TIME, WEIGHT = range(4)
MOST_DIGITS = 20  # of an integer, with its sign
SMALL = 1e6  # below, Arrow writes a whole weight as an integer
_COMMA, _END, _MINUS, _ZERO = ord(","), ord("\n"), ord("-"), ord("0")


class Lines:
    """The lines of a snapshot's edges. of_rows: the names of rows, as Arrow's columns; None:
    ids."""

    def __init__(self, of_rows: dict[str, Any] | None) -> None:
        self._pyarrow = optional_import("pyarrow", "pyarrow", "write_csv()")
        self._of_rows = None if of_rows is None else [self._quoted(c) for c in of_rows.values()]

    def of(self, table: dict[str, Array]) -> memoryview:
        """The lines of a piece of `edge_chunks`."""
        columns: list[tuple[int, Array, Texts | None]] = []
        for name, column in table.items():
            if name in ("src", "dst"):
                if self._of_rows is None:
                    columns.append((ID, column, None))
                else:
                    columns += [(TEXT_OF_ROW, column, texts) for texts in self._of_rows]
            elif name == "time":
                columns.append((TIME, column, None))
            else:
                columns.append((WEIGHT, *self._weights(column)))
        n, room = len(table["src"]), 0
        described = np.zeros((len(columns), 4), np.int64)
        held = [np.ascontiguousarray(values) for _, values, _ in columns]  # until all is written
        for place, ((kind, values, texts), kept) in enumerate(zip(columns, held, strict=True)):
            described[place, :2] = kind, address(kept)
            room += n * (MOST_DIGITS + 1)
            if texts is not None:
                described[place, 2:] = address(texts[0]), address(texts[1])
                at = values if kind == TEXT_OF_ROW else np.arange(len(texts[0]) - 1)
                room += int((texts[0][at + np.int64(1)] - texts[0][at]).sum())
        lines = np.empty(room, np.uint8)
        return lines[: write_lines(n, described, address(lines))].data

    def _weights(self, weights: Array) -> tuple[Array, Texts]:
        """int64: small whole weights, -1 for each of the others; the texts of those."""
        with np.errstate(invalid="ignore"):
            whole = weights.astype(np.int64)
        plain = (whole == weights) & (whole < SMALL) & ~np.signbit(weights)
        whole[~plain] = -1
        return whole, self._texts(as_arrow(weights[~plain]))

    def _quoted(self, column: Any) -> Texts:
        """Text in quotes, as csv has it; anything else plain."""
        if not self._pyarrow.types.is_string(column.type):
            return self._texts(column)
        compute = optional_import("pyarrow.compute", "pyarrow", "write_csv()")
        text = self._pyarrow.large_string()
        doubled = compute.replace_substring(column.cast(text), '"', '""')
        quote, nothing = (self._pyarrow.scalar(its, text) for its in ('"', ""))
        return self._texts(compute.binary_join_element_wise(quote, doubled, quote, nothing))

    def _texts(self, column: Any) -> Texts:
        if hasattr(column, "combine_chunks"):  # above 2 GiB it comes in pieces
            column = column.cast(self._pyarrow.large_string()).combine_chunks()
        _, offsets, data = column.cast(self._pyarrow.large_string()).buffers()
        if offsets is None or not len(column):
            return np.zeros(1, np.int64), np.zeros(1, np.uint8)
        ends = np.frombuffer(offsets, np.int64, len(column) + 1)
        return ends, np.frombuffer(data, np.uint8) if data is not None else np.zeros(1, np.uint8)


@inlined
def _put_digits(out: int, value: np.uint64) -> int:
    """Write an integer; the address behind it."""
    digits, power = 1, np.uint64(10)
    while digits < MOST_DIGITS and value >= power:
        digits, power = digits + 1, power * np.uint64(10)
    at = out + digits
    while value >= np.uint64(10):
        rest = value // np.uint64(10)
        at -= 1
        store_u8(at, np.uint8(_ZERO + value - np.uint64(10) * rest))
        value = rest
    store_u8(at - 1, np.uint8(_ZERO + value))
    return out + digits


@compiled
def write_lines(n: int, columns: Array, into: int) -> int:
    """Write n lines at an address; their bytes. columns: (kind, address of the values, addresses of
    the texts' offsets and bytes) of each."""
    out, other = into, 0
    for row in range(n):
        for place in range(len(columns)):
            kind, values = columns[place, 0], columns[place, 1]
            if place:
                store_u8(out, np.uint8(_COMMA))
                out += 1
            text = np.int64(-1)
            if kind == ID:
                out = _put_digits(out, np.uint64(load_u32(values + 4 * row)))
            elif kind == TIME:
                value = load_i64(values + 8 * row)
                if value < 0:
                    store_u8(out, np.uint8(_MINUS))
                    out = _put_digits(out + 1, np.uint64(0) - np.uint64(value))
                else:
                    out = _put_digits(out, np.uint64(value))
            elif kind == WEIGHT:
                value = load_i64(values + 8 * row)
                if value >= 0:
                    out = _put_digits(out, np.uint64(value))
                else:
                    text, other = np.int64(other), other + 1
            else:
                text = np.int64(load_u32(values + 4 * row))
            if text >= 0:
                at = columns[place, 2] + 8 * text
                size = load_i64(at + 8) - load_i64(at)
                move_bytes(out, columns[place, 3] + load_i64(at), size)
                out += size
        store_u8(out, np.uint8(_END))
        out += 1
    return out - into
