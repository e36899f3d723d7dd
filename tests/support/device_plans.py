"""The windows of a store's last plan, wherever it was made."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.oracles import host


def last_windows(store: Any) -> list[tuple[int, int]]:
    """(window, layer) of each window that the last batch's plan names; none after a merge."""
    plan = store.last_plan()
    if plan is None:
        return []
    if hasattr(plan, "window"):
        leaves = (1 << store.segments.m) + plan.touched.rank[plan.alone]
        larger = zip(plan.window.tolist(), plan.layer.tolist(), strict=True)
        return [(leaf, 0) for leaf in leaves.tolist()] + list(larger)
    store.backend.wait()
    m = store.segments.m
    leaves, layers = (
        _column(store, "touched", plan.num_touched),
        _column(store, "layer", plan.num_touched, np.uint8),
    )
    windows = [((1 << m) + int(leaf), 0) for leaf in leaves[layers == 0]]
    for window in _column(store, "window", plan.num_windows):
        windows.append((int(window), m + 1 - int(window).bit_length()))
    return windows


def _column(store: Any, name: str, n: int, dtype: Any = np.uint32) -> Any:
    """The first entries of a column of a device's work buffers."""
    work = store.backend.work
    at = int(work.record[name]) - work._buffer.data.ptr
    return host(work._buffer[at : at + n * np.dtype(dtype).itemsize].view(dtype))
