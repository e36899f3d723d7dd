"""Quoted fields of csv: where they lie, and what blanks about their quotes mean.

Idea: quotes that come in pairs, each pair opening where a field begins, are found by NumPy; only
where they do not, as in `5" pipe`, a regular expression walks over them field by field. Blanks
before a quote are no part of a field, and those inside quotes are; pyarrow's reader takes the first
for an unquoted field, and does not say which fields were quoted. So the first are cut, and the
second get a mark that the block does not hold, which outlives the trimming of unquoted fields.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

BLANKS = " \t\n\v\f\r"  # what is trimmed around an unquoted field
_QUOTE, _BLANK = ord('"'), ord(" ")
_IS_BLANK = np.zeros(256, np.bool_)
_IS_BLANK[list(BLANKS.encode())] = True
_MAX_PADDING = 256  # blanks before a quote that NumPy looks past


class Quotes(NamedTuple):
    """Quotes in pairs: opening[i] … closing[i]; the last one may have no end. joined: which pairs
    go on with the field of the pair before, as after `""`. padded: which have blanks before them,
    that begin at `cut`."""

    opening: Array
    closing: Array
    joined: Array
    padded: Array
    cut: Array

    def before(self, end: int) -> Quotes:
        """Those of the first `end` bytes. REQUIRES: a row ends there."""
        count, padded = (int(np.searchsorted(a, end)) for a in (self.opening, self.cut))
        if count == len(self.opening):
            return self
        joined = self.joined[: int(np.searchsorted(self.joined, count))]
        return Quotes(
            self.opening[:count], self.closing[:count], joined,
            self.padded[:padded], self.cut[:padded],
        )  # fmt: skip


def quotes_of(data: bytes, separator: str) -> Quotes:
    """The quotes of a block."""
    return _pairs(data, separator) or _found(data, separator)


def _pairs(data: bytes, separator: str) -> Quotes | None:
    """The quotes, if every other one opens where a field begins, or is the second of two in a
    quoted field."""
    text = np.frombuffer(data, np.uint8)
    at = np.flatnonzero(text == _QUOTE)
    opening, closing = at[::2], at[1::2]
    begins = np.zeros(256, np.bool_)
    begins[[ord(separator), 10, 13]] = True
    others = np.flatnonzero(~begins[text[opening - 1]])
    others = others[opening[others] > 0]
    follows = others > 0
    follows[follows] = closing[others[follows] - 1] == opening[others[follows]] - 1
    padded = others[~follows]
    cut = opening[padded] - 1
    for _ in range(_MAX_PADDING):
        more = (text[cut] == _BLANK) & (cut >= 0)
        if not more.any():
            break
        cut -= more
    if not (begins[text[cut]] | (cut < 0)).all():
        return None
    return Quotes(opening, closing, others[follows], padded, cut + 1)


def _found(data: bytes, separator: str) -> Quotes:
    """The quotes of fields that begin with one, whatever else has quotes."""
    opening: list[int] = []
    closing: list[int] = []
    padded: list[int] = []
    cut: list[int] = []
    for match in re.finditer(_quoted_field(separator), data):
        if match.start() < match.start(1):
            padded.append(len(opening))
            cut.append(match.start())
        opening.append(match.start(1))
        if match[1].count(b'"') % 2 == 0:
            closing.append(match.end() - 1)
    joined: list[int] = []
    found = (opening, closing, joined, padded, cut)
    return Quotes(*(np.array(places, np.int64) for places in found))


def _quoted_field(separator: str) -> bytes:
    """A pattern of quoted fields, and blanks before the quote."""
    return rb'(?:\A|(?<=[\n\r%b])) *("(?:[^"]|"")*+"?)' % re.escape(separator.encode())


def without_blanks_before(quotes: Quotes, data: bytes) -> bytes:
    """The block where quotes follow separators, as in `a, "b"`, without the blanks between."""
    depth = np.zeros(len(data), np.int8)
    depth[quotes.cut] = 1
    depth[quotes.opening[quotes.padded]] = -1
    text = np.frombuffer(data, np.uint8)
    return text[np.cumsum(depth, dtype=np.int8) == 0].tobytes()


def _blanks(letters: Array) -> Array:
    """Which of these are blanks. Most are not even close, which is seen soonest."""
    low = np.flatnonzero(letters <= _BLANK)
    return low[_IS_BLANK[letters[low]]]


def marked(quotes: Quotes, data: bytes) -> tuple[bytes, str]:
    """The block with a mark between a quote and a blank that begins or ends what is quoted, and the
    mark: "" if there is no such blank."""
    text = np.frombuffer(data, np.uint8)
    opening, closing = quotes.opening, quotes.closing
    first = _blanks(text[np.minimum(opening + 1, len(text) - 1)])
    last = _blanks(text[closing - 1])
    first = np.setdiff1d(first, quotes.joined, assume_unique=True)
    last = np.setdiff1d(last, quotes.joined - 1, assume_unique=True)
    if not len(first) and not len(last):
        return data, ""
    places = np.concatenate([opening[first] + 1, closing[last]])
    mark = b"\x01"
    while mark in data:
        mark += b"\x01"
    pieces = np.tile(np.frombuffer(mark, np.uint8), len(places))
    return np.insert(text, np.repeat(places, len(mark)), pieces).tobytes(), mark.decode()
