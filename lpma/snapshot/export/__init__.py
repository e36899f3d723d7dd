"""A snapshot in other libraries' terms: matrices, edge tables, files.

Two conventions hold throughout. Matrices and `edge_index` speak of *rows* 0 … n - 1, because their
consumers need dense numbers; tables, networkx and XML speak of names or else of *vertex ids*, which
differ from rows only after `snapshot(compact=True)`. In a matrix every row counts, even one that is
not a vertex (`Snapshot.present`); networkx gets the vertices alone. Matrices and `edge_index` hold
both directions of an undirected edge; all others and Matrix Market hold it once.

A function that is called as a method of Snapshot is that method, where its docstring stands. Other
libraries are imported when needed; if one is missing, MissingPackage says how to install it.
"""

from .edges import edge_chunks
from .room import ExportError

__all__ = ["ExportError", "edge_chunks"]
