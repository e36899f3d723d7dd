"""The words of the board of staging_kernels.py. This module must not import Numba.

A job is SLOT words of the board: those below, then WORDS for each column.
"""

from __future__ import annotations

# Of the whole job: pieces that nobody has taken yet, 0 or less if there is none; all its pieces;
# pieces a column, rows, rows a piece.
LEFT, PIECES, PER_COLUMN, ROWS, PIECE = range(5)
HEAD = 8

# Of a column: how it is copied; where it lies, and bytes from one row to the next; where it goes;
# the bits that count, and the largest number of them that is taken; pieces done; whether a row is
# bad.
HOW, SOURCE, STRIDE, INTO, MASK, LIMIT, DONE, BAD = range(8)
WORDS = 8
MOST_COLUMNS = 5
SLOT = HEAD + WORDS * MOST_COLUMNS

# How: rows of any number of bytes, without gaps and as they are; words of 32 or 64 bits, looked at;
# integers of 64 bits as 32.
BYTES, SAME32, SAME64, NARROW = range(4)
