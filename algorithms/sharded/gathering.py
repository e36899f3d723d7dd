"""What the shards have, put together on one host."""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import to_host

from .held import Held
from .rows import joined, packed
from .types import Steps
from .views import present_rows


def degrees(held: Held) -> Steps:
    """int64: how many out-edges each owned row has."""
    indptr, own = held.part.indptr, held.owned
    yield held.nothing(), None
    return to_host(indptr[own + np.uint32(1)] - indptr[own])


def present(held: Held) -> Steps:
    """bool: which owned rows are vertices."""
    found = yield from present_rows(held)
    return to_host(found[held.owned])


def rows(held: Held) -> Steps:
    """(rows, lengths, indices, weights or None, times or None, added): the rows with entries."""
    yield held.nothing(), None
    part = held.part
    some = held.rows_where(part.indptr[1:] > part.indptr[:-1])
    columns = {"indices": part.indices, "weights": part.weights, "times": part.times}
    there = [name for name, column in columns.items() if column is not None]
    lengths, *taken = packed(
        part.indptr, some, [column for column in columns.values() if column is not None]
    )
    found = dict(zip(there, map(to_host, taken), strict=True))
    return (
        to_host(some), to_host(lengths), found["indices"], found.get("weights"),
        found.get("times"), to_host(part.added),
    )  # fmt: skip


def whole_of(parts: list[Any], n: int) -> tuple[Any, ...]:
    """(indptr, indices, weights, times, added) of the whole graph of n rows, from what `rows` found
    at all shards. Weights and times are None if the parts' are."""
    there = [i for i in (2, 3, 4) if parts[0][i] is not None]
    packed_rows = [(part[0], part[1], *(part[i] for i in there)) for part in parts]
    indptr, *columns = joined(n, parts[0][0], packed_rows, len(there))
    found = dict(zip(there, columns, strict=True))
    added = np.sort(np.concatenate([part[5] for part in parts]))
    return indptr, found[2], found.get(3), found.get(4), added
