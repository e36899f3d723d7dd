"""The text of a file in blocks of whole rows.

Idea: a row ends at a line's end that lies in no quoted field: see quotes.py. A quote that opens and
never closes spoils its own line alone: after MAX_ROW_BYTES, or at the end of the file, the line is
taken as it is. A line ends in LF, CRLF or CR, in any mixture; a block has no CR alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np

from ...errors import SourceError
from .kinds import HEAD_BYTES, no_edge_list
from .quotes import Quotes, quotes_of
from .unpacking import unpacked

BLOCK_BYTES = 1 << 22
MAX_ROW_BYTES = 1 << 20

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Block:
    """Whole rows of a file. line: the number of the first, from 1. quotes: those of quoted fields,
    where they are known."""

    data: bytes
    line: int
    quotes: Quotes | None = field(default=None, repr=False)

    def holding(self, data: bytes) -> Block:
        """The block with other data in the same lines."""
        return self if data is self.data else Block(data, self.line)


def read_blocks(path: Path, separator: str | None, begins: bytes | None = None) -> Iterator[Block]:
    """The file's rows in order, whole, many at a time. Lines end in LF, whatever they end in there.

    separator: of the fields, where these may be quoted; None: quotes mean nothing. begins: what
    such a file always begins with; b"": anything. Raises SourceError if it is not text, OSError."""
    line, rest, more = 1, b"", b""
    blocks = _blocks(path)
    first = next(blocks, b"").removeprefix(_BOM)
    if (begins is None or not first.lstrip().startswith(begins)) and (
        what := no_edge_list(first[:HEAD_BYTES])
    ):
        raise SourceError(f"{path}: {what}")
    for more in chain([first], blocks):
        data, ends_in_cr = _with_lf(rest + more, separator)
        end, quotes = _whole_rows(data, separator) if separator else (data.rfind(b"\n") + 1, None)
        if len(data) - end > MAX_ROW_BYTES:
            end, quotes = _first_line(data, end, path, line), None
        if end:
            yield Block(data[:end], line, quotes)
            line += _lines(data, end)
        rest = data[end:] + ends_in_cr
    if rest.endswith(b"\r"):
        rest = rest[:-1] + b"\n"
    while rest:
        rest += b"" if rest.endswith(b"\n") else b"\n"
        end = (_whole_rows(rest, separator)[0] if separator else 0) or rest.find(b"\n") + 1
        end = end if separator else len(rest)
        yield Block(rest[:end], line)
        line += rest.count(b"\n", 0, end)
        rest = rest[end:]


def _lines(data: bytes, end: int) -> int:
    """How many lines end before `end`: several times as fast as bytes.count."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8, end) == 10))


def _blocks(path: Path) -> Iterator[bytes]:
    with unpacked(path) as file:
        while block := file.read(BLOCK_BYTES):
            yield block


def _with_lf(data: bytes, separator: str | None) -> tuple[bytes, bytes]:
    """Lines that end in CR alone made to end in LF, but for a CR in a quoted field; and a last CR,
    of which it is not known yet whether LF follows."""
    last = b"\r" if data.endswith(b"\r") else b""
    data = data[: len(data) - len(last)]
    if b"\r" not in data or data.count(b"\r") == data.count(b"\r\n"):
        return data, last
    if separator is None or b'"' not in data:
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n"), last
    quotes = quotes_of(data, separator)
    text = np.frombuffer(data, np.uint8).copy()
    at = np.flatnonzero(text[:-1] == 13)
    at = at[text[at + 1] != 10]
    before = np.searchsorted(quotes.opening, at) - 1
    closing = np.append(quotes.closing, len(text))
    outside = (before < 0) | (closing[np.minimum(before, len(closing) - 1)] < at)
    text[at[outside]] = 10
    return text.tobytes(), last


def _first_line(data: bytes, end: int, path: Path, line: int) -> int:
    """Where the first line from `end` on ends, in which a quote opens and does not close."""
    stop = data.find(b"\n", end) + 1
    if not stop or stop - end > MAX_ROW_BYTES:
        line += data.count(b"\n", 0, end)
        raise SourceError(f"{path}: line {line} passes {MAX_ROW_BYTES} bytes: not an edge list")
    return stop


def _whole_rows(data: bytes, separator: str) -> tuple[int, Quotes | None]:
    """How many bytes of `data` are whole rows, up to the last line's end outside of quotes; and the
    quotes of these."""
    end = data.rfind(b"\n") + 1
    if b'"' not in data:
        return end, None
    quotes = quotes_of(data, separator)
    starts, ends = quotes.opening, quotes.closing
    while end:
        before = int(np.searchsorted(starts, end)) - 1
        if before < 0 or (before < len(ends) and ends[before] < end):
            return end, quotes.before(end)
        end = data.rfind(b"\n", 0, int(starts[before])) + 1
    return 0, None


def lines_of(data: bytes, separator: str | None) -> list[tuple[int, bytes]]:
    """The rows of a block that are not blank, each with the number of its first line, from 0."""
    lines = data.removesuffix(b"\n").split(b"\n")
    if separator is None or b'"' not in data:
        return [(number, line) for number, line in enumerate(lines) if line.strip()]
    quotes = quotes_of(data, separator)
    starts, ends = quotes.opening.tolist(), quotes.closing.tolist()
    rows: list[tuple[int, bytes]] = []
    begin, number = 0, 0
    while begin < len(data):
        end = data.find(b"\n", begin)
        while end >= 0:
            before = bisect_left(starts, end) - 1
            if before < 0 or before >= len(ends) or ends[before] < end:
                break
            end = data.find(b"\n", ends[before])
        end = len(data) if end < 0 else end
        row = data[begin:end]
        if row.strip():
            rows.append((number, row))
        number += row.count(b"\n") + 1
        begin = end + 1
    return rows
