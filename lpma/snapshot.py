"""A snapshot: one state of the graph, frozen in compressed sparse rows (paper, Definition 3).

Its formats are functions of `lpma.export`, one line each here: see there for what they raise and
for the two conventions (rows or vertex ids; one direction of an undirected edge or both)."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from . import export, presence
from .arrays import array_module, device_of

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state after a whole batch. Safe to read from any thread; never changes.

    On a device the arrays are CuPy's. They are copies of their own: the store goes on beside who
    reads them. They are whole for what is enqueued, from then on, on the stream that was current
    when the snapshot was taken; another stream must wait for that one, as DLPack's consumers do
    by themselves where the snapshot's stream is current when they ask.

    Row u's targets are `indices[indptr[u]:indptr[u+1]]`, sorted. With `directed` False both
    directions of an edge are held (a loop once) and `num_edges` counts it once.

    There is a row for every id up to the largest present. `present` says which rows are vertices:
    those with an edge out or in, and those that were added by themselves, which `added` lists.
    Without `added`, as in a compact snapshot and in one made by hand, every row is a vertex."""

    indptr: Array  # int64[n+1]
    indices: Array  # uint32[m], sorted within a row
    weights: Array | None  # float32[m] or float64[m]; None for an unweighted graph
    times: Array | None  # int64[m]; None for a graph without times
    num_edges: int
    version: int
    time: int  # the time of the last operation applied, 0 before the first
    directed: bool = True
    ids: Array | None = None  # uint32[n]: the vertex behind each row, after `compact=True`
    added: Array | None = None  # uint32, rising: added by themselves; None: every row is a vertex
    views: dict[str, Any] = field(default_factory=dict, repr=False)  # derived, cached by algorithms

    @property
    def num_rows(self) -> int:
        """Rows: 1 + the largest id present (or the number of ids, when compact)."""
        return len(self.indptr) - 1

    @property
    def num_vertices(self) -> int:
        """The number of *rows*, as `num_rows`; of the vertices present, `num_present`."""
        return self.num_rows

    @cached_property
    def present(self) -> Array:
        """bool[n], where the snapshot lies: whether each row is a vertex. One pass over `indices`
        at the first call, kept from then on; not to be written to."""
        with device_of(self.indptr):
            if self.added is None:
                every: Array = array_module(self.indptr).ones(self.num_rows, np.bool_)
                return every
            return presence.of_rows(self.indptr, self.indices, not self.directed, self.added)

    @cached_property
    def num_present(self) -> int:
        """Vertices: the rows that are `present`."""
        with device_of(self.indptr):
            return int(self.present.sum())

    def to_numpy(self) -> dict[str, Array]:
        """The arrays by name on the host, not copied on the CPU: see `lpma.export.to_numpy`."""
        return export.to_numpy(self)

    def to_dlpack(self) -> dict[str, Any]:
        """The arrays by name where they are; each has `__dlpack__`, for `from_dlpack` of PyTorch,
        JAX, CuPy or NumPy, without a copy."""
        return export.arrays(self)

    def to_scipy(self) -> Any:
        """scipy.sparse.csr_matrix[n, n] sharing memory where it can: `lpma.export.to_scipy`."""
        return export.to_scipy(self)

    def to_cupy(self) -> Any:
        """cupyx.scipy.sparse.csr_matrix[n, n]; DeviceError without CuPy: `lpma.export.to_cupy`."""
        return export.to_cupy(self)

    def to_networkx(self) -> Any:
        """networkx.DiGraph or Graph, isolated vertices included: `lpma.export.to_networkx`."""
        return export.to_networkx(self)

    def to_edge_index(self) -> Array:
        """int64[2, m] for PyTorch Geometric: `lpma.export.to_edge_index`."""
        return export.to_edge_index(self)

    def to_arrow(self) -> Any:
        """pyarrow.Table with one row an edge: `lpma.export.to_arrow`."""
        return export.to_arrow(self)

    def write_parquet(
        self, path: str | os.PathLike[str], names: export.Names | None = None
    ) -> None:
        """The edge table as Parquet: `lpma.export.write_parquet`."""
        export.write_parquet(self, path, names)

    def write_npz(self, path: str | os.PathLike[str]) -> None:
        """The CSR arrays as a NumPy archive: `lpma.export.write_npz`."""
        export.write_npz(self, path)

    def write_matrix_market(self, path: str | os.PathLike[str]) -> None:
        """The matrix in Matrix Market's coordinate form: `lpma.export.write_matrix_market`."""
        export.write_matrix_market(self, path)

    @staticmethod
    def read_npz(path: str | os.PathLike[str]) -> Snapshot:
        """The snapshot that `write_npz` wrote. Raises FormatError on any other file."""
        return Snapshot(**export.read_npz(path))
