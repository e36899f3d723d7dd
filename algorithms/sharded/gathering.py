"""What a shard has, for whoever gathers it on one host."""

from __future__ import annotations

import numpy as np

from lpma.arrays import to_host

from .held import Held
from .rows import packed
from .types import Steps


def degrees(held: Held) -> Steps:
    """int64: how many out-edges each owned row has."""
    indptr, own = held.part.indptr, held.owned
    return to_host(indptr[own + np.uint32(1)] - indptr[own])
    yield  # a program is a generator, and this one has nothing to exchange


def rows(held: Held) -> Steps:
    """(rows, lengths, indices, weights or None, times or None, added): the rows with entries."""
    part = held.part
    some = held.rows_where(part.indptr[1:] > part.indptr[:-1])
    columns = {"indices": part.indices, "weights": part.weights, "times": part.times}
    there = [name for name, column in columns.items() if column is not None]
    lengths, *taken = packed(part.indptr, some, [columns[name] for name in there])
    found = dict(zip(there, map(to_host, taken), strict=True))
    return (
        to_host(some), to_host(lengths), found["indices"], found.get("weights"),
        found.get("times"), to_host(part.added),
    )  # fmt: skip
    yield  # as above
