"""The text of a file in blocks of whole rows.

Idea: a row ends at a line's end that lies in no quoted field: see quotes.py. A quote that opens and
never closes spoils its own line alone: after MAX_ROW_BYTES, or at the end of the file, the line is
taken as it is. A line ends in LF, CRLF or CR, in any mixture; a block has no CR alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ...errors import SourceError
from .quotes import NO_QUOTES, Quotes, quotes_of
from .unpacking import unpacked

BLOCK_BYTES = 1 << 22
MAX_ROW_BYTES = 1 << 20

_BOM = b"\xef\xbb\xbf"
_LF, _CR = 10, 13


@dataclass(frozen=True)
class Block:
    """Whole rows of a file. line: the number of the first, from 1. quotes: of quoted fields."""

    data: bytes
    line: int
    quotes: Quotes = field(default=NO_QUOTES, repr=False)

    def before(self, end: int) -> Block:
        """The first `end` bytes."""
        return Block(self.data[:end], self.line, self.quotes.before(end))

    def holding(self, data: bytes, separator: str | None = None) -> Block:
        """The block with other data in the same lines."""
        if data is self.data:
            return self
        return Block(data, self.line, quotes_of(data, separator))

    def rows(self) -> list[tuple[int, bytes]]:
        """The rows that are not blank, each with the number of its first line, from 0."""
        ends = np.flatnonzero(np.frombuffer(self.data, np.uint8) == _LF)
        last = np.flatnonzero(~self.quotes.hold(ends))  # lines that end rows
        stops = [*ends[last].tolist(), len(self.data)]
        starts = [0, *(ends[last] + 1).tolist()]
        numbers = [0, *(last + 1).tolist()]
        rows = zip(numbers, map(slice, starts, stops), strict=True)
        return [(number, row) for number, span in rows if (row := self.data[span]).strip()]


def read_blocks(path: Path, separator: str | None = None) -> Iterator[Block]:
    """The file's rows in order, whole, many at a time. Lines end in LF, whatever they end in there.

    separator: of the fields, where these may be quoted; None: quotes mean nothing. Raises
    SourceError if there is no line's end, OSError."""
    line, rest = 1, b""
    for more in _blocks(path):
        data, ends_in_cr = _with_lf(rest + more, separator)
        block = Block(data, line, quotes_of(data, separator))
        end = _end_of_rows(block)
        if len(data) - end > MAX_ROW_BYTES:
            end = _end_of_line(data, end, path, line)
            block = Block(data, line)
        if end:
            yield block.before(end)
            line += _lines(data, end)
        rest = data[end:] + ends_in_cr
    if rest.endswith(b"\r"):
        rest = rest[:-1] + b"\n"
    while rest:
        rest += b"" if rest.endswith(b"\n") else b"\n"
        block = Block(rest, line, quotes_of(rest, separator))
        end = _end_of_rows(block) or rest.find(b"\n") + 1
        yield block.before(end)
        line += rest.count(b"\n", 0, end)
        rest = rest[end:]


def _lines(data: bytes, end: int) -> int:
    """How many lines end before `end`: several times as fast as bytes.count."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8, end) == _LF))


def _blocks(path: Path) -> Iterator[bytes]:
    with unpacked(path) as file:
        yield file.read(BLOCK_BYTES).removeprefix(_BOM)
        while block := file.read(BLOCK_BYTES):
            yield block


def _with_lf(data: bytes, separator: str | None) -> tuple[bytes, bytes]:
    """Lines that end in CR alone made to end in LF, but for a CR in a quoted field; and a last CR,
    of which it is not known yet whether LF follows."""
    last = b"\r" if data.endswith(b"\r") else b""
    data = data[: len(data) - len(last)]
    if b"\r" not in data or data.count(b"\r") == data.count(b"\r\n"):
        return data, last
    text = np.frombuffer(data, np.uint8).copy()
    at = np.flatnonzero(text[:-1] == _CR)
    at = at[text[at + 1] != _LF]
    text[at[~quotes_of(data, separator).hold(at)]] = _LF
    return text.tobytes(), last


def _end_of_line(data: bytes, start: int, path: Path, line: int) -> int:
    """Where the line from `start` on ends, in which a quote opens and does not close."""
    stop = data.find(b"\n", start) + 1
    if not stop or stop - start > MAX_ROW_BYTES:
        line += data.count(b"\n", 0, start)
        raise SourceError(f"{path}: line {line} passes {MAX_ROW_BYTES} bytes: not an edge list")
    return stop


def _end_of_rows(block: Block) -> int:
    """How many bytes are whole rows, up to the last line's end outside of quotes."""
    data, quotes = block.data, block.quotes
    end = data.rfind(b"\n") + 1
    while end and quotes.hold(end - 1):
        opening = int(quotes.opening[np.searchsorted(quotes.opening, end) - 1])
        end = data.rfind(b"\n", 0, opening) + 1
    return end
