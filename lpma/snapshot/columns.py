"""The arrays of a snapshot, declared once: checks, attributes, files and exports follow from this.

A further column also needs a field in `Csr` and `Csr._trusted`, and whatever fills it.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np


class Column(NamedTuple):
    """An array of a snapshot of n rows and m entries."""

    name: str
    dtypes: tuple[Any, ...]
    each: str  # what it has one entry for: "row", "entry of indices", or "" for another length
    doc: str
    is_optional: bool = True  # it may be None


ALL = (
    Column("indptr", (np.int64,), "", "int64[n+1]: where each row begins in `indices`.", False),
    Column("indices", (np.uint32,), "", "uint32[m]: the targets, row by row, each row sorted.",
           False),
    Column("weights", (np.float32, np.float64), "entry of indices",
           "float32[m] or float64[m]; None for an unweighted graph."),
    Column("times", (np.int64,), "entry of indices",
           "int64[m]: when each edge was last changed; None for a graph without times."),
    Column("ids", (np.uint32,), "row",
           "uint32[n]: the vertex behind each row of a compact snapshot; else None."),
    Column("added", (np.uint32,), "",
           "uint32, ascending: the vertices added by themselves; None: every row is a vertex."),
)  # fmt: skip
ARRAYS = tuple(column.name for column in ALL)
KEPT = tuple(f"_{name}" for name in ARRAYS)  # the attributes that this project reads
REQUIRED = tuple(column.name for column in ALL if not column.is_optional)
ROWS = tuple(f"_{name}" for name in REQUIRED)  # of KEPT, those that are made together
OF_EDGES = tuple(f"_{column.name}" for column in ALL if column.each == "entry of indices")
LEFT = "left"  # a fact that may be None, and is then not in files
FACTS = ("num_edges", "version", "time", "directed", LEFT)  # what a snapshot says beside its arrays


def facts_of(graph: Any) -> dict[str, Any]:
    """The facts of whatever has them."""
    return dict(zip(FACTS, _facts(graph), strict=True))


_facts = attrgetter(*FACTS)  # calls no function of Python's
