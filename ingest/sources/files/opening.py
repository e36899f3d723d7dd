"""A file's bytes, unpacked if they are packed, in blocks of whole rows.

Idea: a row ends at a line's end that lies in no quoted field: see quotes.py. A quote that opens and
never closes spoils its own line alone: after MAX_ROW_BYTES, or at the end of the file, the line is
taken as it is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np

from ...errors import SourceError
from .kinds import no_edge_list
from .quotes import Quotes, quotes_of

BLOCK_BYTES = 1 << 22
MAX_ROW_BYTES = 1 << 20
HEAD_BYTES = 1 << 13  # read to detect what a file is

_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_BOM = b"\xef\xbb\xbf"


def packing_of(path: Path) -> str | None:
    """ "gzip" or "zstd" if the first bytes say so."""
    with open(path, "rb") as file:
        head = file.read(4)
    return next((packing for magic, packing in _PACKED.items() if head.startswith(magic)), None)


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
    such a file always begins with. Raises SourceError if it is not text, and OSError."""
    line, rest, more = 1, b"", b""
    blocks = _unpacked(path)
    first = next(blocks, b"").removeprefix(_BOM)
    if not (begins and first.lstrip().startswith(begins)) and (
        what := no_edge_list(first[:HEAD_BYTES], path)
    ):
        raise SourceError(f"{path}: {what}")
    old_mac = b"\r" in first[:-1] and b"\n" not in first  # at its end it may be half of CRLF
    for more in chain([first], blocks):
        data = rest + (more.replace(b"\r", b"\n") if old_mac else more)
        end, quotes = _whole_rows(data, separator) if separator else (data.rfind(b"\n") + 1, None)
        if len(data) - end > MAX_ROW_BYTES:
            end, quotes = _first_line(data, end, path, line), None
        if end:
            yield Block(data[:end], line, quotes)
            line += _lines(data, end)
        rest = data[end:]
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


def _unpacked(path: Path) -> Iterator[bytes]:
    packing = packing_of(path)
    with open(path, "rb") as raw:
        file: Any = raw
        if packing is not None:
            import pyarrow

            file = pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, "r"), packing)
        while block := file.read(BLOCK_BYTES):
            yield cast(bytes, block)


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
