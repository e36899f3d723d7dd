"""What `lpma run` and the HTTP service compute on a snapshot: a function for each algorithm, with
its summary.

A function returns a value for each vertex or edge, as columns: the names of vertices, then the
value under its own name; and the few figures that people want first. It reads the snapshot on its
device; what it returns is on the host. REQUIRES: a compact snapshot, each row of which is a vertex.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

import algorithms
from algorithms.biclique.bipartite import NotBipartite
from algorithms.clustering import clustering_and_transitivity, mean_of_vertices
from algorithms.diversity.network import ego_network
from algorithms.options import Limits, Option, options_of
from lpma import Snapshot
from lpma.arrays import first_not_below, to_host
from lpma.cpu.jit import telling
from lpma.errors import BatchError

from ..plots import plot_distribution
from ..plots.ego import plot_ego
from ..plots.style import StrPath
from ..state.vertex_names import Called, Vertices, word_of
from ..types import Name

Array = npt.NDArray[Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Result:
    """Columns of one length, the value last; and figures by name.

    ranked: the columns to rank and draw, if they differ: each component once, say.
    best: the rows of the largest values, largest first, if they say more than the columns can.
    picture: draws something better than the distribution of the values, into a file, with a title.
    """

    columns: dict[str, Array | Called]
    summary: dict[str, Any]
    ranked: dict[str, Array | Called] | None = None
    best: list[dict[str, Any]] | None = None
    picture: Callable[[StrPath, str], None] | None = None

    @property
    def ranking(self) -> dict[str, Array | Called]:
        """Columns of which the last is the value to rank and draw by."""
        return self.ranked or self.columns

    @property
    def value(self) -> str:
        """What the value is called."""
        return list(self.ranking)[-1]

    @property
    def values(self) -> Array:
        """The values to rank and draw."""
        return np.asarray(self.ranking[self.value])

    def top(self, count: int) -> list[dict[str, Any]]:
        """The rows of the largest values, largest first, equal ones in the order of the columns."""
        if self.best is not None:
            return self.best[:count]
        falling, among = -self.values, np.arange(len(self.values))
        if 0 < count < len(falling):
            among = np.flatnonzero(~(falling > np.partition(falling, count - 1)[count - 1]))
        order = among[np.argsort(falling[among], kind="stable")[:count]]
        rows = zip(*(column[order].tolist() for column in self.ranking.values()), strict=True)
        return [dict(zip(self.ranking, row, strict=True)) for row in rows]

    def plot(self, path: StrPath, title: str) -> None:
        """Draw into a file. Raises PathError, MissingPackage."""
        if self.picture is not None:
            self.picture(path, title)
        else:
            plot_distribution(self.values, self.value, path, title)


def reading_weights(algorithm: str, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments with which an algorithm reads weights, which decay. Raises BatchError if it
    reads none."""
    if algorithm == "pagerank":
        return given | {"weighted": True}
    if algorithm != "shortest-paths":
        raise BatchError(f"half_life: {algorithm} reads no weights: pagerank and shortest-paths do")
    return given


def timed(action: Callable[[], T]) -> tuple[T, float]:
    """What the action returns, and the seconds it took besides waiting for the CPU's kernels to be
    compiled, or read from the cache, which only a first call does."""
    started, waited = time.perf_counter(), telling.seconds
    found = action()
    return found, time.perf_counter() - started - (telling.seconds - waited)


def of_vertices(v: Vertices, name: str, values: Array, summary: dict[str, Any]) -> Result:
    """A value of each vertex."""
    return Result({"vertex": v.column(), name: values}, summary)


def of_core_numbers(v: Vertices, numbers: Array) -> Result:
    """Core numbers."""
    largest = int(numbers.max(initial=0))
    members = int((numbers == largest).sum())
    return of_vertices(v, "core", numbers, {"max_core": largest, "vertices_in_it": members})


def of_ranks(v: Vertices, ranks: Array) -> Result:
    """PageRank."""
    highest = float(ranks.max(initial=0))
    return of_vertices(v, "rank", ranks, {"highest": highest, "sum": float(ranks.sum())})


def of_hops(v: Vertices, hops: Array) -> Result:
    """Hops from a vertex, -1 where it reaches none."""
    reached = int((hops >= 0).sum())
    return of_vertices(v, "hops", hops, {"reached": reached, "farthest": int(hops.max())})


