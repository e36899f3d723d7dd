"""Checks of arguments: a wrong one is refused with a reason before any work is done."""

from __future__ import annotations

from typing import Any

from lpma.arguments import is_whole
from lpma.errors import BatchError

MOST = 1 << 62  # bytes or bicliques; larger limits mean the same, and no int64 overflows


def sizes(p: Any, q: Any) -> tuple[int, int]:
    """p and q as Python's integers. Raises BatchError unless both are whole numbers from 1 on."""
    if not (_is_whole(p, 1) and _is_whole(q, 1)):
        raise BatchError(f"({p}, {q})-bicliques: p and q are whole numbers from 1 on")
    return int(p), int(q)


def memory(limit: Any) -> int | None:
    """A limit of bytes, or None for no limit. Raises BatchError on anything else."""
    if limit is None:
        return None
    if not _is_whole(limit, 1):
        raise BatchError(
            f"memory_limit={limit!r}: give bytes, a whole number from 1 on, or None for no limit"
        )
    return min(int(limit), MOST)


def number(limit: Any) -> int | None:
    """A limit of bicliques, or None for no limit. Raises BatchError on anything else."""
    if limit is None:
        return None
    if not _is_whole(limit, 0):
        raise BatchError(f"limit={limit!r} bicliques: give a whole number from 0 on, or None")
    return min(int(limit), MOST)


def _is_whole(value: Any, least: int) -> bool:
    return is_whole(value) and bool(value >= least)
