"""NetworkX's dictionaries as rows: what dominates a call on a graph that was not converted before.

Idea: of a graph of NetworkX's own classes over plain dictionaries, `G._adj` is read row by row in C
alone: a chain of the rows' keys is mapped to numbers by the labels' dictionary into an array. If
all labels are small integers, the keys go into the array, and a table numbers them without hashing.
If they are 0, 1, 2, … in order, they are numbers already.

Any other graph, a view or a subclass, is read by `G[u]`, once, and each edge's attributes are kept
with the rows, since a filter may change later.

Rows are in NetworkX's order, which breadth-first search needs; `Structure.sorted_rows` sorts them
by a counting sort.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress, islice
from typing import Any

import numpy as np

from lpma.arrays import row_numbers
from lpma.interop.readings import disagreement, is_own_class, is_own_storage, redefined

from ..arrays import Array, starts_of
from ..views.simple import View
from ..views.transpose_cpu import move_weights, transpose

NUMBERS = (int, float, np.integer, np.floating, np.bool_)  # what a weight may be
TABLE_PER_LABEL = 16  # entries a label that a table of numbers may take; beyond, they are hashed
CHANGED = "the graph is no longer what was converted: convert it again"
NOT_REVERSED = (
    "the edges that lead to each node are not those that lead from the others: if the graph has "
    "changed since it was converted, convert it again"
)


@dataclass(frozen=True)
class Structure:
    """A graph without its attributes. Row i is the node labels[i]; an undirected edge is in the
    rows of both ends, a loop once; parallel edges are one entry."""

    labels: list[Any]
    rows: View  # int64[n+1] and uint32[m], in the order of NetworkX's dictionaries
    parallel: Array | None  # float64[m]: how many edges an entry stands for; None: one each
    is_directed: bool
    # Each entry's attributes, of parallel edges a list; None: read them from the graph's own
    # dictionaries, where both directions of an edge have the same.
    attributes: list[Any] | None = None
    in_rows: View | None = None  # of the in-edges, in NetworkX's order; None: read them as well

    @cached_property
    def number(self) -> dict[Any, int]:
        """The row of each node."""
        return {label: i for i, label in enumerate(self.labels)}

    @cached_property
    def sorted_rows(self) -> View:
        if not self.is_directed:
            return self.sorted_reversed  # an undirected graph is its own transpose
        turned = self.sorted_reversed
        return View(*transpose(turned.indptr, turned.indices))

    @cached_property
    def sorted_reversed(self) -> View:
        """The rows of the in-edges, sorted."""
        return View(*transpose(self.rows.indptr, self.rows.indices))

    @cached_property
    def first_seen(self) -> Array:
        """bool[m]: which entries NetworkX visits first: of an undirected edge, the one in the row
        of its earlier end."""
        indices = self.rows.indices
        if self.is_directed:
            return np.ones(len(indices), np.bool_)
        first: Array = row_numbers(self.rows.indptr, len(indices)) <= indices
        return first

    def neighbors(self, v: int) -> list[Any]:
        """The nodes that row v leads to."""
        first, last = self.rows.indptr[v : v + 2].tolist()
        return [self.labels[u] for u in self.rows.indices[first:last].tolist()]

    def sort(self, values: Array) -> tuple[View, Array]:
        """The rows sorted, and float64[m], the value of each entry, moved with it."""
        return _turned(*_turned(self.rows, values))

    def sort_both_ways(self, values: Array) -> tuple[View, Array]:
        """The same for an undirected graph, where the entry first seen counts for both ends."""
        turned = _turned(self.rows, values)
        view, own = _turned(*turned)
        is_first = row_numbers(view.indptr, len(view.indices)) <= view.indices
        return view, np.where(is_first, own, turned[1])

    def is_that_of(self, other: Structure) -> bool:
        """Whether the nodes and edges are the same, and in the same order."""
        if self.labels != other.labels or not _are_equal(self.rows, other.rows):
            return False
        if self.parallel is None or other.parallel is None:
            return self.parallel is other.parallel
        return np.array_equal(self.parallel, other.parallel)


def _turned(view: View, values: Array) -> tuple[View, Array]:
    """The transpose, and float64[m], the value of each entry, moved with it."""
    turned = View(*transpose(view.indptr, view.indices))
    return turned, move_weights(view.indices, turned.indptr, values)


@dataclass(frozen=True)
class Weights:
    """What an attribute of edges was when it was read."""

    edges: list[Mapping[Any, Any]]  # their attributes, as NetworkX holds them
    name: str
    default: Any
    values: list[Any] | None  # None: no edge had any attribute

    def have_changed(self) -> bool:
        """Whether the attribute has been set in place, which NetworkX's cache does not see."""
        if self.values is None:
            return any(self.edges)
        try:
            return _of_each(self.edges, self.name, self.default) != self.values
        except Exception:  # noqa: BLE001  a value of any type may refuse to be compared
            return True


