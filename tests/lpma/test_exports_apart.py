"""Whoever changes what an export returned changes no snapshot, neither this one nor a later one,
which on the CPU is made from the same arrays (lpma/snapshot/row_versions.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import algorithms
import lpma
from tests.support.compiled import compile_kernels
from tests.support.oracles import host


def _scipy(s: lpma.Snapshot) -> None:
    matrix = s.to_scipy()
    matrix.data[matrix.data < 3] = 0
    matrix.eliminate_zeros()
    for column in (matrix.indptr, matrix.indices, matrix.data):
        column[:] = 0


def _numpy(s: lpma.Snapshot) -> None:
    for array in s.to_numpy().values():
        if array.flags.writeable:
            array[:] = 0
        else:
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0


def _dlpack(s: lpma.Snapshot) -> None:
    for array in s.to_dlpack().values():
        if isinstance(array, np.ndarray):
            array[:] = 0  # as its taker may


def _arrow(s: lpma.Snapshot) -> None:
    for column in s.to_arrow().columns:
        for chunk in column.chunks:
            memory = chunk.buffers()[1]
            if memory.is_mutable:
                np.frombuffer(memory, np.uint8)[:] = 0


def _pandas(s: lpma.Snapshot) -> None:
    frame = s.to_pandas()
    for name in frame:
        frame.loc[:, name] = 0


def _edge_index(s: lpma.Snapshot) -> None:
    s.to_edge_index()[:] = 0


EXPORTS: list[Callable[[Any], None]] = [_scipy, _numpy, _dlpack, _arrow, _pandas, _edge_index]


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("change", EXPORTS, ids=lambda change: change.__name__[1:])
def test_what_is_exported_may_be_changed(device: str, change: Any, directed: bool) -> None:
    if device == "cpu":
        compile_kernels()
    rng = np.random.default_rng(1)
    g = lpma.Graph(directed, device=device)
    src, dst = rng.integers(0, 300, (2, 1200))
    g.insert(src, dst, rng.integers(1, 5, 1200).astype(np.float32))
    s = g.snapshot()
    before = {name: host(array).copy() for name, array in s.to_numpy().items()}
    change(s)
    for name, array in before.items():
        assert np.array_equal(host(getattr(s, name)), array), name
    g.insert(3, 0)
    later, anew = g.snapshot(), g.copy().snapshot()
    for name in before:
        assert np.array_equal(host(getattr(later, name)), host(getattr(anew, name))), name
    assert algorithms.triangle_count(later) == algorithms.triangle_count(anew)
