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


class _Pairs(NamedTuple):
    """Quotes in pairs. padded: which of `opening` have blanks before them, that begin at `cut`."""

    opening: Array
    closing: Array
    padded: Array
    cut: Array


def _pairs(data: bytes, separator: str) -> _Pairs | None:
    """The quotes, if every other one opens where a field begins, or is the second of two in a
    quoted field."""
    text = np.frombuffer(data, np.uint8)
    at = np.flatnonzero(text == _QUOTE)
    opening, closing = at[::2], at[1::2]
    last = opening - 1  # what stands before each; -1: nothing
    after_another = np.zeros(len(opening), np.bool_)
    after_another[1:] = last[1:] == closing[: len(opening) - 1]
    padded = np.flatnonzero((text[last] == _BLANK) & (last >= 0) & ~after_another)
    cut = last[padded]
    for _ in range(_MAX_PADDING):
        more = (text[cut] == _BLANK) & (cut >= 0)
        if not more.any():
            break
        cut -= more
    last[padded] = cut
    before = text[last]
    begins = (before == ord(separator)) | (before == 10) | (before == 13) | (last < 0)
    if not (begins | after_another).all():
        return None
    return _Pairs(opening, closing, padded, cut + 1)


def quoted(data: bytes, separator: str) -> tuple[Array, Array]:
    """Where quoted parts begin and where they end, in order. One that does not end has no end."""
    pairs = _pairs(data, separator)
    if pairs is not None:
        return pairs.opening, pairs.closing
    starts, ends = [], []
    for match in re.finditer(_quoted_field(separator), data):
        starts.append(match.start(1))
        if match[1].count(b'"') % 2 == 0:
            ends.append(match.end() - 1)
    return np.array(starts, np.int64), np.array(ends, np.int64)


def _quoted_field(separator: str) -> bytes:
    """A pattern of quoted fields, and blanks before the quote."""
    return rb'(?:\A|(?<=[\n\r%b])) *("(?:[^"]|"")*+"?)' % re.escape(separator.encode())


def without_blanks_before_quotes(data: bytes, separator: str) -> bytes:
    """The block where quotes follow separators, as in `a, "b"`, without the blanks between."""
    if b' "' not in data:
        return data
    pairs = _pairs(data, separator)
    if pairs is None:
        return re.sub(_quoted_field(separator), rb"\1", data)
    if not len(pairs.padded):
        return data
    depth = np.zeros(len(data), np.int8)
    depth[pairs.cut] = 1
    depth[pairs.opening[pairs.padded]] = -1
    text = np.frombuffer(data, np.uint8)
    return text[np.cumsum(depth, dtype=np.int8) == 0].tobytes()


def marked(data: bytes, separator: str) -> tuple[bytes, str]:
    """The block with a mark between a quote and a blank that begins or ends what is quoted, and the
    mark: "" if there is no such blank. REQUIRES: no blanks before quotes."""
    starts, ends = quoted(data, separator)
    if not len(starts):
        return data, ""
    text = np.frombuffer(data, np.uint8)
    opens = np.append(True, starts[1:] != ends[: len(starts) - 1] + 1)  # not of "" in a field
    closes = np.append(opens[1:], True)[: len(ends)]
    first, end = starts[opens] + 1, ends[closes]
    first = first[first < len(text)]
    places = np.concatenate([first[_IS_BLANK[text[first]]], end[_IS_BLANK[text[end - 1]]]])
    if not len(places):
        return data, ""
    mark = b"\x01"
    while mark in data:
        mark += b"\x01"
    pieces = np.tile(np.frombuffer(mark, np.uint8), len(places))
    return np.insert(text, np.repeat(places, len(mark)), pieces).tobytes(), mark.decode()
