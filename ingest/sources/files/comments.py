"""Comments and blank lines made empty, so that the other lines keep their numbers.

In text such as SNAP's, a line that begins with "#" or "%" is a comment wherever it stands. In a csv
or tsv only those above the first row, header or data, are: below, such a line is a row like any
other, since names may begin so ("#python").
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from .opening import Block
from .quotes import quotes_of

_COMMENT = re.compile(rb"^[ \t]*[#%][^\n]*", re.MULTILINE)
_BLANK_LINE = re.compile(rb"^[ \t\r]+$", re.MULTILINE)
_COMMENT_OR_BLANKS = re.compile(_COMMENT.pattern + b"|" + _BLANK_LINE.pattern, re.MULTILINE)
_TOP = re.compile(rb"(?:[ \t\r]*+(?:[#%][^\n]*+)?\n)*+")  # the lines above the first row


def without_comments(
    blocks: Iterator[Block], separator: str | None, format: str
) -> Iterator[Block]:
    """The blocks of a file of text, from its beginning, with its comments and blank lines made
    empty."""
    if format == "text":
        for block in blocks:
            yield block.holding(emptied(block.data, separator))
        return
    above = True  # the first row has not come yet
    for block in blocks:
        data = block.data
        if above and (match := _TOP.match(data)) and (end := match.end()):
            data = b"\n" * data.count(b"\n", 0, end) + data[end:]
            above = end == len(block.data)
        else:
            above = False
        yield block.holding(emptied(data, separator, _BLANK_LINE))


def emptied(
    data: bytes, separator: str | None, lines: re.Pattern[bytes] = _COMMENT_OR_BLANKS
) -> bytes:
    """The block with these lines made empty, where they do not lie in a quoted field. Between
    fields that blanks separate, blank lines need no care."""
    comments = lines is _COMMENT_OR_BLANKS
    if _beginnings(data).isdisjoint(b"#% \t" if comments else b" \t"):
        return data
    if separator is None:
        return _COMMENT.sub(b"", data) if comments else data
    if b'"' not in data:
        data = _BLANK_LINE.sub(b"", data)  # two simple patterns are faster than the joined one
        return _COMMENT.sub(b"", data) if comments else data
    quotes = quotes_of(data, separator)
    starts, ends = quotes.opening, quotes.closing

    def unless_inside(match: re.Match[bytes]) -> bytes:
        before = int(np.searchsorted(starts, match.start())) - 1
        inside = before >= 0 and (before >= len(ends) or int(ends[before]) > match.start())
        return match[0] if inside else b""

    return lines.sub(unless_inside, data)


def _beginnings(data: bytes) -> set[int]:
    """The bytes that lines begin with. Found sooner so than by a pattern."""
    text = np.frombuffer(data, np.uint8)
    first = text[np.flatnonzero(text[:-1] == 10) + 1]
    return {data[0], *np.flatnonzero(np.bincount(first, minlength=256)).tolist()} if data else set()
