"""Quoted fields of csv: where they lie, and blanks around fields cut.

Idea: quotes that come in pairs, each pair opening where a field begins, are found by NumPy; only
where they do not, as in `5" pipe`, a regular expression walks over them field by field. Blanks
around a field are no part of it, those inside quotes are. pyarrow's reader keeps both, takes a
quote behind a blank for a letter, and does not say which fields were quoted: so blanks outside of
quotes are cut before it reads.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_QUOTE, _BLANK, _LF, _CR = b'" \n\r'
_BLANKS = b" \t\v\f"  # within a line
_MAX_PADDING = 256  # blanks before a quote that NumPy looks past
_NO_END = np.iinfo(np.int64).max


class Quotes(NamedTuple):
    """Quotes in pairs: opening[i] … closing[i], of which a last one may have no end. There is one
    more closing, behind all data. padded: blanks may stand between a separator and a quote."""

    opening: Array
    closing: Array
    padded: bool = False

    def hold(self, places: Any) -> Any:
        """Which of these places lie within quotes."""
        before = np.searchsorted(self.opening, places) - 1
        return (before >= 0) & (self.closing[before] > places)

    def before(self, end: int) -> Quotes:
        """Those of the first `end` bytes."""
        count = int(np.searchsorted(self.opening, end))
        return Quotes(self.opening[:count], self.closing[: count + 1], self.padded)


NO_QUOTES = Quotes(np.empty(0, np.int64), np.array([_NO_END]))


def quotes_of(data: bytes, separator: str | None) -> Quotes:
    """The quotes of a block. separator: of its fields; None: quotes mean nothing."""
    if separator is None or b'"' not in data:
        return NO_QUOTES
    return _pairs(data, separator) or _found(data, separator)


def _pairs(data: bytes, separator: str) -> Quotes | None:
    """The quotes, if every other one opens where a field begins, or is the second of two in a
    quoted field."""
    text = np.frombuffer(data, np.uint8)
    at = np.flatnonzero(text == _QUOTE)
    opening, closing = at[::2], np.append(at[1::2], _NO_END)
    begins = _table(separator.encode() + b"\n\r")
    others = np.flatnonzero(~begins[text[opening - 1]] & (opening > 0))
    others = others[(others == 0) | (closing[others - 1] != opening[others] - 1)]
    before = opening[others] - 1
    for _ in range(_MAX_PADDING):
        more = (text[before] == _BLANK) & (before >= 0)
        if not more.any():
            break
        before -= more
    if not (begins[text[before]] | (before < 0)).all():
        return None
    return Quotes(opening, closing, padded=len(others) > 0)


def _found(data: bytes, separator: str) -> Quotes:
    """The quotes of fields that begin with one, whatever else has quotes."""
    opening: list[int] = []
    closing: list[int] = []
    for match in re.finditer(_quoted_field(separator), data):
        opening.append(match.start(1))
        if match[1].count(b'"') % 2 == 0:
            closing.append(match.end() - 1)
    closings = np.array([*closing, _NO_END], np.int64)
    return Quotes(np.array(opening, np.int64), closings, padded=True)


def _quoted_field(separator: str) -> bytes:
    """A pattern of quoted fields, and blanks before the quote."""
    return rb'(?:\A|(?<=[\n\r%b])) *("(?:[^"]|"")*+"?)' % re.escape(separator.encode())


def _table(letters: bytes) -> Array:
    """bool[256]: which bytes are among these."""
    found = np.zeros(256, np.bool_)
    found[list(letters)] = True
    return found


def trimmed(data: bytes, quotes: Quotes, separator: str) -> bytes:
    """The block without the blanks around its fields; those inside quotes stay."""
    blanks = _BLANKS.replace(separator.encode(), b"")
    if not any(bytes([blank]) in data for blank in blanks):
        return data
    text = np.frombuffer(data, np.uint8)
    edge = (text == ord(separator)) | (text == _LF) | (text == _CR)
    beside = np.empty_like(edge)  # where a blank, or what is as rare, begins or ends a field
    beside[1:-1] = edge[:-2] | edge[2:]
    beside[[0, -1]] = True
    beside &= text <= _BLANK
    beside &= ~edge
    if quotes.hold(np.flatnonzero(beside)).all():
        return data
    is_blank = _table(blanks)[text]
    turns = np.flatnonzero(np.diff(is_blank, prepend=False, append=False))
    starts, ends = turns[::2], turns[1::2]
    edge = np.append(edge, True)  # also before the first byte, as the last of all
    cut = (edge[starts - 1] | edge[ends]) & ~quotes.hold(starts)
    kept = np.ones(len(text), np.bool_)
    kept[np.flatnonzero(is_blank)[np.repeat(cut, ends - starts)]] = False
    return text[kept].tobytes()
