"""Neighbours of distinct vertices, read in parts within a share of the stream's time.

Idea: the cost of a question is known, or estimated, before it is paid. The rows of successors and
predecessors are the vertices' degrees. Of k steps, the edges that are walked are at most the
degrees of the starts and of all that k − 1 steps reach; so the steps are tried one after the other,
and none is taken whose edges are too many. What is left is cut into parts of some milliseconds,
and the clock is looked at between two of them.

Tricks: a degree costs as much as a look at each neighbour, so degrees too are asked for in parts,
and of no vertex twice: a request may name one hub 100,000 times.

Requires: the graph does not change meanwhile; the vertices are distinct.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpma import Kind, Neighbors
from lpma.arrays import to_host

from ..formats.names import joined

Array = npt.NDArray[Any]
Vertices = Sequence[Any] | Array  # names in a list, or uint32 ids

PART_ROWS = 1 << 18  # that one call of the graph is to answer with, some 2 ms
PART_NAMES = 1 << 15  # the same, where rows are names
PART_EDGES = 1 << 15  # that one call of two steps or more is to walk, some 10 ms
FIRST_PART = 16  # vertices whose degrees are asked for first
QUICK_S, SLOW_S = 0.002, 0.01  # a part of degrees, after which the next is longer or shorter


_NOTHING = Neighbors(np.zeros(1, np.int64), np.empty(0, np.uint32))


class Bounds(NamedTuple):
    """What is read at most. until: of time.monotonic(); edges: walked for one vertex or question;
    rows: of one answer."""

    until: float
    edges: int
    rows: int


def distinct(vertices: Vertices) -> tuple[Vertices, Array]:
    """(those that differ, in the order in which they appear first; the place of each in them)."""
    if isinstance(vertices, np.ndarray):
        found, first, inverse = np.unique(vertices, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return found[order], rank[inverse]
    places: dict[Any, int] = {}
    where = [places.setdefault(vertex, len(places)) for vertex in vertices]
    return list(places), np.array(where, np.int64)


def degrees(
    count: Callable[[Any], Any], vertices: Vertices, until: float, most: int | None = None
) -> Array:
    """int64: the degrees of the first of these vertices; of all, unless the time is over, or their
    sum is above `most`."""
    parts: list[Array] = []
    done = total = 0
    step = FIRST_PART
    while done < len(vertices):
        started = time.monotonic()
        if started > until or (most is not None and total > most):
            break
        parts.append(np.asarray(to_host(count(vertices[done : done + step]))))
        done += len(parts[-1])
        total += int(parts[-1].sum())
        took = time.monotonic() - started
        step = 4 * step if took < QUICK_S else max(1, step >> (took > SLOW_S))
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


class Reader:
    """Reads neighbours of one kind."""

    def __init__(self, graph: Any, kind: Kind, k: int, bounds: Bounds) -> None:
        self._graph, self._k, self._bounds = graph, k, bounds
        self.walks = kind is Kind.HOPS and k > 1
        self.count = graph.in_degree if kind is Kind.PREDECESSORS else graph.degree
        self._call: Callable[[Any], Neighbors] = {
            Kind.SUCCESSORS: graph.successors,
            Kind.PREDECESSORS: graph.predecessors,
            Kind.HOPS: lambda u: graph.hops(u, k),
        }[kind]
        self._after = (
            graph.predecessors_after if kind is Kind.PREDECESSORS else graph.successors_after
        )
        self._has_columns = kind is not Kind.HOPS
        named = getattr(graph, "names", None) is not None
        self.part = PART_EDGES if self.walks else PART_NAMES if named else PART_ROWS
        self.refused: list[int] = []  # places of vertices from where too many edges are walked
        self.first_too_large = False

    def read(self, vertices: Vertices, sizes: Array, first: int) -> tuple[Neighbors, int]:
        """(answers, how many vertices they are of): of all, unless the time is over, or the first
        question, which is of the `first` vertices, has too much. sizes: the degrees."""
        parts: list[Neighbors] = []
        ends = np.cumsum(sizes)
        done = rows = edges = 0
        most = len(vertices)
        while done < len(vertices) or not parts:
            start = int(ends[done - 1]) if done else 0
            step = int(np.searchsorted(ends, start + self.part, "right")) - done
            step = max(1, min(step, most))
            part = vertices[done : done + step]
            if self.walks and len(part):
                found, fits, walked = self._walked(part, sizes[done : done + step])
                if found is None and fits == 0:
                    break  # the time is over
                most = fits if found is None else 2 * step
                if found is None and fits < step:
                    continue
                if found is None:
                    self.refused.append(done)
                    found = Neighbors(np.zeros(2, np.int64), np.empty(0, np.uint32))
                    walked = 0
                edges += walked
            else:
                found = self._call(part)
            parts.append(_on_host(found))
            done += len(part)
            rows += len(parts[-1].ids)
            if done <= first and (rows > self._bounds.rows or edges > self._bounds.edges):
                self.first_too_large = True
                break
            if rows > self._bounds.rows or time.monotonic() > self._bounds.until:
                break
        if done < first:  # nothing of it will be told
            return _NOTHING, 0
        return one_of(parts), done

    def piece(self, vertex: Vertices, after: Any, limit: int) -> Neighbors:
        """At most `limit` neighbours of one vertex, those behind `after`; None: the first ones.
        REQUIRES: not `walks`."""
        found = _on_host(self._after(vertex, after, limit))
        return found if self._has_columns else Neighbors(found.indptr, found.ids)

    def _walked(self, part: Vertices, sizes: Array) -> tuple[Neighbors | None, int, int]:
        """(what is reached, vertices, edges walked); (None, fewer vertices to try) if they are too
        many, (None, 1) of one vertex if its edges are, (None, 0) if the time is over."""
        bounds, count = self._bounds, len(part)
        before, edges = -1, int(sizes.sum())
        for k in range(1, self._k):
            if edges > bounds.edges:
                return None, max(1, count // 4), edges
            reached = _on_host(self._graph.hops(part, k))
            if len(reached.ids) == before:
                return reached, count, edges  # nothing more can be reached
            before = len(reached.ids)
            ids, where = distinct(
                reached.ids.tolist() if reached.ids.dtype == object else reached.ids
            )
            found = degrees(self._graph.degree, ids, bounds.until, bounds.edges)
            if len(found) < len(ids):
                over = int(found.sum()) > bounds.edges
                return None, max(1, count // 4) if over else 0, edges
            each = sizes + np.diff(np.concatenate([[0], np.cumsum(found[where])])[reached.indptr])
            edges = int(each.sum())
            if edges > self.part and count > 1:
                fits = int(np.searchsorted(np.cumsum(each), self.part, "right"))
                return None, max(1, min(fits, count - 1)), edges
        if edges > bounds.edges:
            return None, max(1, count // 4), edges
        return self._call(part), count, edges


def _on_host(found: Neighbors) -> Neighbors:
    return Neighbors(*map(to_host, (found.indptr, found.ids, found.weights, found.times)))


def one_of(parts: list[Neighbors]) -> Neighbors:
    """The parts as one answer."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0, *[len(part.ids) for part in parts]])
    indptr = [part.indptr[1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
    parts = [part for part in parts if len(part.ids)] or parts[:1]
    return Neighbors(
        np.concatenate([np.zeros(1, np.int64), *indptr]),
        joined([part.ids for part in parts]) if parts else np.empty(0, np.uint32),
        _column([part.weights for part in parts]),
        _column([part.times for part in parts]),
    )


def _column(columns: list[Array | None]) -> Array | None:
    present = [column for column in columns if column is not None]
    return np.concatenate(present) if present else None
