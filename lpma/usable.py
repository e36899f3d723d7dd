"""A batch on its way into the stores: brought to where they read it, checked, and which way it
goes.

What the backend checks while it locates a batch is not checked here. It locates before it writes,
so bad input changes nothing either way; a mixed batch whose queries come first is applied
afterwards, and what they answered is lost with it.
"""

from __future__ import annotations

from dataclasses import replace

from .batch import Columns, Kind
from .stores import Stores


def usable(stores: Stores, columns: Columns, in_parallel: bool) -> Columns:
    """These columns where the stores can read them; checked here, unless locating does that.
    Raises BatchError."""
    columns = columns.moved(stores.place.near)
    if stores.out.backend.validates and (
        columns.edges_only or (in_parallel and stays_beside(stores, columns))
    ):
        return columns
    given = columns.kind, columns.src, columns.dst, columns.weight, columns.time
    valid = Columns.validated(*given)
    kept = valid.kind, valid.src, valid.dst, valid.weight, valid.time
    as_given = all(a is b for a, b in zip(given, kept, strict=True))
    return replace(valid, block=columns.block) if as_given else valid


def stays_beside(stores: Stores, columns: Columns) -> bool:
    """Whether queries are answered while the batch lies beside the stores. Then it has updates, and
    kinds that are known."""
    if not (hasattr(stores.out.backend, "sort_beside") and columns.names_its_keys):
        return False
    kinds = columns.kind[columns.queries]
    if not 0 < len(kinds) < len(columns) or int(kinds.max()) > Kind.VERTEX:
        return False
    scans = stores.directed and stores.into is None and bool((kinds == Kind.VERTEX).any())
    return not scans and (columns.checked or not bool((kinds == Kind.HOPS).any()))
