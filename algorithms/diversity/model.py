"""The models of structural diversity, and the interface of a method.

Source: Huang, Huang, Xu, Choi and Peng, "GPU-accelerated structural diversity search in graphs",
section 2.1. An owner's *score* is the number of *contexts* in its ego network, which does not
include the owner:

component   connected components of at least k vertices (the paper's Algorithm 3)
core        connected components of its k-core: all degrees at least k
truss       connected components of its k-truss: all edges in at least k - 2 triangles of it, and no
            vertex without an edge

Contexts of one owner share no vertex, and each has `fewest_vertices` or more.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from lpma.arrays import array_module

from ..arrays import Array

MODELS = ("component", "core", "truss")
LARGEST_K = int(np.iinfo(np.int32).max) - 2  # k + 1 is a truss number
NONE = -1  # in place of a context's number: a vertex that is in none


class Scorer(Protocol):
    """The ego networks of one graph, or of its `triangles.Listed`, under one model and k, on the
    graph's device: Scorer(s, model, k). Owners may come in any order, with repeats; calls may come
    from any thread, and from `threads` of them at once."""

    threads: int
    at_once: int  # owners of average size that take hardly longer than one

    def scores(self, owners: Array) -> Array:
        """int32[q]: the score of each of `owners`, uint32[q]."""

    def refined(self, owners: Array) -> tuple[Array, Array]:
        """(int32[q], bool[q]): for each of `owners`, uint32[q], an upper bound of its score, and
        whether it is the score; quicker than `scores`, if that takes long."""

    def contexts(self, owners: Array) -> list[list[Array]]:
        """Each owner's contexts as uint32 arrays of ascending vertices, in the order of their
        smallest vertices."""

    def bounds(self) -> Array:
        """int32[n], on the host: no vertex scores more."""

    def costs(self, owners: Array) -> Array:
        """float64[q], on the host, above 0: about what each of `owners` costs, in any unit."""


def fewest_vertices(model: str, k: int) -> int:
    """The least number of vertices of a context. Degree divided by that is the paper's upper bound
    of a vertex's score."""
    return {"component": k, "core": k + 1, "truss": max(k, 2)}[model]


def by_context(
    rows: tuple[Array, Array], label: Array, number: int, fewest: int = 1
) -> list[list[Array]]:
    """For each of `number` owners its contexts of at least `fewest` vertices, as by
    `Scorer.contexts`. rows: of each label the owner's place, rising, and the vertex."""
    xp = array_module(label)
    owner, vertex = (column[label != NONE] for column in rows)
    label = label[label != NONE]
    contexts: list[list[Array]] = [[] for _ in range(number)]
    if len(label) == 0:
        return contexts
    by_vertex = xp.lexsort(xp.stack((vertex, label, owner)))
    owner, label, vertex = owner[by_vertex], label[by_vertex], vertex[by_vertex]
    is_first = xp.ones(len(label), bool)
    is_first[1:] = (label[1:] != label[:-1]) | (owner[1:] != owner[:-1])
    first = xp.flatnonzero(is_first)
    by_smallest = xp.lexsort(xp.stack((vertex[first], owner[first]))).tolist()
    starts, owners = first.tolist(), owner[first].tolist()
    ends = [*starts[1:], len(label)]
    for i in by_smallest:
        if ends[i] - starts[i] >= fewest:
            contexts[owners[i]].append(vertex[starts[i] : ends[i]])
    return contexts
