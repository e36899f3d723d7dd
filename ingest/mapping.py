"""Names in records become ids of the graph: with `lpma.names`, in the order of the rows.

As in `lpma/batch/named.py`, a name without an id gets one where its row appends an edge or adds a
vertex. Elsewhere it is the vertex UNKNOWN, which has no edge, so that what is deleted costs no id.
What stands in the row of an expiry names nothing, and gets none either.

`lpma/names/dictionary.py` says why a replay gives the same ids.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lpma.batch.columns import Columns, Kind
from lpma.errors import TooManyNames
from lpma.names import UNKNOWN, column_of, interleaved
from lpma.names import Names as Dictionary

from .errors import VertexLimitError
from .types import Name, Names, Query


def mapped(dictionary: Dictionary, batch: Columns, names: Names) -> Columns:
    """The updates with their ids in place. New names get theirs row by row, src before dst, where
    the row appends an edge or adds a vertex. Raises VertexLimitError."""
    ends = interleaved(column_of(names.src, "src"), column_of(names.dst, "dst"))
    ids = np.zeros(2 * len(batch), np.uint32)
    try:
        if int(batch.kind.max(initial=0)) > Kind.INSERT:
            used = np.ones(len(ids), np.bool_)
            used[1::2] = batch.kind <= Kind.DELETE
            gives = (batch.kind == Kind.INSERT) | (batch.kind == Kind.ADD_VERTEX)
            rows = np.flatnonzero(used)
            ids[rows] = dictionary.assign(ends.take(rows), gives[rows >> 1])
        else:
            ids = dictionary.assign(ends)
    except TooManyNames as error:
        raise VertexLimitError(str(error)) from error
    return batch.replace(src=ids[::2].copy(), dst=ids[1::2].copy())


def found(dictionary: Dictionary, query: Query) -> Query:
    """The query with ids for names. A name that has no id gets UNKNOWN."""
    dst = id_of(dictionary, query.dst) if query.kind is Kind.EDGE else query.dst
    after = None if query.after is None else id_of(dictionary, query.after)
    return replace(query, src=id_of(dictionary, query.src), dst=dst, after=after)


def id_of(dictionary: Dictionary, name: Name) -> int:
    """The id of a name, UNKNOWN if nothing has named it yet."""
    id = dictionary.find(name)
    return UNKNOWN if id is None else id
