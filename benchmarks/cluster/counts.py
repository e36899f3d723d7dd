"""What programs over shards exchange: supersteps and bytes, by formulas that follow the code.

A *pair* is a row and a shard other than its owner whose entries name the row; its value travels to
that shard whenever shards exchange. All formulas come down to pairs. Rows are spread by a hash, so
a row of degree d is named at each other of S shards with probability 1 − (1 − 1/S)^d: a profile of
the degrees, which one shard can tell, predicts the pairs of any number of shards (`expected`).

Assumptions, of counts:
1. The graph is undirected, without loops or repeats, and nothing was derived from it before. (Views
   are kept: a second run saves what stands for them here. A directed graph without in-edges turns
   its rows once: 4 bytes for each entry whose ends have different owners, 8 a pair.)
2. Owners are independent and even: hashed ids. A program whose vertices are all of one owner has no
   pairs, and one shard that does all the work.
3. BFS reaches all; some shard meets another's row last where its owner has had it long since.
4. Components: the entries of each shard join nearly all rows that they name, so one round of
   hooking sends every pair once, and relabelling asks for each. What is left is a few bytes, in
   four more supersteps each time that the shards are doubled.
5. Core numbers: supersteps, and bytes a pair, grow with the logarithm of the shards. How much is
   measured with two shards: no shard can know it alone. With very many it is less than that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from algorithms.sharded import Part
from lpma.arrays import to_host

from ..keys import Array

ID, LENGTH, LABEL, ESTIMATE, DEGREE, SHARE = 4, 4, 4, 4, 8, 8  # bytes each, in messages


class Profile(NamedTuple):
    """The vertices of a simple undirected graph by their degrees. Arrays of one length, an entry
    for each kind of vertex. `lower` neighbours have a lower rank
    (`algorithms.sharded.programs.oriented`)."""

    degree: Array  # int64
    lower: Array  # int64, of these
    vertices: Array  # float64: how many are of this kind

    @property
    def entries(self) -> float:
        return float((self.degree * self.vertices).sum())

    def times(self, factor: float) -> Profile:
        """The same degrees, of `factor` times as many vertices."""
        return self._replace(vertices=self.vertices * factor)


@dataclass(frozen=True)
class Shape:
    """What shards need of each other's rows, all shards together.

    pairs    of the simple view
    upper    pairs of the upper rows: an entry of an own row names the other's row as of higher rank
    shipped  entries of the upper rows of these"""

    shards: int
    pairs: float
    upper: float
    shipped: float


class Counts(NamedTuple):
    """supersteps: `LocalWorkers.steps`. sent: bytes from one shard to another, of all shards."""

    supersteps: int
    sent: float


def profile_of(part: Part) -> Profile:
    """The profile of a graph in one part (assumption 1)."""
    indptr, indices = to_host(part.indptr), to_host(part.indices)
    degree = np.diff(indptr)
    row = np.repeat(np.arange(len(degree), dtype=np.uint32), degree)
    of, to = degree[row], degree[indices]
    is_lower = (to < of) | ((to == of) & (indices > row))
    lower = np.bincount(row[is_lower], minlength=len(degree))
    kinds, vertices = np.unique(degree << 32 | lower, return_counts=True)
    return Profile(kinds >> 32, kinds & 0xFFFFFFFF, vertices.astype(np.float64))


def expected(profile: Profile, shards: int) -> Shape:
    """The shape that the profile lets expect (assumption 2)."""
    others, stays_away = shards - 1, 1 - 1 / shards
    of_degree = others * (1 - stays_away**profile.degree) * profile.vertices
    of_lower = others * (1 - stays_away**profile.lower) * profile.vertices
    shipped = of_lower * (profile.degree - profile.lower)
    return Shape(shards, float(of_degree.sum()), float(of_lower.sum()), float(shipped.sum()))


def degrees(shape: Shape) -> Counts:
    """Agree on what is kept; the values; the end."""
    return Counts(3, 0)


def pagerank(shape: Shape, rounds: int) -> Counts:
    """Agree, the weights' problems, the border, the vertices; shares once more than rounds; the
    end."""
    return Counts(rounds + 6, ID * shape.pairs + SHARE * shape.pairs * (rounds + 1))


def bfs(shape: Shape, eccentricity: int) -> Counts:
    """Agree, whether the source is there; a superstep a level, and two more, of which the last but
    one has only what is new to a shard (assumption 3); the end. `eccentricity`: of the source."""
    return Counts(eccentricity + (5 if shape.shards > 1 else 4), ID * shape.pairs)


def components(shape: Shape) -> Counts:
    """Agree; hook 1, jump 3, relabel 2; nothing to hook, jump 3; the end; more with more shards
    (assumption 4)."""
    more = round(4 * math.log2(max(shape.shards, 2) / 2))
    return Counts(12 + more, (2 * LABEL + ID + LABEL) * shape.pairs)


def triangles(shape: Shape) -> Counts:
    """Agree, the border, degrees; the border of the upper rows, the rows; problems; the end."""
    around = (ID + DEGREE) * shape.pairs
    return Counts(7, around + (ID + LENGTH) * shape.upper + ID * shape.shipped)


def cores(shape: Shape, refining: Refining) -> Counts:
    """Agree, the border, degrees; what changed, until nothing does; the end."""
    around = (ID + DEGREE) * shape.pairs
    return Counts(
        4 + refining.supersteps_of(shape.shards),
        around + refining.sent_of(shape.shards) * shape.pairs,
    )


@dataclass(frozen=True)
class Refining:
    """What refining core numbers took with two shards (assumption 5): supersteps, bytes a pair, and
    how often it passed over the entries, one shard passing over them once."""

    supersteps: int
    sent: float
    passes: float = 1.0

    @classmethod
    def of_two(cls, counted: Counts, shape: Shape) -> Refining:
        """From what a run with two shards counted."""
        around = cores(shape, cls(0, 0.0))
        return cls(counted.supersteps - 4, (counted.sent - around.sent) / max(shape.pairs, 1))

    def supersteps_of(self, shards: int) -> int:
        return 2 if shards == 1 else round(self.supersteps * _growth(shards))

    def sent_of(self, shards: int) -> float:
        return 0.0 if shards == 1 else self.sent * _growth(shards)

    def passes_of(self, shards: int) -> float:
        return 1.0 if shards == 1 else self.passes * _growth(shards)


def _growth(shards: int) -> float:
    return (1 + math.log2(shards)) / 2
