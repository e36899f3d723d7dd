"""A snapshot: one state of the graph, frozen in compressed sparse rows (paper, Definition 3).

Its formats are functions of `lpma.snapshot.export`, which states the two conventions that they
follow: rows or vertex ids, and one direction of an undirected edge or both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..arrays import Array
from ..file.atomic import StrPath
from . import display
from .csr import Csr
from .export import archives, edges, matrices, tables, xml
from .export.edges import EdgeList
from .subgraph import induced
from .vertices import OfRows


@dataclass(eq=False, repr=False, init=False)
class Snapshot(Csr):
    """The state after a whole batch, in n rows with m entries in all. Safe to read from any thread;
    never changes. `Graph.snapshot` makes it. Made by hand, of these fields in this order, it checks
    the arrays and copies them, and raises BatchError, which says what is wrong and where.

    indptr     int64[n+1]
    indices    uint32[m]: row u's targets are indices[indptr[u]:indptr[u+1]], sorted
    weights    float32[m] or float64[m]; None for an unweighted graph
    times      int64[m]: when each edge was last changed; None for a graph without times
    num_edges  edges; of an undirected graph both directions are held (a loop once), and an edge
               counts once
    version    batches applied
    time       the time of the last update applied, 0 before the first
    directed   whether the graph is
    ids        uint32[n]: the vertex behind each row, after `compact=True`; else None
    added      uint32, ascending: the vertices added by themselves; None: every row is a vertex
    names      what the rows go by: see `lpma.names.FrozenNames`; None: by their ids
    left       of a bipartite graph, how many ids, from 0, are of the left side; None: not said

    There is a row for every id up to the largest present. `present` says which rows are vertices:
    those with an edge out or in, and those in `added`. In a compact snapshot, and in one made by
    hand without `added`, every row is a vertex.

    Weights and times are copied when one of them is first read, or before the next batch. On the
    CPU the rows of a small graph are those of the snapshot before with the changes merged in, which
    is done when they are first read, and takes memory then.

    Snapshots share arrays. So on the CPU arrays are read-only; whoever asks for one by DLPack gets
    a copy. `copy` makes a snapshot that may be written to.

    On a device the arrays are CuPy's, which cannot be read-only. An attribute is a copy there, made
    when it is first read and kept: to write to it changes nothing else. It is complete for whatever
    is enqueued afterwards on the stream that is current when it is first read, and on the one that
    was when the snapshot was taken; another stream must wait for one of them.

    >>> g = lpma.Graph(device="cpu")
    >>> g.insert([0, 0, 2], [1, 2, 0], weight=[0.5, 1.5, 2.0])
    >>> s = g.snapshot()
    >>> s.indptr, s.indices, s.weights
    (array([0, 2, 2, 3]), array([1, 2, 0], dtype=uint32), array([0.5, 1.5, 2. ], dtype=float32))
    >>> s.num_rows, s.num_vertices, s.num_edges
    (3, 3, 3)
    """

    def __repr__(self) -> str:
        return display.line_of(self)

    def _repr_html_(self) -> str:
        """The snapshot as notebooks show it."""
        return display.table_of(self)

    def edges(self) -> EdgeList:
        """The edges as columns `src`, `dst`, `weights`, `times`, where the snapshot is; vertices by
        their names (NumPy's) or ids, an undirected edge once.

        >>> g = lpma.from_edges(["ann", "bob"], ["bob", "cem"], device="cpu", times=False)
        >>> g.snapshot().edges().dst.tolist()
        ['bob', 'cem']
        """
        return edges.edge_list(self)

    def subgraph(self, vertices: Any) -> Snapshot:
        """The edges among these vertices, as a snapshot of the same version, where all of them are
        present. vertices: ids, or names where the snapshot has them, one or many. Raises BatchError
        for one that is not in the snapshot.

        >>> s = lpma.from_edges([1, 2, 3], [2, 3, 1], device="cpu").snapshot()
        >>> part = s.subgraph([1, 2])
        >>> part.num_vertices, part.edges().src, part.edges().dst
        (2, array([1], dtype=uint32), array([2], dtype=uint32))
        """
        return induced(self, vertices)

    def to_graph(self, device: str | None = None, **options: Any) -> Any:
        """An `lpma.Graph` with these contents, at this version. device: None is where the snapshot
        is; options: of `lpma.Graph`, those that the contents leave open. Raises BatchError,
        DeviceError, and OutOfMemory.

        >>> s = lpma.from_edges([1, 2], [2, 3], device="cpu").snapshot()
        >>> g = s.subgraph([1, 2]).to_graph()
        >>> g.num_edges, g.num_vertices
        (1, 2)
        """
        return self._new_graph(self, device, options)

    _new_graph: ClassVar[Any] = None  # set by graph.py, which stands above

    def to_numpy(self) -> dict[str, Array]:
        """The arrays by name on the host, without those that are None; on the CPU read-only views.

        >>> sorted(lpma.Graph(device="cpu", weight_dtype=None).snapshot().to_numpy())
        ['added', 'indices', 'indptr', 'times']
        """
        return edges.to_numpy(self)

    def to_dlpack(self) -> dict[str, Any]:
        """The arrays by name where they are; each has `__dlpack__`, for `from_dlpack` of PyTorch,
        JAX, CuPy or NumPy. They are copies, which may be changed.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(0, 1)
        >>> np.from_dlpack(g.snapshot().to_dlpack()["indptr"])
        array([0, 1, 1])
        """
        return edges.to_dlpack(self)

    def to_scipy(self) -> Any:
        """scipy.sparse.csr_matrix[n, n] of the weights, 1 without weights, float32 or float64: a
        copy, which may be changed. An edge of weight 0 is an explicit zero. Raises MissingPackage.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([0, 1], [1, 0], weight=[2.0, 3.0])
        >>> g.snapshot().to_scipy().toarray()
        array([[0., 2.],
               [3., 0.]], dtype=float32)
        """
        return matrices.to_scipy(self)

    def to_cupy(self) -> Any:
        """cupyx.scipy.sparse.csr_matrix[n, n], as `to_scipy`, on the snapshot's device; on the
        current one for a snapshot on the host. Raises DeviceError without CuPy or a CUDA device,
        ExportError beyond 2^31 - 1 entries."""
        return matrices.to_cupy(self)

    def to_networkx(self) -> Any:
        """networkx.DiGraph or, for an undirected graph, Graph: the vertices by their names or ids,
        including those without edges; edges have `weight` and `time` where the snapshot has them.
        Raises MissingPackage, and ExportError if it would not fit in memory.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 2, weight=0.5, time=7)
        >>> list(g.snapshot().to_networkx().edges(data=True))
        [(1, 2, {'weight': 0.5, 'time': 7})]
        """
        return matrices.to_networkx(self)

    def to_igraph(self) -> Any:
        """igraph.Graph: vertices and edges as in `to_networkx`; the attribute "name" says what a
        vertex is called. Raises MissingPackage, and ExportError if it would not fit in memory.

        >>> g = lpma.from_edges(["ann", "bob"], ["bob", "cem"], weight=0.5, device="cpu")
        >>> made = g.snapshot().to_igraph()
        >>> made.vs["name"], made.get_edgelist(), made.es["weight"]
        (['ann', 'bob', 'cem'], [(0, 1), (1, 2)], [0.5, 0.5])
        """
        return matrices.to_igraph(self)

    def to_edge_index(self) -> Array:
        """int64[2, m] of rows, sources above targets, both directions of an undirected edge, for
        PyTorch Geometric: pass it to `torch.from_dlpack`. Raises ExportError if it would not fit in
        memory.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([0, 0], [1, 2])
        >>> g.snapshot().to_edge_index()
        array([[0, 0],
               [1, 2]])
        """
        return matrices.to_edge_index(self)

    def to_arrow(self) -> Any:
        """pyarrow.Table with one row per edge: `src`, `dst` (ids, or names), `weight`, `time`.
        Where names are integers and text, both are text, and `src_number` and `dst_number` say
        which are integers. The schema's metadata has lpma.directed, lpma.rows, lpma.vertices (those
        present), lpma.version, lpma.time and, unless it is None, `left`. Raises MissingPackage.

        >>> g = lpma.Graph(device="cpu", times=False)
        >>> g.insert(1, 2, weight=0.5)
        >>> g.snapshot().to_arrow().to_pylist()
        [{'src': 1, 'dst': 2, 'weight': 0.5}]
        """
        return tables.to_arrow(self)

    def to_pandas(self) -> Any:
        """pandas.DataFrame of the columns of `to_arrow`, times in milliseconds since 1970:
        `lpma.from_dataframe` takes it. Raises MissingPackage.

        >>> g = lpma.from_edges(["ann", "bob"], ["bob", "cem"], device="cpu", times=False)
        >>> g.snapshot().to_pandas()
           src  dst  weight
        0  ann  bob     1.0
        1  bob  cem     1.0
        """
        return tables.as_pandas(tables.to_arrow(self), "to_pandas()")

    def to_polars(self) -> Any:
        """polars.DataFrame of the columns of `to_arrow`, most of which it shares. Raises
        MissingPackage.

        >>> g = lpma.from_edges(["ann", "bob"], ["bob", "cem"], device="cpu", times=False)
        >>> g.snapshot().to_polars().rows()
        [('ann', 'bob', 1.0), ('bob', 'cem', 1.0)]
        """
        return tables.as_polars(tables.to_arrow(self), "to_polars()")

    def frame(self, library: str | OfRows = "auto", found: Any = None, /, **columns: Any) -> Any:
        """A table with a row for each vertex present: `vertex`, its name or id, beside what
        algorithms found for it; or a table of one result that speaks of vertices, by these.

        library  "pandas" (a DataFrame), "polars" (a DataFrame) or "arrow" (a pyarrow.Table); "auto"
                 is pandas if that is installed, else arrow. It may be left out before `found`
        found    what `similar`, `truss_numbers`, `edge_support` or `shortest_path_tree` returned
        columns  arrays with an entry for each row of this snapshot, on the host or a device

        Raises ExportError for arrays of other lengths, and MissingPackage.

        >>> s = lpma.from_edges([1, 2, 5], [2, 5, 1], directed=False, device="cpu").snapshot()
        >>> s.frame(core=algorithms.core_numbers(s), triangles=algorithms.triangles(s))
           vertex  core  triangles
        0       1     2          1
        1       2     2          1
        2       5     2          1
        >>> s.frame(algorithms.similar(s, 1, k=2))
           vertex   jaccard
        0       2  0.333333
        1       5  0.333333
        """
        if isinstance(library, OfRows):
            library, found = "auto", library
        return tables.frame(self, library, found, columns)

    def write_parquet(self, path: StrPath) -> None:
        """Write the table of `to_arrow` to a file NAME.parquet. Raises MissingPackage, PathError,
        and ExportError if the disk is too full.

        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     lpma.Graph(device="cpu").snapshot().write_parquet(f"{directory}/edges.parquet")
        ...     [file.name for file in pathlib.Path(directory).iterdir()]
        ['edges.parquet']
        """
        tables.write_parquet(self, path)

    def write_csv(self, path: StrPath) -> None:
        """Write the table of `to_arrow` to a file NAME.csv, its first line the names of the
        columns. Text is quoted (RFC 4180), and numbers are read back the same. If some names are
        text such as "5", `src_number` and `dst_number` say which are integers. Raises
        MissingPackage, PathError, and ExportError if the disk is too full.

        >>> import pathlib, tempfile
        >>> g = lpma.from_edges(["ann", "bob"], ["bob", "c, d"], 0.5, time=7, device="cpu")
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     g.snapshot().write_csv(f"{directory}/edges.csv")
        ...     print(pathlib.Path(f"{directory}/edges.csv").read_text(), end="")
        src,dst,weight,time
        "ann","bob",0.5,7
        "bob","c, d",0.5,7
        """
        tables.write_csv(self, path)

    def write_graphml(self, path: StrPath) -> None:
        """Write the graph of `to_networkx` to a file NAME.graphml, for programs that draw. Raises
        MissingPackage, PathError, and ExportError above two million vertices and edges, or if XML
        cannot tell the names apart.

        >>> import networkx, tempfile
        >>> g = lpma.from_edges(["ann", "bob"], ["bob", "cem"], device="cpu")
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     g.snapshot().write_graphml(f"{directory}/g.graphml")
        ...     list(networkx.read_graphml(f"{directory}/g.graphml"))
        ['ann', 'bob', 'cem']
        """
        xml.write(self, path, "graphml")

    def write_gexf(self, path: StrPath) -> None:
        """Write the graph of `to_networkx` to a file NAME.gexf, as `write_graphml`.

        >>> import networkx, tempfile
        >>> g = lpma.from_edges(["ann", "bob"], ["bob", "cem"], device="cpu")
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     g.snapshot().write_gexf(f"{directory}/g.gexf")
        ...     list(networkx.read_gexf(f"{directory}/g.gexf"))
        ['ann', 'bob', 'cem']
        """
        xml.write(self, path, "gexf")

    def write_npz(self, path: StrPath) -> None:
        """Write the arrays and the facts about them to a NumPy archive NAME.npz, which `read_npz`
        reads. Raises PathError, and ExportError if the disk is too full.

        >>> import tempfile
        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 2)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     g.snapshot().write_npz(f"{directory}/s.npz")
        ...     lpma.Snapshot.read_npz(f"{directory}/s.npz").num_edges
        1
        """
        archives.write_npz(self, path)

    def write_matrix_market(self, path: StrPath) -> None:
        """Write the matrix of `to_scipy` to a file NAME.mtx, rows counted from 1: `pattern` for an
        unweighted graph, `symmetric` for an undirected one. Raises MissingPackage, PathError, and
        ExportError if the disk is too full.

        >>> import pathlib, tempfile
        >>> g = lpma.Graph(device="cpu", weight_dtype=None)
        >>> g.insert(0, 1)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     g.snapshot().write_matrix_market(f"{directory}/s.mtx")
        ...     pathlib.Path(f"{directory}/s.mtx").read_text().splitlines()[-1]
        '1 2'
        """
        archives.write_matrix_market(self, path)

    @staticmethod
    def read_npz(path: StrPath) -> Snapshot:
        """The snapshot that `write_npz` wrote, on the host; see there for an example. Raises
        FormatError on any other file, and OSError if it cannot be read."""
        return Snapshot._trusted(**archives.read_npz(path))
