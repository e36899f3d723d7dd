"""What a version changed, as parts of the edge feed.

Invariants:
1. A run begins with a part that says what the graph is: whoever has a copy of that version, or of a
   later one, can follow the run from there.
2. Parts are a function of two versions of the graph, and of the names that the batches between them
   used; so a replay makes the same ones again.
3. A copy that has applied a version has the names of all ids that the stream has used by then.

**Digest.** Each part says the sum, modulo 2^64, of a hash of every edge and every vertex that was
added by itself, by their ids. It is kept up to date from what changed, and tells a copy of another
graph: that of a version costs one pass over the graph. Weights and times are not in it.

**Names.** Ids are given as records are buffered, so the dictionary is ahead of the graph. A version
brings the names up to the largest id that its batch used to make something.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

import lpma
from lpma import NetChanges
from lpma.batch.columns import Columns, Kind
from lpma.cpu import columns as host_columns
from lpma.pma.keys import HALF, LOW

from ..formats.changes import MAX_CHANGES_ROWS, EdgeChanges, GraphFacts, parts_of
from ..types import Array

if TYPE_CHECKING:
    from lpma.names import Names

PIECE = 1 << 22  # slots looked at together
_MOST = (1 << 64) - 1


def digest_of(keys: Array) -> int:
    """The sum of a hash of each key, uint64[n], modulo 2^64. The hash is that of SplitMix64
    (Steele, Lea and Flood, OOPSLA 2014).

    >>> from ingest.feed.content import digest_of
    >>> digest_of(np.array([], np.uint64)), hex(digest_of(np.array([0], np.uint64)))
    (0, '0xe220a8397b1dcdaf')
    """
    return host_columns.hash_sum(keys)


def digest_of_graph(graph: lpma.Graph) -> int:
    """That of all edges of a graph, and of all vertices added by themselves; a copy is made."""
    slots, found = graph.image().slots, 0
    for start in range(0, slots.total, PIECE):
        keys, _, _ = slots.read(start, min(start + PIECE, slots.total))
        if not graph.directed:
            keys = keys[(keys >> HALF) <= (keys & LOW)]
        found += digest_of(keys)
    return found & _MOST


@dataclass(frozen=True)
class Version:
    """A version of the graph, with what led to it. graph: to be asked at this version alone; None:
    it may be past it."""

    changes: NetChanges
    named: int  # so many ids had been used, or 0
    graph: lpma.Graph | None = None

    @property
    def version(self) -> int:
        return self.changes.version

    @property
    def values(self) -> Version:
        """What the publisher hands on: all of it."""
        return self

    @classmethod
    def of(cls, graph: lpma.Graph) -> Version:
        """The present one, of which nothing is known but what it is."""
        absent = 2**32 - 2
        by_id = graph._by_id()
        while by_id.has_edge(absent, absent):
            absent -= 1
        none = np.empty(0, np.uint32)
        changes = NetChanges(
            none.astype(np.uint8), none, none, None, None, graph.version, graph.time,
            graph.num_edges, absent,
        )  # fmt: skip
        return cls(changes, 0 if graph.names is None else graph.num_rows, graph)


def ids_used(columns: Columns) -> int:
    """1 + the largest id that a row makes an edge or a vertex of, or may; 0 if none does."""
    kind, most = columns.kind, -1
    of_edges = (kind == Kind.INSERT) | (kind == Kind.SET)
    for used, ids in (
        (of_edges | (kind == Kind.ADD_VERTEX), columns.src), (of_edges, columns.dst),
    ):  # fmt: skip
        ids = ids if used.all() else ids[used]
        most = max(most, int(ids.max(initial=0)) if len(ids) else -1)
    return most + 1


class FeedContent:
    """Follows a graph by its changes. names: None if vertices go by ids. rows: of a part at
    most."""

    def __init__(
        self, facts: GraphFacts, names: Names | None, rows: int = MAX_CHANGES_ROWS
    ) -> None:
        self.asked: tuple[tuple[str, ...], tuple[str, ...]] = ((str(facts),), ())
        self._facts = facts
        self._names = names
        self._rows = rows
        self._digest: int | None = None  # of the version that was made last; None: not known
        self._named = 0  # the names of so many ids have left
        self._begins = True  # whether a run begins

    @property
    def memo(self) -> tuple[int, ...]:
        assert self._digest is not None
        return self._digest, self._named

    def resume(self, values: Version, memo: tuple[int, ...]) -> None:
        self._digest, self._named = memo
        self._begins = False

    def begun_by(self, newest: EdgeChanges, values: Version) -> tuple[int, ...] | None:
        """A run that began with an empty graph, and has not gone on, is the run of any empty graph
        that was made alike."""
        changes = values.changes
        here = changes.version, changes.num_edges, changes.time, self._facts
        there = newest.version, newest.edges, newest.updated, newest.graph
        begins = newest.place == (0, 0) and newest.parts == 1 and not newest.digest
        empty = values.graph is not None and not values.graph
        return (0, 0) if begins and empty and here == there else None

    def anew(self) -> Self:
        content = type(self)(self._facts, self._names, self._rows)
        content._digest, content._named = self._digest, self._named
        return content

    def to(self, run: str, version: int, time: int, values: Version) -> list[EdgeChanges]:
        """The parts of a version; of the first of a run one that says what the graph is."""
        changes, begins, first = values.changes, self._begins, self._named
        if self._digest is None:
            assert values.graph is not None, "the first is the graph's own"
            self._digest = digest_of_graph(values.graph)
        else:
            moved = host_columns.hash_moved(changes.change, changes.src, changes.dst)
            self._digest = (self._digest + moved) & _MOST
        self._named, self._begins = max(first, values.named), False
        whole = EdgeChanges(
            run, version, 0, 1, time, self._facts, changes.time, changes.num_edges, self._digest,
            changes.absent,
        )  # fmt: skip
        return [whole] if begins else parts_of(self._filled(whole, changes, first), self._rows)

    def _filled(self, whole: EdgeChanges, changes: NetChanges, first: int) -> EdgeChanges:
        names, src, dst = self._names, changes.src, changes.dst
        if names is not None:
            src, dst = names.of(src), names.of(dst)
            if self._named > first:
                whole = replace(whole, names=names.of(np.arange(first, self._named)), first=first)
        return replace(
            whole, change=changes.change, src=src, dst=dst, weight=changes.weights,
            time=changes.times,
        )  # fmt: skip

    def none(self, run: str, version: int, time: int) -> Any:
        """A run always says how it begins."""
        raise AssertionError("to says it")
