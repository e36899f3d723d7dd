"""A snapshot in other libraries' terms: matrices, edge tables, files.

Two conventions hold throughout. Matrices and `edge_index` speak of *rows* 0 … n - 1, because their
consumers need dense numbers; tables, networkx and XML speak of names or else of *vertex ids*, which
differ from rows only after `snapshot(compact=True)`. In a matrix every row counts, even one that is
not a vertex (`Snapshot.present`); networkx gets the vertices alone. Matrices and `edge_index` hold
both directions of an undirected edge; all others and Matrix Market hold it once.

Other libraries are imported when needed; if one is missing, MissingPackage says how to install it.
"""

from .archives import read_npz, write_matrix_market, write_npz
from .edges import CHUNK_EDGES, EdgeList, edge_chunks, edge_list, sources, to_dlpack, to_numpy
from .matrices import to_cupy, to_edge_index, to_igraph, to_networkx, to_scipy
from .room import ExportError
from .tables import frame, to_arrow, to_pandas, to_polars, write_csv, write_parquet
from .xml import write_gexf, write_graphml

__all__ = [
    "CHUNK_EDGES",
    "EdgeList",
    "ExportError",
    "edge_chunks",
    "edge_list",
    "frame",
    "read_npz",
    "sources",
    "to_arrow",
    "to_cupy",
    "to_dlpack",
    "to_edge_index",
    "to_igraph",
    "to_networkx",
    "to_numpy",
    "to_pandas",
    "to_polars",
    "to_scipy",
    "write_csv",
    "write_gexf",
    "write_graphml",
    "write_matrix_market",
    "write_npz",
    "write_parquet",
]
