"""A NetworkX graph as a snapshot, which the functions of this backend take.

NetworkX keeps it with the original (`G.__networkx_cache__`) until that changes, and passes it to
any function that needs no more attributes than it was converted for. So what is derived from it is
kept here, and weights are requested by name: a graph converted for weights serves a call without
them. Conversions of one graph for different attributes share their structure.

NetworkX does not see every change. So a view is converted for each call, since the graph behind it
may change, and weights read before are compared with the graph's, since `G[u][v]["weight"] = 2`
changes them in place. A graph converted by hand stays as it was: nothing is compared.

The original is kept too: subgraphs are cut from it, with its attributes. Whatever reads it later
checks that it is still what was converted (`unchanged_origin`). Iterators never read it.

Graphs are on the device that the environment variable LPMA_DEVICE names, by default "auto".
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from lpma import Snapshot
from lpma.arrays import row_numbers, to_host
from lpma.backend import is_cuda
from lpma.dependencies import optional_import

from ..arrays import Array
from ..views.simple import View
from .convert import (
    CHANGED,
    Structure,
    Weights,
    can_be_kept,
    predecessors_of,
    structure_of,
    weights_of,
)

T = TypeVar("T")

NAME = "lpma"


class ConvertedGraph:
    """A NetworkX graph, and what has been derived from it so far. Row i is the node labels[i]."""

    __networkx_backend__ = NAME

    def __init__(self, origin: Any, structure: Structure) -> None:
        self.origin = origin
        self.structure = structure
        self.labels = structure.labels
        self._device = os.environ.get("LPMA_DEVICE", "auto")
        self._weighted: dict[tuple[str | None, Any, bool], tuple[Weights | None, Snapshot]] = {}
        self._kept: dict[str, Any] = {}

    # What NetworkX's own decorators, and code shared with it, need of a graph.

    def is_directed(self) -> bool:
        return self.structure.is_directed

    def is_multigraph(self) -> bool:
        return bool(self.origin.is_multigraph())

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labels)

    def __contains__(self, node: Any) -> bool:
        try:
            return node in self.number
        except TypeError:  # unhashable
            return False

    @property
    def _adj(self) -> dict[Any, int]:
        """Where NetworkX's `nbunch_iter` looks for nodes."""
        return self.number

    def chosen(self, nodes: Any) -> list[Any]:
        """The nodes among `nodes`, a container or None for all; NetworkX's errors."""
        return self.labels if nodes is None else list(networkx().Graph.nbunch_iter(self, nodes))

    # The graph.

    @property
    def number(self) -> dict[Any, int]:
        """The row of each node."""
        return self.structure.number

    @cached_property
    def snapshot(self) -> Snapshot:
        """The graph without weights, on its device."""
        return self._snapshot(self.structure.sorted_rows, None)

    @cached_property
    def predecessors(self) -> View:
        """The rows of the in-edges in NetworkX's order, on the host."""
        if not self.is_directed():
            return self.structure.rows
        return self.structure.in_rows or predecessors_of(self.origin, self.structure)

    @cached_property
    def reversed_snapshot(self) -> Snapshot:
        """The graph with its edges reversed."""
        if not self.is_directed():
            return self.snapshot
        return self._snapshot(self.structure.sorted_reversed, None)

    def weighted(self, name: str | None, default: Any = 1, *, by_row: bool = False) -> Snapshot:
        """The graph with an attribute as weights, those of parallel edges added; None: each edge
        weighs 1. by_row: an edge's weight is that in the row from which it is followed, which may
        differ in an undirected view of a directed graph; else the one NetworkX visits first. Raises
        NotImplementedError if an attribute cannot be a weight."""
        # Otherwise both ends have the same.
        by_row = by_row and not self.is_directed() and self.structure.attributes is not None
        key = (name, default, by_row)
        weights, snapshot = self._weighted.get(key, (None, None))
        if snapshot is None or (weights and self._is_kept_by_networkx() and weights.have_changed()):
            if name is not None and self.structure.attributes is None:
                self.unchanged_origin()
            snapshot = self.read_weights(name, default, by_row)
        return snapshot

    def read_weights(self, name: str | None, default: Any, by_row: bool) -> Snapshot:
        """As `weighted`, read anew. REQUIRES: the original is what was converted."""
        structure = self.structure
        weights, values = None, None
        if name is not None:
            weights, values = weights_of(self.origin, structure, name, default, by_row)
        if values is not None:
            sort = structure.sort if by_row or self.is_directed() else structure.sort_both_ways
            snapshot = self._snapshot(*sort(values), each_way=by_row)
        elif name is not None:
            snapshot = self.weighted(None)
        elif structure.parallel is not None:
            snapshot = self._snapshot(*structure.sort(structure.parallel))
        else:
            snapshot = self.snapshot
        self._weighted[name, default, by_row] = weights, snapshot
        return snapshot

    def unchanged_origin(self) -> Any:
        """The original. Raises NotImplementedError if it is no longer what was converted, so that
        NetworkX takes over if it chose this backend itself."""
        if not self._is_kept_by_networkx() and not structure_of(self.origin).is_that_of(
            self.structure
        ):
            raise NotImplementedError(CHANGED)
        return self.origin

    def _is_kept_by_networkx(self) -> bool:
        """Whether NetworkX still has this conversion, which it drops when the original changes."""
        return any(one is self for one in cached(self.origin))

    def _snapshot(self, view: View, weights: Array | None, *, each_way: bool = False) -> Snapshot:
        """each_way: an undirected edge's weight depends on the end, as if it were directed."""
        loops = np.count_nonzero(self.loops)  # a row has one entry for all of its loops
        indptr, indices = self._placed(view.indptr), self._placed(view.indices)
        weights = None if weights is None else self._placed(weights)
        m = len(indices)
        directed = self.is_directed() or each_way
        edges = m if directed else (m + int(loops)) // 2
        # Without `added`, every row is a vertex, as every node should be, isolated or not.
        return Snapshot._trusted(indptr, indices, weights, None, edges, 0, 0, directed)

    @property
    def is_on_device(self) -> bool:
        """Whether the snapshots' arrays lie on a device."""
        return is_cuda(self._device)

    def _placed(self, array: Array) -> Array:
        if not self.is_on_device:
            return array
        import cupy

        with cupy.cuda.Device(int(self._device.partition(":")[2] or 0)):
            placed: Array = cupy.asarray(np.ascontiguousarray(array))
        return placed

    # What is derived from it.

    def kept(self, name: str, make: Callable[[], T]) -> T:
        """What `make` returns, made once."""
        if name not in self._kept:
            self._kept[name] = make()
        found: T = self._kept[name]
        return found

    def values(self, name: str, make: Callable[[], Array]) -> list[Any]:
        """An array with a value per row as Python's numbers, made once."""
        found: list[Any] = self.kept(name, lambda: to_host(make()).tolist())
        return found

    def by_label(self, values: list[Any]) -> dict[Any, Any]:
        return dict(zip(self.labels, values, strict=True))

    def named(self, rows: Array) -> list[Any]:
        """The nodes of these rows."""
        return list(map(self.labels.__getitem__, rows.tolist()))

    def require(self, node: Any, message: str) -> int:
        """The row of a node. Raises NodeNotFound with the message if there is none."""
        if node not in self:
            raise networkx().NodeNotFound(message)
        return self.number[node]

    def refuse_loops(self) -> None:
        """Raise NetworkX's error if the graph has a self-loop."""
        if self.loops.any():
            raise networkx().NetworkXNotImplemented(
                "Input graph has self loops which is not permitted; "
                "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
            )

    @cached_property
    def loops(self) -> Array:
        """float64[n]: the loops at each node."""
        view, parallel = self.structure.rows, self.structure.parallel
        at = row_numbers(view.indptr, len(view.indices))
        entry = np.flatnonzero(at == view.indices)
        weights = None if parallel is None else parallel[entry]
        return np.bincount(at[entry], weights, len(self)).astype(np.float64)


