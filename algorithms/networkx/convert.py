"""NetworkX's dictionaries as rows: what dominates a call on a graph that was not converted before.

Idea: `G._adj` is read row by row, as it lies, and each target passes through C alone: a chain of
the rows' keys, mapped to numbers by the labels' dictionary, goes into an array. If all labels are
small integers, the keys themselves go into the array, and a table numbers them: no hashing. If they
are 0, 1, 2, … in order, they are numbers already.

Rows are in NetworkX's order, which breadth-first search needs; `Structure.sorted_rows` sorts them
by a counting sort.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ..views.simple import View
from ..views.transpose_cpu import move_weights, transpose

Array = npt.NDArray[Any]

NUMBERS = (int, float, np.integer, np.floating, np.bool_)  # what a weight may be
TABLE_PER_LABEL = 16  # entries a label that a table of numbers may take; beyond, they are hashed


@dataclass(frozen=True)
class Structure:
    """A graph without its attributes. Row i is the node labels[i]; an undirected edge is in the
    rows of both ends, a loop once; parallel edges are one entry."""

    labels: list[Any]
    rows: View  # int64[n+1] and uint32[m], in the order of NetworkX's dictionaries
    parallel: Array | None  # float64[m]: how many edges an entry stands for; None: one each
    is_directed: bool

    @cached_property
    def number(self) -> dict[Any, int]:
        """The row of each node."""
        return {label: i for i, label in enumerate(self.labels)}

    @cached_property
    def sorted_rows(self) -> View:
        return self.sort(None)[0]

    @cached_property
    def sorted_reversed(self) -> View:
        """The rows of the in-edges, sorted."""
        return View(*transpose(self.rows.indptr, self.rows.indices))

    def sort(self, values: Array | None) -> tuple[View, Array | None]:
        """The rows sorted, and float64[m], the value of each entry, moved with it."""
        view = self.rows
        # An undirected graph is its own transpose, which comes out sorted.
        for _ in range(2 if self.is_directed else 1):
            turned = View(*transpose(view.indptr, view.indices))
            if values is not None:
                values = move_weights(view.indices, turned.indptr, values)
            view = turned
        return view, values


def structure_of(graph: Any) -> Structure:
    """The structure of a NetworkX graph of any of its four kinds."""
    labels = list(graph)
    adjacent = [graph._adj[label] for label in labels]
    parallel = None
    if graph.is_multigraph():
        each = map(len, chain.from_iterable(row.values() for row in adjacent))
        parallel = np.fromiter(each, np.float64)
    return Structure(labels, _rows(labels, adjacent), parallel, bool(graph.is_directed()))


def predecessors_of(graph: Any, structure: Structure) -> View:
    """The rows of a directed graph's in-edges, in the order of NetworkX's dictionaries."""
    return _rows(structure.labels, [graph._pred[label] for label in structure.labels])


def weights_of(graph: Any, labels: list[Any], name: str, default: Any) -> Array:
    """float64[m]: an attribute of each entry of the rows, summed over parallel edges. Raises
    NotImplementedError if one is not a number, or negative, or not finite."""
    data = chain.from_iterable(graph._adj[label].values() for label in labels)
    each = (edge.get(name, default) for edge in data)
    if graph.is_multigraph():
        each = (sum(e.get(name, default) for e in parallel.values()) for parallel in data)
    try:
        values = list(each)
        _refuse_but_numbers(set(map(type, values)))
        weights = np.fromiter(values, np.float64, len(values))
    except (TypeError, OverflowError) as error:
        raise NotImplementedError(f"lpma takes numbers as weights: {error}") from error
    if not bool(np.isfinite(weights).all()) or float(weights.min(initial=0)) < 0:
        raise NotImplementedError("lpma takes weights that are finite and not negative")
    return weights


def _refuse_but_numbers(kinds: set[type]) -> None:
    """Raise TypeError, as NetworkX's sums do: NumPy would read the string "3" as 3, and a complex
    number of its own as its real part."""
    others = [kind.__name__ for kind in kinds if not issubclass(kind, NUMBERS)]
    if others:
        raise TypeError(f"not {', '.join(sorted(others))}")


def has_data(graph: Any, labels: list[Any]) -> bool:
    """Whether any edge has an attribute. Where there is none, a glance in C at each is enough."""
    data = chain.from_iterable(graph._adj[label].values() for label in labels)
    if graph.is_multigraph():
        data = chain.from_iterable(parallel.values() for parallel in data)
    return any(data)


def _rows(labels: list[Any], adjacent: list[Mapping[Any, Any]]) -> View:
    indptr = np.zeros(len(labels) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, adjacent), np.int64, len(labels)), out=indptr[1:])
    targets, m = chain.from_iterable(adjacent), int(indptr[-1])
    integers = _integers(labels)
    if integers is None:
        number = {label: i for i, label in enumerate(labels)}
        return View(indptr, np.fromiter(map(number.__getitem__, targets), np.uint32, m))
    if np.array_equal(integers, np.arange(len(labels))):
        return View(indptr, np.fromiter(targets, np.uint32, m))
    table = np.zeros(int(integers.max()) + 1, np.uint32)
    table[integers] = np.arange(len(labels), dtype=np.uint32)
    return View(indptr, table[np.fromiter(targets, np.int64, m)])


def _integers(labels: list[Any]) -> Array | None:
    """The labels as int64[n], if all are integers from 0 on and few enough are left out."""
    if set(map(type, labels)) != {int} or min(labels) < 0:
        return None
    most = max(labels)
    return None if most > TABLE_PER_LABEL * len(labels) else np.array(labels, np.int64)
