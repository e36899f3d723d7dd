"""A snapshot in other libraries' terms: views where memory allows, edge tables, files.

Idea: the arrays of a snapshot already are CSR, so scipy, CuPy and DLPack consumers get views of
them; everything else is the edge list of rows and `indices`, cut into chunks where the result is a
file, so that writing needs little memory beyond the snapshot. A snapshot on a device stays there
for CuPy, DLPack and `edge_index`; for the rest its arrays are copied to the host, each once.

Two conventions hold throughout. Matrices and `edge_index` speak of *rows* 0 … n-1, because their
consumers need dense numbers; tables and networkx speak of *vertex ids*, which differ from rows
only after `snapshot(compact=True)`. In a matrix every row counts, also those that are no vertices
(`Snapshot.present`); networkx gets the vertices alone. Matrices and `edge_index` hold both
directions of an undirected edge; tables, networkx and Matrix Market hold it once.

Every writer checks the path, its suffix and the free space before it begins, and writes through
`lpma.files.atomic_write`: the file is whole or absent. Other libraries are imported when asked for.
"""

from __future__ import annotations

import importlib
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from .arrays import array_module, device_of, row_numbers, to_host
from .errors import DeviceError, FormatError, LpmaError
from .files import atomic_write, check_writable
from .optional import available_memory_bytes, how_to_install, optional_import

if TYPE_CHECKING:
    from .snapshot import Snapshot

Array = npt.NDArray[Any]
StrPath = str | os.PathLike[str]

CHUNK_EDGES = 1 << 20
NETWORKX_BYTES_PER_EDGE = 450  # measured: a DiGraph edge with weight and time
NETWORKX_BYTES_PER_VERTEX = 300
MATRIX_MARKET_BYTES_PER_EDGE = 48  # two ids of 10 digits, a weight of 24 characters, blanks


class ExportError(LpmaError, ValueError):
    """The snapshot does not fit where it was to go: memory, disk or the format's limits."""


def _refuse_beyond_memory(needed_bytes: int, what: str) -> None:
    available = available_memory_bytes()
    if available is not None and needed_bytes > available:
        raise ExportError(
            f"{what} of this size needs about {needed_bytes / 2**30:.1f} GiB and "
            f"{available / 2**30:.1f} GiB are free: export to a file or use to_scipy()"
        )


