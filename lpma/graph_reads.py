"""What a graph answers: queries, changes and figures. Nothing here changes it.

Each call validates what it is given and then reads under the graph's lock, so that it sees whole
batches. Answers lie on the graph's device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import arguments, contents, query
from .arguments import integer
from .arrays import to_host
from .batch import MAX_HOPS
from .coerce import NO_VERTEX
from .errors import BatchError
from .graph_one import GraphOne
from .one import is_vertex
from .results import Changes, Edges, Neighbors, TouchedEdges
from .stats import Stats
from .store import LPMA
from .touched import touched
from .unchanged import Unchanged, expired_of, unchanged_of
from .usable import NO_PREDECESSORS

Array = npt.NDArray[Any]  # or cupy.ndarray


class GraphReads(GraphOne):
    """The half of `lpma.Graph` that only reads."""

    _counted: tuple[int, int] | None = None  # (version, the number of vertices)

    # -- queries ------------------------------------------------------------------------------

    def edges(self, src: Any, dst: Any) -> Edges:
        """Whether edges (src[i], dst[i]) are there, with their weights and times. src, dst:
        integers, arrays of one length q or scalars. Raises BatchError.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 2, weight=0.5)
        >>> answer = g.edges([1, 2], [2, 1])
        >>> answer.found, answer.weight
        (array([ True, False]), array([0.5, 0. ], dtype=float32))
        """
        u, v = self._vertices(src, "src"), self._vertices(dst, "dst")
        if len(u) != len(v):
            raise BatchError(f"dst has {len(v)} rows, src has {len(u)}: they must agree")
        return self._guard.read(query.edges, self._stores.out, None, u, v, None)

    def successors(self, u: Any) -> Neighbors:
        """The targets of each u's edges, sorted by id. u: integers, an array of length q or a
        scalar.
        Raises BatchError.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 1, 2], [3, 2, 3])
        >>> g.successors(1).ids
        array([2, 3], dtype=uint32)
        """
        vertices = self._vertices(u, "u", unseen=True)
        found = self._guard.read(query.neighbors, self._stores.out, None, vertices, None)
        return self._by_name(found)

    def predecessors(self, v: Any) -> Neighbors:
        """The sources of each v's edges, sorted by id. v: integers, an array of length q or a
        scalar.
        Raises BatchError, also if the graph is directed and was made without predecessors=True.

        >>> g = lpma.Graph(predecessors=True, device="cpu")
        >>> g.insert([1, 2], [3, 3])
        >>> g.predecessors(3).ids
        array([1, 2], dtype=uint32)
        """
        store = self._stores.reverse
        if store is None:
            raise BatchError(NO_PREDECESSORS)
        vertices = self._vertices(v, "v", unseen=True)
        return self._by_name(self._guard.read(query.neighbors, store, None, vertices, None))

    def successors_after(self, u: Any, after: Any = None, limit: int = 1 << 20) -> Neighbors:
        """A piece of what `successors` gives of one vertex: those behind `after`, at most `limit`.
        The last of them is the next `after`, so that a row of any length is read in pieces, each at
        a cost of its own; they are of one version while no batch comes between.

        u, after: a vertex each; after None: from the first one on. limit: at least 1. Raises
        BatchError.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, [2, 3, 5, 8])
        >>> g.successors_after(1, limit=2).ids, g.successors_after(1, 3, limit=2).ids
        (array([2, 3], dtype=uint32), array([5, 8], dtype=uint32))
        """
        return self._neighbors_after(self._stores.out, u, "u", after, limit)

    def predecessors_after(self, v: Any, after: Any = None, limit: int = 1 << 20) -> Neighbors:
        """As `successors_after`, of what `predecessors` gives. Raises BatchError, also if the graph
        is directed and was made without predecessors=True."""
        if self._stores.reverse is None:
            raise BatchError(NO_PREDECESSORS)
        return self._neighbors_after(self._stores.reverse, v, "v", after, limit)

    def _neighbors_after(
        self, store: LPMA, vertex: Any, name: str, after: Any, limit: int
    ) -> Neighbors:
        limit = arguments.limit(limit, "limit", 1, 1 << 62)
        vertices = self._vertices(vertex, name)
        if len(vertices) != 1:
            raise BatchError(f"{name}: one vertex, not {len(vertices)}")
        first = 0 if after is None else self._vertex(after, "after") + 1
        if first > NO_VERTEX:
            raise BatchError(f"after: no vertex goes by {after!r}: give the last that was returned")
        id = int(to_host(vertices)[0])
        found = self._guard.read(query.neighbors_from, store, id, first, limit)
        return self._by_name(found)

    def hops(self, u: Any, k: int) -> Neighbors:
        """The distinct vertices within 1 … k steps of each u, itself only if it is reached again.
        u: integers, an array of length q or a scalar; k: from 1 to 255. Raises BatchError.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 2, 3], [2, 3, 4])
        >>> g.hops(1, 2).ids
        array([2, 3], dtype=uint32)
        """
        k = integer(k, "k", 1, MAX_HOPS)
        vertices = self._vertices(u, "u", unseen=True)
        steps = np.full(len(vertices), k, np.int64)
        found = self._guard.read(query.hops, self._stores.out, None, vertices, steps, None)
        return self._by_name(found)

    def degree(self, u: Any) -> Array:
        """int64[q]: the number of each u's successors; 0 also for an id that is not a vertex, which
        `has_vertices` tells apart. u: integers, an array of length q or a scalar. Raises
        BatchError.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 1], [2, 3])
        >>> g.degree([1, 2])
        array([2, 0])
        """
        if self.names is None and type(u) is int and is_vertex(u):
            return self._guard.read(self._one.degree, u)
        vertices = self._vertices(u, "u")
        return self._guard.read(query.degrees, self._stores.out, None, vertices, None)

    def in_degree(self, v: Any) -> Array:
        """int64[q]: the number of each v's predecessors; 0 also for an id that is not a vertex. v:
        integers, an array of length q or a scalar. Raises BatchError, also if the graph is directed
        and was made without predecessors=True.

        >>> g = lpma.Graph(predecessors=True, device="cpu")
        >>> g.insert([1, 2], [3, 3])
        >>> g.in_degree([3, 1])
        array([2, 0])
        """
        store = self._stores.reverse
        if store is None:
            raise BatchError(NO_PREDECESSORS)
        return self._guard.read(query.degrees, store, None, self._vertices(v, "v"), None)

    def has_vertices(self, v: Any) -> Array:
        """bool[q]: whether each v was added, or has an edge out or in. v: integers, an array of
        length q or a scalar. Raises BatchError. Without an in-neighbour store, the in-edges of
        those without an edge out are found by a scan of the whole graph. On the host, whoever asks
        again soon after has all in-edges counted (16 to 32 bytes a vertex), and pays for what
        changes from then on.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 2)
        >>> g.has_vertices([1, 2, 3])
        array([ True,  True, False])
        """
        vertices = self._vertices(v, "v")
        return self._guard.read(query.present_vertices, self._stores, None, vertices, None)

    # -- changes ------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The number of batches applied: it rises by one with each."""
        return self._stores.version

    @property
    def time(self) -> int:
        """The time of the last update applied, 0 before the first."""
        return self._stores.time

    def changes(self, since: int) -> Changes | None:
        """The net edges inserted and deleted since a version, sorted; None if that is no longer
        known, since the history is bounded. An undirected edge is listed once, src <= dst. Raises
        BatchError if `since` is not a version from 0 to the present one.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 2], [2, 3])
        >>> before = g.version
        >>> g.delete(1, 2)
        >>> g.insert(2, 3)                          # was there already
        >>> g.changes(before).src, g.changes(before).inserted
        (array([1], dtype=uint32), array([False]))
        """
        since = integer(since, "since", 0, self.version)
        changes = self._guard.read(self._changes, since)
        if changes is None or self.names is None:
            return changes
        src, dst = self.names.of(changes.src), self.names.of(changes.dst)
        return Changes(src, dst, changes.inserted)

    def _changes(self, since: int) -> Changes | None:
        self._stores.out.backend.wait()
        return self._stores.history.net(since, self._stores.directed)

    def touched(self, since: int) -> TouchedEdges | None:
        """The edges that batches touched since a version, on the graph's device and as of one
        version, for callers that keep a copy of the graph. None if they are no longer known.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 2)
        >>> g.touched(0).there
        array([ True])
        """
        since = integer(since, "since", 0, self.version)
        return self._guard.read(touched, self._stores, since)

    # -- figures ------------------------------------------------------------------------------

    @property
    def num_edges(self) -> int:
        """The number of edges; an undirected one counts once."""
        return self._guard.read(lambda: self._stores.num_edges)

    @property
    def num_rows(self) -> int:
        """The number of rows of a snapshot: 1 + the largest id present, as an end of an edge or
        added by itself."""
        return self._guard.read(self._stores.largest_vertex) + 1

    @property
    def num_vertices(self) -> int:
        """The number of vertices present: those with an edge out or in, or added by themselves.
        Counted once a version, by one pass over the keys of the whole graph, which takes about as
        long as a snapshot.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 5)
        >>> g.num_vertices, g.num_rows
        (2, 6)
        """
        counted = self._counted
        if counted is None or counted[0] != self.version:
            counted = self._counted = self._guard.read(
                lambda: (self._stores.version, len(contents.vertices(self._stores)))
            )
        return counted[1]

    @property
    def has_predecessors(self) -> bool:
        """Whether `predecessors` can be answered."""
        return self._stores.reverse is not None

    @property
    def levels(self) -> int:
        """The number of levels of the out-store, not counting the head."""
        return self._guard.read(lambda: int(self._stores.out.segments.m))

    @property
    def segments(self) -> int:
        """The number of segments of the out-store: 2 to the power of `levels`, or fewer while the
        last level of a large store is there in part."""
        return self._guard.read(lambda: int(self._stores.out.segments.size.segments))

    @property
    def density(self) -> float:
        """The share of the out-store's slots that are filled, 0 to 1."""
        return self._guard.read(lambda: self._stores.out.density)

    def level_densities(self) -> Array:
        """float64[levels + 1], on the host: the share of the slots that are filled, 0 to 1, of the
        out-store's head and then of each level. The last level has half of all slots, or fewer
        while it is there in part.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(0, range(48))
        >>> g.level_densities().shape == (g.levels + 1,)
        True
        """
        return self._guard.read(contents.level_densities, self._stores.out)

    @property
    def nbytes(self) -> int:
        """Bytes of all stores, with their buffers and the history of changes."""
        return self._guard.read(lambda: self._stores.nbytes)

    def stats(self) -> Stats:
        """What has been moved so far, over all stores of the graph.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 2], [2, 3])
        >>> g.stats().operations
        2
        """
        self._guard.refuse_broken()
        out, into = self._stores.out, self._stores.into
        return out.stats.added(into.stats if into else Stats())

    @property
    def unchanged(self) -> Unchanged:
        """The operations so far that were applied and changed nothing, by reason."""
        self._guard.refuse_broken()
        return unchanged_of(self._stores.out.unchanged, self._stores.directed)

    @property
    def expired(self) -> int:
        """The edges that expired since the graph was made or loaded; an undirected one counts once,
        and what is deleted does not.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 2, 3], [2, 3, 4], time=[10, 20, 30])
        >>> g.expire(25)
        >>> g.expired
        2
        """
        self._guard.refuse_broken()
        return expired_of(self._stores.out.unchanged, self._stores.directed)