def is_plain(graph: Any) -> bool:
    """Whether a graph is of NetworkX's own classes and dictionaries, and can be read directly."""
    return is_own_class(graph) and is_own_storage(graph)


def can_be_kept(graph: Any) -> bool:
    """Whether NetworkX drops a conversion when the graph changes, which it cannot know of a view,
    or a subclass with methods or storage of its own."""
    return not redefined(graph) and is_own_storage(graph)


def structure_of(graph: Any) -> Structure:
    """The structure of a NetworkX graph of any of its four kinds. Raises NotImplementedError if it
    cannot be read, or is inconsistent."""
    if not is_plain(graph):
        return _structure_by_reading(graph)
    labels = list(graph)
    adjacent = [graph._adj[label] for label in labels]
    parallel = None
    if graph.is_multigraph():
        each = map(len, chain.from_iterable(row.values() for row in adjacent))
        parallel = np.fromiter(each, np.float64)
    return Structure(labels, _rows(labels, adjacent), parallel, bool(graph.is_directed()))


def _structure_by_reading(graph: Any) -> Structure:
    kind = type(graph).__name__
    if problem := disagreement(graph):
        raise NotImplementedError(f"this {kind} has no one reading: {problem}")
    try:
        labels = list(graph)
        read = [list(graph[label].items()) for label in labels]
        attributes: list[Any] = [data for row in read for _, data in row]
        parallel = None
        if graph.is_multigraph():
            attributes = [list(data.values()) for data in attributes]
            parallel = np.fromiter(map(len, attributes), np.float64, len(attributes))
        rows = _rows(labels, [[v for v, _ in row] for row in read])
    except Exception as error:  # of a filter or a subclass: anything
        raise NotImplementedError(f"lpma cannot read this {kind}: {error!r}") from error
    structure = Structure(labels, rows, parallel, bool(graph.is_directed()), attributes)
    if structure.is_directed:
        return replace(structure, in_rows=predecessors_of(graph, structure))
    _refuse_lopsided(structure)
    return structure


def _refuse_lopsided(structure: Structure) -> None:
    """Raise NotImplementedError if a filter shows an undirected edge from one end only."""
    counts = structure.parallel
    if counts is None:
        counts = np.ones(len(structure.rows.indices))
    turned, back = _turned(structure.rows, counts)
    view, there = _turned(turned, back)
    if not _are_equal(turned, view) or not np.array_equal(back, there):
        raise NotImplementedError("an edge of this undirected graph is seen from one end only")


def _are_equal(a: View, b: View) -> bool:
    return np.array_equal(a.indptr, b.indptr) and np.array_equal(a.indices, b.indices)


def predecessors_of(graph: Any, structure: Structure) -> View:
    """The rows of a directed graph's in-edges, in the order of NetworkX's dictionaries. Raises
    NotImplementedError if they are not those of the structure."""
    try:
        pred = graph._pred if structure.attributes is None else graph.pred
        view = _rows(structure.labels, [list(pred[label]) for label in structure.labels])
    except Exception as error:
        raise NotImplementedError(f"{NOT_REVERSED} ({error!r})") from error
    turned = View(*transpose(view.indptr, view.indices))
    if not _are_equal(View(*transpose(turned.indptr, turned.indices)), structure.sorted_reversed):
        raise NotImplementedError(NOT_REVERSED)
    return view


