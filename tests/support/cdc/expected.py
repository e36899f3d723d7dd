"""Which edges a graph must hold when a table does, one row after another.

A row is an edge where both ends are there and its amount is above 0; an amount that is NULL is 1.
Where rows share their ends, `on_repeat` says what the edge is: "sum", the sum of their amounts,
where that is above 0, gone with the last of them; or "last", what the last change of any of them
left.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import networkx as nx

from .database import Change, Row, Rows, Table, apply

Ends = tuple[Any, Any]
Weights = dict[Ends, float]
OnRepeat = Literal["sum", "last"]


def ends_of(row: Row | None, table: Table) -> Ends | None:
    """None: the row is no edge, whatever its amount."""
    if row is None or None in (row[table.source], row[table.target]):
        return None
    return row[table.source], row[table.target]


def amount_of(row: Row, table: Table) -> float:
    amount = row[table.amount]
    return 1.0 if amount is None else float(amount)


def summed(rows: Rows, table: Table) -> Weights:
    """Weights by ends, whichever changes led to these rows."""
    return {ends: weight for ends, weight in sums_of(rows, table).items() if weight > 0}


def sums_of(rows: Rows, table: Table) -> Weights:
    """The same with what is no edge, since it is 0 or less."""
    found: Weights = {}
    for row in rows.values():
        ends, amount = ends_of(row, table), amount_of(row, table)
        if ends is not None:
            found[ends] = found.get(ends, 0.0) + amount
    return found


def after_each(
    changes: Iterable[Change], table: Table, on_repeat: OnRepeat | None
) -> list[tuple[Rows, Weights]]:
    """The table, and weights by ends, after each change."""
    rows: Rows = {}
    decided: Weights = {}
    found = []
    for change in changes:
        rows = apply(rows, change, table)
        if on_repeat == "last":
            decided = _decided(decided, change, table)
            found.append((rows, decided))
        else:
            found.append((rows, summed(rows, table)))
    return found


def _decided(decided: Weights, change: Change, table: Table) -> Weights:
    if change.op == "t":
        return {}
    left = dict(decided)
    for row in (change.before, change.after):
        if (ends := ends_of(row, table)) is not None:
            left.pop(ends, None)
    ends = ends_of(change.after, table)
    if change.after is not None and ends is not None:
        amount = amount_of(change.after, table)
        if amount > 0:
            left[ends] = amount
    return left


def figures(weights: Weights) -> dict[str, int]:
    """What trackers must say, by NetworkX."""
    graph = nx.Graph([ends for ends in weights if ends[0] != ends[1]])
    components = [part for part in nx.connected_components(graph) if len(part) > 1]
    return {
        "core": max(nx.core_number(graph).values(), default=0),
        "triangles": sum(nx.triangles(graph).values()) // 3,
        "components": len(components),
    }
