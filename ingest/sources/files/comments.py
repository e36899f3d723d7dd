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

_LF, _WINDOW = 10, 1 << 18
_COMMENT = re.compile(rb"^[ \t]*[#%][^\n]*", re.MULTILINE)
_BLANK_LINE = re.compile(rb"^[ \t\r]+$", re.MULTILINE)
_COMMENT_OR_BLANKS = re.compile(_COMMENT.pattern + b"|" + _BLANK_LINE.pattern, re.MULTILINE)
EXCEL = re.compile(rb'"?sep=([^\n])"?\r?')  # says what separates the fields that follow
_TOP = re.compile(  # the lines above the first row
    rb"(?:" + EXCEL.pattern + rb"\n)?(?:[ \t\r]*+(?:[#%][^\n]*+)?\n)*+"
)


def without_comments(
    blocks: Iterator[Block], separator: str | None, format: str
) -> Iterator[Block]:
    """The blocks of a file of text, from its beginning, with its comments and blank lines made
    empty."""
    if format == "text":
        yield from (emptied(block, separator) for block in blocks)
        return
    above = True  # the first row has not come yet
    for block in blocks:
        if above and (end := _TOP.match(block.data).end()):  # type: ignore[union-attr]
            above = end == len(block.data)
            lines = b"\n" * block.data.count(b"\n", 0, end)
            block = block.holding(lines + block.data[end:], separator)
        else:
            above = False
        yield emptied(block, separator, _BLANK_LINE)


def emptied(
    block: Block, separator: str | None, lines: re.Pattern[bytes] = _COMMENT_OR_BLANKS
) -> Block:
    """The block with these lines made empty, where they do not lie in a quoted field. Between
    fields that blanks separate, blank lines need no care."""
    data, comments = block.data, lines is _COMMENT_OR_BLANKS
    if not _has_beginning(data, b"#% \t" if comments else b" \t"):
        return block
    if len(block.quotes.opening):
        data = lines.sub(lambda m: m[0] if block.quotes.hold(m.start()) else b"", data)
        return block.holding(data, separator)
    if separator is not None:
        data = _BLANK_LINE.sub(b"", data)  # two simple patterns are faster than the joined one
    return block.holding(_COMMENT.sub(b"", data) if comments else data, separator)


def _has_beginning(data: bytes, letters: bytes) -> bool:
    """Whether a line begins with one of these. Found sooner so than by a pattern: few lines begin
    with anything as low, and windows stay in the cache."""
    text, found = np.frombuffer(data, np.uint8), {*data[:1]}
    for start in range(0, len(text), _WINDOW):
        window = text[start : start + _WINDOW + 1]
        low = window[1:] <= max(letters)
        low &= window[:-1] == _LF
        if low.any():
            found.update(window[1:][low].tolist())
    return not found.isdisjoint(letters)
