"""A graph as an object of Python's: a collection of its vertices that can be shown, copied and
pickled.

The vertices present are found by one pass over the keys, and their ids kept until the next batch, 4
bytes a vertex, for iteration and, on a device, for `in`. `len` keeps their number alone.

Copies and pickles hold what `save` writes. Their version is the same; the history of changes, the
statistics and the levels of the store begin anew.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from . import contents
from .arrays import first_not_below, to_host
from .coerce import one_vertex
from .display import graphs, html
from .errors import BatchError, LpmaError
from .graph_reads import GraphReads
from .image import Image
from .one import is_vertex
from .options import Options

Array = npt.NDArray[Any]

CHUNK = 1 << 16  # vertices that iteration turns into Python's objects at once


class GraphObject(GraphReads):
    """The part of `lpma.Graph` that Python's own functions use."""

    _options: Options
    device: str
    directed: bool
    weight_dtype: np.dtype[Any] | None
    has_times: bool
    _present: tuple[int, Array] | None = None  # (version, the ids of the vertices)

    # -- a collection of vertices ---------------------------------------------------------------

    def __len__(self) -> int:
        """The number of vertices present, as `num_vertices`; it is counted once a version.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 5)
        >>> len(g), list(g), 5 in g, 3 in g
        (2, [1, 5], True, False)
        """
        return self.num_vertices

    def __bool__(self) -> bool:
        """Whether there is a vertex, without counting them."""
        return self._guard.read(lambda: self._stores.out.num_slots > 0)

    def __contains__(self, v: Any) -> bool:
        """Whether v is a vertex; False for what cannot be one, such as a list, as NetworkX has it.
        For many at once: `has_vertices`."""
        row = v
        if self.names is not None or not is_vertex(v):
            if isinstance(v, list | tuple | set) or np.ndim(v):
                return False
            try:
                row = one_vertex(v, "v") if self.names is None else self.names.find(v)
            except BatchError:
                return False
            if row is None:
                return False
        if self.device == "cpu":
            return self._guard.read(self._one.has_vertex, row)
        ids = self._vertex_ids()  # one pass, as to look for an edge to v, which others share
        at = first_not_below(ids, row)
        return at < len(ids) and int(ids[at]) == row

    def __iter__(self) -> Iterator[Any]:
        """The vertices present at this moment, by rising id, as Python's integers or, of a graph
        with names, as names. The graph may change meanwhile."""
        ids, names = self._vertex_ids(), self.names
        for first in range(0, len(ids), CHUNK):
            some = ids[first : first + CHUNK]
            yield from (some if names is None else names.of(some)).tolist()

    def _vertex_ids(self) -> Array:
        """uint32, ascending, on the host: the vertices present. Not to be written to."""
        kept = self._present
        if kept is None or kept[0] != self.version:
            kept = self._present = self._guard.read(self._find_vertices)
        return kept[1]

    def _find_vertices(self) -> tuple[int, Array]:
        return self._stores.version, np.asarray(to_host(contents.vertices(self._stores)))

    # -- shown ----------------------------------------------------------------------------------

    def __repr__(self) -> str:
        """The graph in one line. Vertices are told where they are few or counted already, rows
        (`num_rows`) elsewhere.

        >>> lpma.from_edges([1, 2], [2, 3], device="cpu")
        <lpma.Graph on cpu: directed, 3 vertices, 2 edges, version 1>
        """
        kind = "directed" if self.directed else "undirected"
        named = ", named" if self.names is not None else ""
        try:
            known = self._guard.read(graphs.figures, self._stores)
            size = graphs.size_in_words(known, self._count_if_cheap(known))
            plain = ", kept by NumPy" if known.is_plain else ""
            what = f"{kind}{named}, {size}, version {known.version:,}{plain}"
        except LpmaError as error:  # broken, or in use by this very thread
            what = f"{kind}{named}, {type(error).__name__}"
        return f"<lpma.Graph on {self.device}: {what}>"

    def _count_if_cheap(self, known: graphs.Figures) -> int | None:
        counted = self._counted
        if known.is_small or (counted is not None and counted[0] == known.version):
            return self.num_vertices
        return None

    def _repr_html_(self) -> str:
        """The graph as notebooks show it."""
        try:
            known = self._guard.read(graphs.figures, self._stores)
            drawn = self._guard.read(graphs.sketch, self._stores)
            return graphs.table(self, known, self._count_if_cheap(known), drawn)
        except LpmaError as error:
            return html.page("lpma.Graph", [(type(error).__name__, str(error))], [])

    # -- copied ---------------------------------------------------------------------------------

    def copy(self) -> Self:
        """A graph of its own with the same contents, options and version, on the same device. Its
        history begins here: `changes` answers from this version on. Raises OutOfMemory.

        >>> g = lpma.from_edges([1, 2], [2, 3], device="cpu")
        >>> other = g.copy()
        >>> other.delete(1, 2)
        >>> g.num_edges, other.num_edges
        (2, 1)
        """
        taken = self.image()
        make: Any = type(self)
        other = make(device=self.device, **self._options.header())
        # Names given since then do no harm: the image's vertices have theirs.
        other.names = None if self.names is None else self._guard.read(self.names.copy)
        other._stores.version, other._stores.time = taken.version, taken.time
        other._guard.write(other._stores.fill, *taken.slots)
        copied: Self = other
        return copied

    def __copy__(self) -> Self:
        """As `copy`: two objects never share a store."""
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """As `copy`."""
        return self.copy()

    def __reduce__(self) -> Any:
        """Pickled as the bytes that `save` writes. A graph of the CPU is unpickled on the CPU, one
        of a CUDA device on a device if there is one ("auto")."""
        device = "cpu" if self.device == "cpu" else "auto"
        return type(self)._of_bytes, (self._to_bytes(), device)

    def _to_bytes(self) -> bytes:
        file = io.BytesIO()
        self.image().write(file)
        return file.getvalue()

    @classmethod
    def _of_bytes(cls, data: bytes, device: str) -> Self:
        return cls.load(io.BytesIO(data), device)

    def image(self, old: Image | None = None) -> Image:
        """See Graph."""
        raise NotImplementedError

    @classmethod
    def load(cls, path: Any, device: str = "auto") -> Any:
        """See Graph."""
        raise NotImplementedError