def _refuse_beyond_disk(path: Path, needed_bytes: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if needed_bytes > free:
        raise ExportError(
            f"{path} may take {needed_bytes / 2**30:.2f} GiB and {free / 2**30:.2f} GiB are free: "
            "make room or choose another disk"
        )


def arrays(s: Snapshot) -> dict[str, Any]:
    """The snapshot's arrays by name, without those it lacks, where they are, not copied."""
    named = {
        "indptr": s.indptr,
        "indices": s.indices,
        "weights": s.weights,
        "times": s.times,
        "ids": s.ids,
    }
    return {name: array for name, array in named.items() if array is not None}


def to_numpy(s: Snapshot) -> dict[str, Array]:
    """The snapshot's arrays by name on the host; copied only from a device."""
    return {name: np.asarray(to_host(array)) for name, array in arrays(s).items()}


def sources(indptr: Array, first: int = 0, last: int | None = None) -> Array:
    """uint32: the row of each entry first … last-1 of `indices` (default: all of them); on the
    host."""
    last = int(indptr[-1]) if last is None else last
    lo = int(np.searchsorted(indptr, first, "right")) - 1
    hi = int(np.searchsorted(indptr, last, "left"))
    rows = np.arange(lo, max(hi, lo), dtype=np.uint32)
    return np.repeat(rows, np.diff(np.clip(indptr[lo : lo + len(rows) + 1], first, last)))


def edge_chunks(s: Snapshot, chunk_edges: int = CHUNK_EDGES) -> Iterator[dict[str, Array]]:
    """The edges as tables of at most `chunk_edges` rows: `src`, `dst` uint32 vertex ids, and
    `weight`, `time` where the snapshot has them. An undirected edge comes once, src <= dst
    (by row)."""
    host = to_numpy(s)
    m = len(host["indices"])
    for first in range(0, m, chunk_edges):
        last = min(first + chunk_edges, m)
        table = {"src": sources(host["indptr"], first, last), "dst": host["indices"][first:last]}
        for name, column in (("weight", "weights"), ("time", "times")):
            if column in host:
                table[name] = host[column][first:last]
        if not s.directed:
            once = table["src"] <= table["dst"]
            table = {name: column[once] for name, column in table.items()}
        if "ids" in host:
            table["src"], table["dst"] = host["ids"][table["src"]], host["ids"][table["dst"]]
        yield table


def _index_dtype(s: Snapshot) -> type[np.signedinteger[Any]]:
    """int32 where rows and entries fit it: scipy's kernels are then faster and `indices` is
    a view, since uint32 below 2^31 has the same bits."""
    fits = max(len(s.indices), s.num_vertices) < 2**31
    return np.int32 if fits else np.int64


def to_scipy(s: Snapshot) -> Any:
    """scipy.sparse.csr_matrix[n, n] of the weights, float32 ones for an unweighted graph.

    `indices` and `data` share memory with the snapshot where dtypes allow: copy before changing
    the matrix. An edge of weight 0 is an explicit zero. Times have no place here."""
    sparse = optional_import("scipy.sparse", "scipy", "to_scipy()")
    host = to_numpy(s)
    dtype = _index_dtype(s)
    indices = host["indices"]
    indices = indices.view(np.int32) if dtype is np.int32 else indices.astype(np.int64)
    data = host["weights"] if "weights" in host else np.ones(len(indices), np.float32)
    shape = (s.num_vertices, s.num_vertices)
    matrix = sparse.csr_matrix(
        (data, indices, host["indptr"].astype(dtype, copy=False)), shape=shape, copy=False
    )
    # Rows of a snapshot are sorted and free of repeats; scipy would otherwise look again.
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix


def to_cupy(s: Snapshot) -> Any:
    """cupyx.scipy.sparse.csr_matrix[n, n] on the snapshot's device, the current one for a
    snapshot on the host; as `to_scipy` otherwise.

    Raises DeviceError without CuPy or a GPU, ExportError beyond CuPy's int32 indices."""
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
    with device_of(s.indices):
        indices = cupy.asarray(s.indices).view(cupy.int32)
        if s.weights is None:
            data = cupy.ones(len(s.indices), cupy.float32)
        else:
            data = cupy.asarray(s.weights)
        indptr = cupy.asarray(s.indptr).astype(cupy.int32)
        return sparse.csr_matrix((data, indices, indptr), shape=(s.num_vertices,) * 2)


def to_networkx(s: Snapshot) -> Any:
    """networkx.DiGraph, or Graph for an undirected snapshot: nodes are the vertices by their ids,
    those without edges too, but no rows that are no vertices; edges carry `weight` and `time` where
    the snapshot has them.

    Raises ExportError where networkx's dictionaries would not fit in memory."""
    networkx = optional_import("networkx", "networkx", "to_networkx()")
    needed = s.num_edges * NETWORKX_BYTES_PER_EDGE + s.num_present * NETWORKX_BYTES_PER_VERTEX
    _refuse_beyond_memory(needed, "a networkx graph")
    graph = networkx.DiGraph() if s.directed else networkx.Graph()
    present = np.flatnonzero(to_host(s.present))
    graph.add_nodes_from((present if s.ids is None else to_host(s.ids)[present]).tolist())
    for table in edge_chunks(s):
        src, dst = table.pop("src").tolist(), table.pop("dst").tolist()
        names = list(table)
        values = zip(*(column.tolist() for column in table.values()), strict=True)
        if names:
            attributes = (dict(zip(names, row, strict=True)) for row in values)
            graph.add_edges_from(zip(src, dst, attributes, strict=True))
        else:
            graph.add_edges_from(zip(src, dst, strict=True))
    return graph


def to_edge_index(s: Snapshot) -> Array:
    """int64[2, m] of rows, sources above targets, as PyTorch Geometric's `edge_index`, where the
    snapshot is: pass it to `torch.from_dlpack`. Both directions of an undirected edge."""
    m, xp = len(s.indices), array_module(s.indices)
    if xp is np:
        _refuse_beyond_memory(16 * m, "an edge_index")
    with device_of(s.indices):
        pairs: Array = xp.empty((2, m), np.int64)
        pairs[0] = row_numbers(s.indptr, m)
        pairs[1] = s.indices
    return pairs


class Names(Protocol):
    """What vertices go by, where that is not their ids."""

    def columns(self, end: str, ids: Array, /) -> dict[str, Array]:
        """The column `end` of what `ids` go by, of integers, or of objects that are text; and what
        else it takes to tell them apart. Of the same names and types whatever the ids."""
        ...


def _arrow_schema(pyarrow: Any, s: Snapshot, names: Names | None = None) -> Any:
    fields = []
    for end in ("src", "dst"):
        none = np.empty(0, np.uint32)
        columns = {end: none} if names is None else names.columns(end, none)
        for name, column in columns.items():
            text, dtype = column.dtype.kind == "O", column.dtype
            fields.append((name, pyarrow.string() if text else pyarrow.from_numpy_dtype(dtype)))
    if s.weights is not None:
        fields.append(("weight", pyarrow.from_numpy_dtype(s.weights.dtype)))
    if s.times is not None:
        fields.append(("time", pyarrow.int64()))
    told = {
        "lpma.directed": str(s.directed).lower(),
        "lpma.rows": str(s.num_rows),
        "lpma.vertices": str(s.num_present),
        "lpma.version": str(s.version),
        "lpma.time": str(s.time),
    }
    return pyarrow.schema(fields, metadata=told)


def _record_batches(
    pyarrow: Any, s: Snapshot, schema: Any, names: Names | None = None
) -> Iterator[Any]:
    for table in edge_chunks(s):
        if names is not None:
            src, dst = table.pop("src"), table.pop("dst")
            table = {**names.columns("src", src), **names.columns("dst", dst), **table}
        columns = [pyarrow.array(column) for column in table.values()]
        yield pyarrow.RecordBatch.from_arrays(columns, schema=schema)


def to_arrow(s: Snapshot) -> Any:
    """pyarrow.Table of `src`, `dst` (uint32 ids), `weight`, `time`; the schema's metadata says
    `lpma.directed`, `lpma.rows`, `lpma.vertices` (those present), `lpma.version` and
    `lpma.time`."""
    pyarrow = optional_import("pyarrow", "pyarrow", "to_arrow()")
    schema = _arrow_schema(pyarrow, s)
    return pyarrow.Table.from_batches(list(_record_batches(pyarrow, s, schema)), schema=schema)


def _entry_bytes(s: Snapshot) -> int:
    weight = 0 if s.weights is None else s.weights.dtype.itemsize
    return 4 + weight + (0 if s.times is None else 8)


def write_parquet(s: Snapshot, path: StrPath, names: Names | None = None) -> None:
    """The table of `to_arrow` as a Parquet file, row groups of about a million edges. names: what
    `src` and `dst` are instead of ids.

    Raises PathError (the name must end with .parquet), ExportError, MissingPackage."""
    pyarrow = optional_import("pyarrow", "pyarrow", "write_parquet()")
    parquet = optional_import("pyarrow.parquet", "pyarrow", "write_parquet()")
    target = check_writable(path, ".parquet")
    _refuse_beyond_disk(target, s.num_edges * (4 + _entry_bytes(s)))
    schema = _arrow_schema(pyarrow, s, names)
    with atomic_write(path) as file, parquet.ParquetWriter(file, schema) as writer:
        for batch in _record_batches(pyarrow, s, schema, names):
            writer.write_batch(batch)


def write_npz(s: Snapshot, path: StrPath) -> None:
    """The CSR arrays and what is known of them as a NumPy archive, which `read_npz` reads:
    `indptr`, `indices`, `weights`, `times`, `ids`, `added` (see Snapshot) where there, and the
    scalars `num_edges`, `version`, `time`, `directed`. Raises PathError (the name must end with
    .npz), ExportError."""
    target = check_writable(path, ".npz")
    host = to_numpy(s)
    if s.added is not None:
        host["added"] = np.asarray(to_host(s.added))
    _refuse_beyond_disk(target, sum(array.nbytes for array in host.values()) + 4096)
    stored: dict[str, Any] = {
        **host,
        "num_edges": np.int64(s.num_edges),
        "version": np.int64(s.version),
        "time": np.int64(s.time),
        "directed": np.bool_(s.directed),
    }
    with atomic_write(path) as file:
        np.savez(file, **stored)


def read_npz(path: StrPath) -> dict[str, Any]:
    """The fields of the snapshot that `write_npz` wrote. Raises FormatError on anything else."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            fields: dict[str, Any] = {name: archive[name] for name in archive.files}
    except (
        ValueError, EOFError, TypeError, NotImplementedError, RuntimeError, TokenError,
        zipfile.BadZipFile, zlib.error,
    ) as error:  # fmt: skip
        # TypeError: np.load gives a single .npy as an array, which is no context manager.
        raise FormatError(f"{path} is not a snapshot written by write_npz ({error})") from error
    needed = {"indptr", "indices", "num_edges", "version", "time", "directed"}
    unknown = set(fields) - needed - {"weights", "times", "ids", "added"}
    if needed - set(fields) or unknown:
        raise FormatError(f"{path} holds {sorted(fields)}, which are not a snapshot's arrays")
    _check_fields(path, fields)
    for name in ("num_edges", "version", "time"):
        fields[name] = int(fields[name])
    fields["directed"] = bool(fields["directed"])
    return {"weights": None, "times": None, **fields}


def _check_fields(path: StrPath, fields: dict[str, Any]) -> None:
    """What every consumer of a CSR relies on: dtypes, lengths and ranges that agree."""
    indptr, indices = fields["indptr"], fields["indices"]
    good = indptr.ndim == 1 and indptr.dtype == np.int64 and len(indptr) >= 1
    good = good and indices.ndim == 1 and indices.dtype == np.uint32
    good = good and indptr[0] == 0 and indptr[-1] == len(indices)
    good = good and bool((np.diff(indptr) >= 0).all())
    good = good and int(indices.max(initial=0)) < max(len(indptr) - 1, 1)
    for name, length in (
        ("weights", len(indices)),
        ("times", len(indices)),
        ("ids", len(indptr) - 1),
    ):
        good = good and (name not in fields or fields[name].shape == (length,))
    for name in ("num_edges", "version", "time", "directed"):
        good = good and fields[name].shape == ()
    if good and "added" in fields:
        added = fields["added"]
        good = added.ndim == 1 and added.dtype == np.uint32
        good = good and int(added.max(initial=0)) < max(len(indptr) - 1, 1)
        good = good and not bool((added[1:] <= added[:-1]).any())
    if not good:
        raise FormatError(f"{path}: its arrays do not form a CSR; write it again with write_npz")


def write_matrix_market(s: Snapshot, path: StrPath) -> None:
    """The matrix of `to_scipy` in Matrix Market's coordinate form, rows counted from 1:
    `pattern` for an unweighted graph, `symmetric` for an undirected one.

    Raises PathError (the name must end with .mtx), ExportError, MissingPackage."""
    io = optional_import("scipy.io", "scipy", "write_matrix_market()")
    target = check_writable(path, ".mtx")
    _refuse_beyond_disk(target, s.num_edges * MATRIX_MARKET_BYTES_PER_EDGE + 4096)
    with atomic_write(path) as file:
        io.mmwrite(
            file,
            to_scipy(s),
            comment=f"lpma snapshot, version {s.version}, {s.num_edges} edges",
            field="pattern" if s.weights is None else "real",
            symmetry="general" if s.directed else "symmetric",
        )