def weights_of(
    graph: Any, structure: Structure, name: str, default: Any, by_row: bool
) -> tuple[Weights, Array | None]:
    """An attribute of each edge; and float64[m], its value for each entry of the rows, summed over
    parallel edges, or None if no edge has attributes and 1 is the default. by_row: each entry has
    its row's value; else those first seen have it, and others 0. Raises NotImplementedError unless
    all are finite numbers and not negative."""
    entries = structure.first_seen
    if by_row:
        entries = np.ones(len(entries), np.bool_)
    edges = _attributes(graph, structure, entries)
    if default == 1 and not any(edges):
        return Weights(edges, name, default, None), None
    values = np.zeros(len(entries))
    try:
        each = _of_each(edges, name, default)
        _refuse_but_numbers(set(map(type, each)))
        summed = each
        if structure.parallel is not None:
            remaining, counts = iter(each), structure.parallel[entries].astype(np.int64).tolist()
            summed = [sum(islice(remaining, count)) for count in counts]
        values[entries] = np.fromiter(summed, np.float64, len(summed))
    except (TypeError, OverflowError) as error:
        raise NotImplementedError(f"lpma takes numbers as weights: {error}") from error
    if not bool(np.isfinite(values).all()) or float(values.min(initial=0)) < 0:
        raise NotImplementedError("lpma takes weights that are finite and not negative")
    return Weights(edges, name, default, each), values


def _attributes(graph: Any, structure: Structure, entries: Array) -> list[Mapping[Any, Any]]:
    """The attributes of the edges of these entries, bool[m], parallel edges one by one."""
    data: Iterable[Any]
    if structure.attributes is not None:
        data = structure.attributes
    else:
        data = chain.from_iterable(graph._adj[label].values() for label in structure.labels)
    if not entries.all():
        data = compress(data, entries.tobytes())
    if structure.parallel is None:
        return list(data)
    if structure.attributes is None:
        data = (parallel.values() for parallel in data)
    return list(chain.from_iterable(data))


def _of_each(edges: list[Mapping[Any, Any]], name: str, default: Any) -> list[Any]:
    return [edge.get(name, default) for edge in edges]


def _refuse_but_numbers(kinds: set[type]) -> None:
    """Raise TypeError, as NetworkX's sums do: NumPy would read the string "3" as 3, and a complex
    number of its own as its real part."""
    others = [kind.__name__ for kind in kinds if not issubclass(kind, NUMBERS)]
    if others:
        raise TypeError(f"not {', '.join(sorted(others))}")


def _rows(labels: list[Any], adjacent: list[Any]) -> View:
    """Rows of the targets in each of `adjacent`, sized and iterable. Raises NotImplementedError if
    one is not a label."""
    indptr = starts_of(np.fromiter(map(len, adjacent), np.int64, len(labels)))
    try:
        targets = chain.from_iterable(adjacent)
        return View(indptr, _numbered(labels, targets, int(indptr[-1])))
    except (KeyError, IndexError, OverflowError, TypeError, ValueError) as error:
        raise NotImplementedError(f"an edge leads to what is no node: {error!r}") from error


def _numbered(labels: list[Any], targets: Iterable[Any], m: int) -> Array:
    """uint32[m]: where each target is among the labels. Raises if one is not."""
    n, integers = len(labels), _integers(labels)
    if integers is None:
        number = {label: i for i, label in enumerate(labels)}
        return np.fromiter(map(number.__getitem__, targets), np.uint32, m)
    if np.array_equal(integers, np.arange(n)):
        found = np.fromiter(targets, np.uint32, m)
    else:
        numbers = np.fromiter(targets, np.int64, m)
        if int(numbers.min(initial=0)) < 0:  # NumPy would count from the end
            raise IndexError(int(numbers.min()))
        table = np.full(int(integers.max()) + 1, n, np.uint32)
        table[integers] = np.arange(n, dtype=np.uint32)
        found = table[numbers]
    if m and int(found.max()) >= n:
        raise KeyError("beyond the labels")
    return found


def _integers(labels: list[Any]) -> Array | None:
    """The labels as int64[n], if all are integers from 0 on, and not too sparse for a table."""
    if set(map(type, labels)) != {int} or min(labels) < 0:
        return None
    most = max(labels)
    return None if most > TABLE_PER_LABEL * len(labels) else np.array(labels, np.int64)
