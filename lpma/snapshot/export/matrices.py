"""A snapshot as a matrix or a graph of another library, in memory.

A snapshot on a device stays there for CuPy and `edge_index`; for the rest its arrays are copied to
the host, each once.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ...arrays import Array, array_module, device_of, row_numbers, to_host
from ...dependencies import how_to_install, optional_import
from ...errors import DeviceError
from ..csr import Csr
from .edges import edge_chunks, named, to_numpy
from .room import ExportError, refuse_beyond_memory

NETWORKX_BYTES_PER_EDGE = 450  # measured: a DiGraph edge with weight and time
NETWORKX_BYTES_PER_VERTEX = 300
IGRAPH_BYTES_PER_EDGE = 250  # measured: an edge with weight and time, and the lists it comes from


def _index_dtype(s: Csr) -> type[np.signedinteger[Any]]:
    """int32 if rows and entries fit it: scipy is then faster, and CuPy takes no other."""
    fits = max(len(s._indices), s.num_rows) < 2**31
    return np.int32 if fits else np.int64


def to_scipy(s: Csr) -> Any:
    """See Snapshot.to_scipy. The arrays are copies, since scipy changes some in place."""
    sparse = optional_import("scipy.sparse", "scipy", "to_scipy()")
    host = to_numpy(s)
    dtype = _index_dtype(s)
    indices, indptr = host["indices"].astype(dtype), host["indptr"].astype(dtype)
    data = host["weights"].copy() if "weights" in host else np.ones(len(indices), np.float32)
    shape = (s.num_rows, s.num_rows)
    matrix = sparse.csr_matrix((data, indices, indptr), shape=shape, copy=False)
    # Rows of a snapshot are sorted and free of repeats; scipy would otherwise check again.
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix


def to_cupy(s: Csr) -> Any:
    try:
        cupy = importlib.import_module("cupy")
        sparse = importlib.import_module("cupyx.scipy.sparse")
        devices = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy raises its own types, which cannot be named without it
        raise DeviceError(
            f"to_cupy() needs CuPy and a CUDA device ({error}): "
            f"{how_to_install('cuda12', 'cuda13')}; or use to_scipy()"
        ) from error
    if devices == 0:
        raise DeviceError("to_cupy() found no CUDA device; use to_scipy()")
    if _index_dtype(s) is not np.int32:
        raise ExportError("CuPy's sparse matrices end at 2^31 - 1 entries; use to_scipy()")
    with device_of(s._indices):
        indices = cupy.array(s._indices).view(cupy.int32)
        if s._weights is None:
            data = cupy.ones(len(s._indices), cupy.float32)
        else:
            data = cupy.array(s._weights)
        indptr = cupy.asarray(s._indptr).astype(cupy.int32)
        return sparse.csr_matrix((data, indices, indptr), shape=(s.num_rows,) * 2)


def to_networkx(s: Csr) -> Any:
    networkx = optional_import("networkx", "networkx", "to_networkx()")
    needed = s.num_edges * NETWORKX_BYTES_PER_EDGE + s.num_vertices * NETWORKX_BYTES_PER_VERTEX
    refuse_beyond_memory(needed, "a networkx graph")
    graph = networkx.DiGraph() if s.directed else networkx.Graph()
    graph.add_nodes_from(named(s, np.flatnonzero(to_host(s._present))).tolist())
    for table in edge_chunks(s, by_row=True):
        src, dst = named(s, table.pop("src")).tolist(), named(s, table.pop("dst")).tolist()
        names = list(table)
        values = zip(*(column.tolist() for column in table.values()), strict=True)
        if names:
            attributes = (dict(zip(names, row, strict=True)) for row in values)
            graph.add_edges_from(zip(src, dst, attributes, strict=True))
        else:
            graph.add_edges_from(zip(src, dst, strict=True))
    return graph


def to_igraph(s: Csr) -> Any:
    igraph = optional_import("igraph", "igraph", "to_igraph()")
    refuse_beyond_memory(s.num_edges * IGRAPH_BYTES_PER_EDGE, "an igraph graph")
    rows = np.flatnonzero(to_host(s._present))
    number = np.zeros(s.num_rows, np.int64)
    number[rows] = np.arange(len(rows))
    graph = igraph.Graph(n=len(rows), directed=s.directed)
    graph.vs["name"] = named(s, rows).tolist()
    for table in edge_chunks(s, max(len(s._indices), 1), by_row=True):
        ends = np.stack([number[table.pop("src")], number[table.pop("dst")]], axis=1)
        columns = {name: column.tolist() for name, column in table.items()}
        graph.add_edges(ends.tolist(), attributes=columns or None)
    return graph


def to_edge_index(s: Csr) -> Array:
    m, xp = len(s._indices), array_module(s._indices)
    if xp is np:
        refuse_beyond_memory(16 * m, "an edge_index")
    with device_of(s._indices):
        pairs: Array = xp.empty((2, m), np.int64)
        pairs[0] = row_numbers(s._indptr, m)
        pairs[1] = s._indices
    return pairs