def networkx() -> Any:
    return optional_import("networkx", "networkx", "the NetworkX backend")


def is_since(*version: int) -> bool:
    """Whether the installed NetworkX is this version, major and minor, or later."""
    installed = re.findall(r"\d+", networkx().__version__)[:2]
    return tuple(map(int, installed)) >= version


def convert_from_nx(
    graph: Any, *, edge_attrs: dict[str, Any] | None = None, **_: Any
) -> ConvertedGraph:
    """A NetworkX graph for this backend, its nodes numbered in their order.

    edge_attrs: the attribute that will be the weight, with its default. It is read at once, so that
    NotImplementedError is raised at once if it cannot be a weight: see `ConvertedGraph.weighted`.

    >>> import networkx as nx
    >>> from algorithms.networkx import backend
    >>> backend.convert_from_nx(nx.path_graph(3)).snapshot.num_edges
    2
    """
    is_kept = can_be_kept(graph)
    if not is_kept:
        _do_not_keep(graph)
    shared = (one.structure for one in cached(graph)) if is_kept else iter(())
    converted = ConvertedGraph(graph, next(shared, None) or structure_of(graph))
    for name, default in (edge_attrs or {}).items():
        converted.read_weights(name, default, by_row=False)
    return converted


def cached(graph: Any) -> Iterator[ConvertedGraph]:
    """The conversions of a graph that NetworkX keeps; they are dropped when the graph changes."""
    cache = getattr(graph, "__networkx_cache__", None) or {}
    found = list(cache.get("backends", {}).get(NAME, {}).values())
    return (one for one in found if isinstance(one, ConvertedGraph))


def _do_not_keep(graph: Any) -> None:
    """Make NetworkX convert this graph again for the next call: it will put this conversion into
    the dictionary that it has already taken from the cache, and not find that again."""
    cache = getattr(graph, "__networkx_cache__", None)
    if cache:
        cache.get("backends", {}).pop(NAME, None)


def convert_to_nx(result: Any, **_: Any) -> Any:
    """A function's result for NetworkX: the original of a converted graph, or the result itself."""
    return result.origin if isinstance(result, ConvertedGraph) else result