def core(s: Snapshot, v: Vertices) -> Result:
    """Core numbers."""
    return of_core_numbers(v, to_host(algorithms.core_numbers(s)))


def truss(s: Snapshot, v: Vertices) -> Result:
    """Truss numbers of the edges; an edge in no triangle has 2."""
    found = algorithms.truss_numbers(s)
    src, dst, numbers = (to_host(column) for column in (found.src, found.dst, found.truss))
    largest = int(numbers.max(initial=0))
    return Result(
        {"src": v.column(src), "dst": v.column(dst), "truss": numbers},
        {"max_truss": largest, "edges_in_it": int((numbers == largest).sum())},
    )


def triangles(s: Snapshot, v: Vertices) -> Result:
    """Triangles at each vertex."""
    counts = to_host(algorithms.triangles(s))
    total = int(counts.sum()) // 3
    return of_vertices(
        v, "triangles", counts, {"triangles": total, "vertices_in_one": int((counts > 0).sum())}
    )


def clustering(s: Snapshot, v: Vertices) -> Result:
    """Clustering coefficients of the vertices, their mean, and the graph's transitivity."""
    coefficients, transitivity = clustering_and_transitivity(s)
    found = to_host(coefficients)
    summary = {
        "average": mean_of_vertices(s, found),
        "transitivity": transitivity,
    }
    return of_vertices(v, "clustering", found, summary)


def components(s: Snapshot, v: Vertices) -> Result:
    """Connected components, ignoring directions: for each vertex the smallest vertex of its
    component, and how many vertices are in it."""
    return _of_components(v, to_host(algorithms.connected_components(s)))


def strong_components(s: Snapshot, v: Vertices) -> Result:
    """Strongly connected components, along the edges' directions; told as `components` are."""
    return _of_components(v, to_host(algorithms.strongly_connected_components(s)))


def _of_components(v: Vertices, labels: Array) -> Result:
    counts = np.bincount(labels, minlength=1)
    roots = np.flatnonzero(counts)
    return of_components(v, labels, roots, counts[labels], counts[roots], v.column)


def of_components(
    v: Vertices,
    labels: Array,
    roots: Array,
    of_each: Array,
    sizes: Array,
    called: Callable[[Array], Array | Called],
) -> Result:
    """The component of each vertex, and how many are `of_each` one's; `roots` and `sizes` have each
    component once. called: what labels stand for."""
    return Result(
        {"vertex": v.column(), "component": called(labels), "size": of_each},
        {
            "components": len(sizes),
            "largest": int(sizes.max(initial=0)),
            "of_one_vertex": int((sizes == 1).sum()),
        },
        {"component": called(roots), "size": sizes},
    )


def pagerank(
    s: Snapshot, v: Vertices, around: Sequence[Name] | None = None, **options: Any
) -> Result:
    """PageRank; where `around` names vertices, personalised: the surfer jumps to these alone.
    Raises VertexError if one is not in the graph."""
    towards = {v.row(name): 1.0 for name in around} if around else None
    return of_ranks(v, to_host(algorithms.pagerank(s, personalization=towards, **options)))


def bfs(s: Snapshot, v: Vertices, source: Name) -> Result:
    """Hops from the vertex `source`. Raises VertexError if it is not in the graph."""
    return of_hops(v, to_host(algorithms.bfs(s, v.row(source))))


def shortest_paths(s: Snapshot, v: Vertices, source: Name) -> Result:
    """Least sums of weights from the vertex `source`. Raises VertexError if it is not in the graph,
    and BatchError if a weight is no length."""
    distances = to_host(algorithms.shortest_paths(s, v.row(source)))
    reached = distances[np.isfinite(distances)]
    return Result(
        {"vertex": v.column(), "distance": distances},
        {"reached": len(reached), "farthest": float(reached.max())},
        {"vertex": v.column(np.isfinite(distances)), "distance": reached},
    )


def similar(s: Snapshot, v: Vertices, vertex: Name, top: int, unlinked: bool) -> Result:
    """The `top` vertices whose neighbours are most like those of `vertex`, by Jaccard. Raises
    VertexError if it is not in the graph."""
    rows, scores = (to_host(a) for a in algorithms.similar(s, v.row(vertex), top, unlinked))
    columns = {"vertex": v.column(rows), "jaccard": scores}
    return Result(columns, {"found": len(rows), "highest": float(scores.max(initial=0))})


