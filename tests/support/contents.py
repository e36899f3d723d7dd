"""What a graph holds, by what its vertices are called."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma import Snapshot


def called(s: Snapshot) -> list[Any]:
    """What the vertex of each row is called: its name, or its number."""
    rows = range(s.num_rows)
    return list(rows) if s.names is None else s.names.of(rows).tolist()


def edges_of(
    s: Snapshot, weight: float | None = 1.0, time: int | None = 0
) -> dict[tuple[Any, Any], tuple[Any, Any]]:
    """(u, v) → (weight, time). weight, time: what an edge has where the snapshot has none."""
    arrays, names = s.to_numpy(), called(s)
    src = np.repeat(np.arange(s.num_rows), np.diff(arrays["indptr"])).tolist()
    weights, times = (
        arrays[name].tolist() if name in arrays else [lacking] * len(src)
        for name, lacking in (("weights", weight), ("times", time))
    )
    rows = zip(src, arrays["indices"].tolist(), weights, times, strict=True)
    return {(names[u], names[v]): (w, t) for u, v, w, t in rows}


def check_counts(s: Snapshot, pairs: npt.NDArray[np.int64], vertices: int) -> None:
    """That each edge weighs as often as it is among `pairs`, int64[2, n] of numbers below
    `vertices`, and that no other is there: by sorting. With names, a number's is "v" and it."""
    keys, counts = np.unique(pairs[0] * vertices + pairs[1], return_counts=True)
    assert s.weights is not None
    number = np.arange(s.num_rows)
    if s.names is not None:
        number = np.array([int(name[1:]) for name in called(s)])
    made = np.repeat(number, np.diff(s.indptr)) * vertices + number[s.indices]
    order = np.argsort(made)
    assert np.array_equal(made[order], keys)
    assert np.array_equal(s.weights[order], counts)
