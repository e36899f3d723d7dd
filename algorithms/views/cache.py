"""Derived data kept with a Snapshot: preparing a view often costs more than the algorithm itself.

A Snapshot never changes, so what is derived from it stays valid. Entries are keyed by name and
device. Nothing is kept for matrices and arrays, which their owner may change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from lpma.snapshot.row_versions import lineage_of
from lpma.snapshot.snapshot import Snapshot

T = TypeVar("T")


def cached(s: Any, name: str, build: Callable[[], T]) -> T:
    """What `build` returns, built once for a Snapshot and each time for anything else."""
    if not isinstance(s, Snapshot):
        return build()
    key = _key(s, name)
    view: T | None = s.views.get(key)
    # Two threads may both build it; setdefault lets them agree on one.
    return view if view is not None else s.views.setdefault(key, build())


def is_cached(s: Any, name: str) -> bool:
    """Whether `cached` would find it built."""
    return isinstance(s, Snapshot) and _key(s, name) in s.views


def cached_last(s: Any, name: str, of: object, build: Callable[[], T]) -> T:
    """As `cached`, for data with a parameter `of`: only that of the last parameter is kept."""
    if not isinstance(s, Snapshot):
        return build()
    key = _key(s, name)
    kept: tuple[object, T] | None = s.views.get(key)
    if kept is None or kept[0] != of:
        kept = s.views[key] = of, build()
    return kept[1]


def _key(s: Snapshot, name: str) -> str:
    # NumPy's arrays have a device too: "cpu". Those of one with a state may not be made yet.
    return f"{name} on {'cpu' if lineage_of(s) is not None else s._indptr.device}"