def diversity(s: Snapshot, v: Vertices, model: str, k: int, top: int, every: bool) -> Result:
    """Structural diversity: the `top` vertices with the most social contexts, and these as lists of
    vertices; with `every`, all vertices' scores. The picture is the best one's ego network."""
    winners = algorithms.top_diversity(s, model, k, max(top, 1))
    if every:
        columns = {"vertex": v.column(), "score": to_host(algorithms.diversity(s, model, k))}
    else:
        rows = np.array([winner.vertex for winner in winners], np.int64)
        scores = np.array([winner.score for winner in winners], np.int32)
        columns = {"vertex": v.column(rows), "score": scores}
    best = []
    for vertex, score, contexts in winners[:top]:
        named = [v.list(to_host(context)) for context in contexts]
        best.append({"vertex": v.one(vertex), "score": score, "contexts": named})

    def picture(path: StrPath, title: str) -> None:
        if not winners:
            raise BatchError("a picture of an ego network needs a graph with a vertex")
        vertex, score, contexts = winners[0]
        told = f"{word_of(v.one(vertex))}: {score:,} context{'' if score == 1 else 's'}"
        plot_ego(
            ego_network(s, vertex), vertex, [to_host(its) for its in contexts], v[:], path,
            f"{told}\n{title}",
        )  # fmt: skip

    return Result(
        columns,
        {"largest_score": winners[0].score if winners else 0},
        best=best,
        picture=picture,
    )


def bicliques(
    s: Snapshot, v: Vertices, p: int, q: int, left: int | None, method: str,
    progress: Callable[[int, int], None],
) -> int:  # fmt: skip
    """(p, q)-bicliques; vertices with ids below `left` are the left side. Raises NotBipartite,
    naming vertices by what they go by."""
    rows = _rows_below(v, left)
    with _naming(v):
        return algorithms.count_bicliques(s, p, q, left=rows, method=method, progress=progress)


def first_bicliques(
    s: Snapshot, v: Vertices, p: int, q: int, left: int | None, count: int
) -> list[algorithms.Biclique]:
    """The first so many of them, as what vertices go by."""
    return [
        algorithms.Biclique(*(tuple(v.list(list(side))) for side in one))
        for one in algorithms.list_bicliques(s, p, q, _rows_below(v, left), limit=count)
    ]


@contextmanager
def _naming(v: Vertices) -> Iterator[None]:
    """Rows of a compact snapshot mean nothing to a user: within, NotBipartite has names instead."""
    try:
        yield
    except NotBipartite as error:
        words = [word_of(name) for name in v.list(list(error.vertices))]
        raise NotBipartite(error.message, *words) from None


def _rows_below(v: Vertices, left: int | None) -> int | None:
    return None if left is None else first_not_below(v.ids, left)


ANALYSES: dict[str, Callable[..., Result]] = {
    "core": core,
    "truss": truss,
    "triangles": triangles,
    "clustering": clustering,
    "components": components,
    "strong-components": strong_components,
    "pagerank": pagerank,
    "bfs": bfs,
    "shortest-paths": shortest_paths,
    "similar": similar,
    "diversity": diversity,
}

# What each may be asked besides, as the algorithms declare it; vertices by what they go by.
_DIVERSITY = options_of(algorithms.diversity, "model", "k")
OPTIONS: dict[str, dict[str, Option]] = {
    **{name: {} for name in ANALYSES},
    "pagerank": options_of(algorithms.pagerank, "damping", "tol", "max_iter", "weighted"),
    "bfs": options_of(algorithms.bfs, "source"),
    "shortest-paths": options_of(algorithms.shortest_paths, "source"),
    "similar": options_of(algorithms.similar, "vertex", "unlinked"),
    "diversity": {
        "model": replace(_DIVERSITY["model"], default="truss"),
        "k": replace(_DIVERSITY["k"], default=4),
    },
    "bicliques": {
        **options_of(algorithms.count_bicliques, "p", "q"),
        "left": Option("left", int, None, Limits(), "vertices with ids below this are the left "
                       "side; without it, in each component, the side of the smallest id"),
        **options_of(algorithms.count_bicliques, "method"),
    },
}  # fmt: skip
