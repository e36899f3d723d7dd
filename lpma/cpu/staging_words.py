"""The words of a job of staging_kernels.py. This module must not import Numba."""

from __future__ import annotations

# Of the whole job: the next piece to be taken, counted over all columns; rows, rows a piece; how
# many columns there are.
NEXT, ROWS, PIECE, COLUMNS = range(4)
HEAD = 4

# Of a column: how it is copied; where it lies, and bytes from one row to the next; where it goes;
# the bits that count, and the largest number of them that is taken; pieces done; whether a row is
# bad.
HOW, SOURCE, STRIDE, INTO, MASK, LIMIT, DONE, BAD = range(8)
WORDS = 8

# How: rows of any number of bytes, without gaps and as they are; words of 32 or 64 bits, looked at;
# integers of 64 bits as 32.
BYTES, SAME32, SAME64, NARROW = range(4)
