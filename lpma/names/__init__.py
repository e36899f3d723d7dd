"""Vertices that go by names: text, or any integer of 64 bits, instead of the graph's dense ids.

Idea: inside, a graph with names is a graph like any other. A dictionary, `Names`, gives each name
the next id when it first appears, and turns ids back into names on the way out. The library and the
stream use the same one, so that a store that a pipeline saved is queried by name.

`given.py` reads what callers have (lists, arrays, columns of data frames) as one kind of column;
`dictionary.py` looks columns up in a compiled hash table, `table.py`.
"""

from ..arguments.convert import MAX_NAME_BYTES
from .column import MAX_NAME, MIN_NAME, Column, Name, interleaved
from .dictionary import UNKNOWN, FrozenNames, Names
from .given import column_of, name_of

__all__ = [
    "MAX_NAME",
    "MAX_NAME_BYTES",
    "MIN_NAME",
    "UNKNOWN",
    "Column",
    "FrozenNames",
    "Name",
    "Names",
    "column_of",
    "interleaved",
    "name_of",
]
