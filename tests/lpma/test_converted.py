"""Arguments that there is no memory to convert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lpma
from lpma import Batch, OutOfMemory


class TooLarge:
    """Has no room as an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise MemoryError("of no room")


CALLS: list[Callable[[Any, Any], Any]] = [
    lambda g, x: g.insert(x, [1]), lambda g, x: g.insert([1], x),
    lambda g, x: g.insert([1], [2], weight=x), lambda g, x: g.insert([1], [2], time=x),
    lambda g, x: g.delete(x, 1), lambda g, x: g.add_vertices(x),
    lambda g, x: g.remove_vertices(x), lambda g, x: g.degree(x), lambda g, x: g.edges(x, 1),
    lambda g, x: g.successors(x), lambda g, x: g.has_vertices(x), lambda g, x: g.hops(x, 2),
    lambda g, x: g.apply(Batch.from_columns(0, [1], x, names=g.names is not None)),
]  # fmt: skip


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("number", range(len(CALLS)))
def test_what_has_no_room_changes_nothing(device: str, number: int, names: bool) -> None:
    g = lpma.Graph(device=device, names=names)
    g.insert(5, 6)
    with pytest.raises(OutOfMemory, match=r"cannot be converted \(of no room\): give less"):
        CALLS[number](g, TooLarge())
    assert (g.version, g.num_edges) == (1, 1)


def test_one_time_for_many_rows(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    u = np.arange(1 << 15, dtype=np.uint32)
    g = lpma.Graph(device=device)

    def full(n: int, *rest: Any, **named: Any) -> Any:
        raise MemoryError(f"for {n} rows")

    with monkeypatch.context() as patched:
        patched.setattr(np, "full", full)
        for given in ({"time": 5}, {"weight": 0.5}):
            with pytest.raises(OutOfMemory, match="for 32768 rows"):
                g.insert(u, u, **given)
    assert g.version == 0
