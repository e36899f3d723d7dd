"""How far a reader walks who follows one insert: few files, and few steps back.

The bounds are what the code has reached. A change that raises them has put a step somewhere that a
reader must take: look at the walk that the failure prints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lpma
from tests.support.walk import Walk, walk

FILES, RETURNS = 17, 14


def test_the_walk_of_a_call() -> None:
    found = Walk(["a", "b", "a", "c", "b"])
    assert (found.files, found.returns) == (["a", "b", "c"], 2)
    there = walk(lpma.Graph(device="cpu").check)
    assert there.files[:2] == ["lpma/graph.py", "lpma/guard.py"]
    assert "lpma/check.py" in there.files


@pytest.mark.parametrize(
    "given",
    [
        (1, 2),
        (1, 2, 0.5, 7),
        ([1, 2], [2, 3]),
        (np.arange(1000), np.arange(1000)),
        (np.arange(1000, dtype=np.uint32), np.arange(1000, dtype=np.uint32)),
        (np.arange(1000), 3, np.ones(1000), np.arange(1000)),
    ],
    ids=["scalars", "weight and time", "lists", "integers", "ids", "columns"],
)
def test_the_walk_of_an_insert(given: tuple[Any, ...]) -> None:
    g = lpma.Graph(device="cpu")
    g.insert(np.arange(5000), np.arange(5000))
    found = walk(lambda: g.insert(*given))
    door = found.steps[: found.steps.index("lpma/guard.py")]
    converting = ["lpma/graph.py", "lpma/converted.py", "lpma/batch.py"]
    coercing = ["lpma/coerce.py", "lpma/cpu/column_kernels.py"]
    assert door in (
        ["lpma/graph.py", "lpma/one.py"],  # plain numbers
        [*converting, "lpma/coerce.py", "lpma/batch.py", "lpma/graph.py"],
        [*converting, *coercing, "lpma/batch.py", "lpma/graph.py"],  # ids
    ), f"each argument is looked at once, before the lock: {found}"
    assert len(found.files) <= FILES, found
    assert found.returns <= RETURNS, found
