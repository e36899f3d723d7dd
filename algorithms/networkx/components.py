"""NetworkX's connected, weakly connected and strongly connected components.

Components come in NetworkX's order, by the first node of each; strong ones each after those that
its edges lead to, as by Tarjan's algorithm. On a device components are found there and ordered on
the host. Labels are kept with the converted graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import algorithms
from lpma.arrays import to_host

from ..arrays import Array
from ..strong_components import components
from .converted import ConvertedGraph, networkx


def connected_components(G: ConvertedGraph) -> Iterator[set[Any]]:
    return _groups(G, labels(G))


def number_connected_components(G: ConvertedGraph) -> int:
    return int(np.count_nonzero(labels(G) == np.arange(len(G))))


def is_connected(G: ConvertedGraph) -> bool:
    _refuse_empty(G)
    return number_connected_components(G) == 1


def node_connected_component(G: ConvertedGraph, n: Any) -> set[Any]:
    found = labels(G)
    return set(G.named(np.flatnonzero(found == found[G.number[n]])))


# Weak components are those of the graph without directions.
weakly_connected_components = connected_components
number_weakly_connected_components = number_connected_components
is_weakly_connected = is_connected


def strongly_connected_components(G: ConvertedGraph) -> Iterator[set[Any]]:
    return _groups(G, _strong(G)[0])


def number_strongly_connected_components(G: ConvertedGraph) -> int:
    return _strong(G)[1]


def is_strongly_connected(G: ConvertedGraph) -> bool:
    _refuse_empty(G)
    return number_strongly_connected_components(G) == 1


def labels(G: ConvertedGraph) -> Array:
    """int32[n], on the host: the first row of each row's component."""
    made: Array = G.kept("components", lambda: to_host(algorithms.connected_components(G.snapshot)))
    return made


def _strong(G: ConvertedGraph) -> tuple[Array, int]:
    """Each row's strong component, numbered as they are completed, and how many there are."""
    view = G.structure.rows  # in NetworkX's order, which Tarjan's algorithm follows
    return G.kept(
        "strong components",
        lambda: components(G.snapshot if G.is_on_device else (view.indptr, view.indices)),
    )


def _groups(G: ConvertedGraph, found: Array) -> Iterator[set[Any]]:
    """The nodes with each label, in the order of the labels."""
    by_label = np.argsort(found, kind="stable")
    ends = np.flatnonzero(np.diff(found[by_label])) + 1
    for rows in np.split(by_label, ends) if len(found) else []:
        yield set(G.named(rows))


def _refuse_empty(G: ConvertedGraph) -> None:
    if len(G) == 0:
        raise networkx().NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
