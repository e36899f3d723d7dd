"""Batches by name: what a caller gives to a graph with names becomes a batch by ids.

Everything about a batch but its names is validated before the first is looked up, inside the
graph's lock, in the order of the rows, src before dst. A name that has no id gets one where its row
inserts or sets an edge or adds a vertex; elsewhere it is the vertex UNKNOWN, which has no edge. A batch
that is refused gives its ids back.

The pipeline looks names up when it buffers them, and applies columns that are `ids_resolved`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from ..arguments.convert import as_array, as_column, time_array, time_column, weight_column
from ..arguments.scalars import raises_out_of_memory
from ..arrays import Array, to_host
from ..errors import BatchError
from ..names import Column, Names, column_of, interleaved
from ..names.column import UNSIGNED
from .columns import (
    BAD_KIND,
    LAST_KIND,
    MAX_HOPS,
    OF_EDGES,
    WEIGHTED,
    Columns,
    Kind,
    edge_rows,
    refuse_untimed,
    weighted_rows,
    with_equal_lengths,
)


@dataclass(eq=False)
class NamedColumns(Columns):
    """A batch whose vertices are named: `src` and `dst` wait for the ids, but for the number of
    steps of HOPS in `dst`. `Batch.from_columns` and `Batch.columns` make it, with names=True."""

    sources: Column | None = None
    targets: Column | None = None  # None: no row has one

    ROWS: ClassVar[tuple[str, ...]] = (*Columns.ROWS, "sources", "targets")

    def _concatenated(self, columns: list[Any]) -> Any:
        first, *others = columns
        if isinstance(first, Column):
            return first.followed_by(others)
        return super()._concatenated(columns)

    def check_names(self) -> None:
        """Raises BatchError if a caller has written to the names."""
        for name, column in (("src", self.sources), ("dst", self.targets)):
            if column is not None:
                column.check(name)

    def by_ids(self, src: Array, dst: Array) -> Columns:
        """This batch with the ids that the graph's dictionary gave."""
        own = {each.name: getattr(self, each.name) for each in fields(Columns)}
        return Columns(**own | {"src": src, "dst": dst, "ids_resolved": True})


@raises_out_of_memory
def named_edges(kind: int, src: Any, dst: Any, weight: Any, time: Any) -> NamedColumns:
    """`Columns.edges` by names. Raises BatchError."""
    sources = column_of(src, "src" if kind in OF_EDGES else "v")
    targets = column_of(dst, "dst") if kind in OF_EDGES else None
    if targets is not None:
        n = len(targets) if sources.is_scalar else len(sources)
        sources, targets = sources.stretched(n), targets.stretched(n)
    kinds = np.full(len(sources), int(kind), np.uint8)
    if type(weight) in (float, int) and weight == 1:
        weight = None
    return _made(kinds, sources, targets, weight, time)


@raises_out_of_memory
def named_columns(kind: Any, src: Any, dst: Any, weight: Any, time: Any) -> NamedColumns:
    """`Columns.validated` by names. Raises BatchError."""
    given = to_host(as_array(kind, "kind"))
    kinds = as_column(given, np.uint8, "kind")
    if int(kinds.max(initial=0)) > LAST_KIND:
        raise BatchError(BAD_KIND)
    sources = column_of(src, "src").spread()
    if not given.ndim:
        kinds = np.full(len(sources), kinds[0], np.uint8)
    return _made(kinds, sources, column_of(dst, "dst"), weight, time)


def _made(
    kinds: Array, sources: Column, targets: Column | None, weight: Any, time: Any
) -> NamedColumns:
    zeros = np.zeros(len(sources), np.uint32)
    steps = zeros if targets is None else _steps(kinds, targets)
    weights = None if weight is None else weight_column(to_host(as_array(weight, "weight")),
                                                        zeros, kinds, WEIGHTED)  # fmt: skip
    times = None if time is None else time_column(to_host(time_array(time)), zeros)
    refuse_untimed(kinds, times)
    valid = with_equal_lengths(kinds, zeros, steps, weights, times)
    return NamedColumns(valid.kind, valid.src, valid.dst, valid.weight, valid.time, valid.checked,
                        sources=sources, targets=targets)  # fmt: skip


def _steps(kinds: Array, targets: Column) -> Array:
    """uint32[n]: the targets of HOPS, which are numbers of steps, and 0 elsewhere."""
    rows = np.flatnonzero(kinds == Kind.HOPS)
    steps = np.zeros(len(targets), np.uint32)
    if rows.size and len(targets) == len(kinds):
        given = targets.take(rows)
        least, most = given.keys.min(), given.keys.max()
        if (given.kinds != UNSIGNED).any() or not 1 <= least <= most <= MAX_HOPS:
            raise BatchError(f"hops: the number of steps goes from 1 to {MAX_HOPS}")
        steps[rows] = given.keys
    return steps


def by_name(columns: Columns) -> NamedColumns:
    """Columns of integers as a caller made them, read as names. Raises BatchError."""
    if isinstance(columns, NamedColumns):
        return columns
    return named_columns(columns.kind, columns.src, columns.dst, columns.weight, columns.time)


def with_ids(names: Names, columns: NamedColumns) -> Columns:
    """The batch with its ids. Raises TooManyNames, and BatchError if columns and names differ."""
    kinds, src, dst, one_kind = columns.kind, columns.sources, columns.targets, columns.one_kind
    assert src is not None
    if not len(src) == len(kinds) == len(kinds if dst is None else dst):
        raise BatchError(f"kind has {len(kinds)} rows, and {len(src)} are named: they must agree")
    targets = columns.dst
    if one_kind in WEIGHTED and dst is not None:
        ids = names.assign(interleaved(src, dst))
        sources, targets = ids[::2].copy(), ids[1::2].copy()
    elif one_kind is not None or dst is None:
        sources = names.assign(src) if one_kind == Kind.ADD_VERTEX else names.look_up(src)
        if dst is not None and one_kind in (Kind.DELETE, Kind.EDGE):
            targets = names.look_up(dst)
    else:
        named = edge_rows(kinds) | (kinds == Kind.EDGE)
        gives = weighted_rows(kinds) | (kinds == Kind.ADD_VERTEX)
        used = np.ones(2 * len(kinds), np.bool_)
        used[1::2] = named
        rows = np.flatnonzero(used)
        ids = np.zeros(2 * len(kinds), np.uint32)
        ids[rows] = names.assign(interleaved(src, dst).take(rows), gives[rows >> 1])
        sources, targets = ids[::2].copy(), np.where(named, ids[1::2], targets)
    return columns.by_ids(sources, targets)
