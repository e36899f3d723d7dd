"""Memory that is mapped part by part on a CUDA device: it comes and goes whole, whatever fails."""

from __future__ import annotations

import gc
import importlib
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import lpma
from lpma.pma.layout import PARTS
from tests.support.parts import levels_in_parts

pytestmark = pytest.mark.gpu


@pytest.fixture
def virtual_memory(cupy: Any) -> Any:
    """The module that maps memory, where the device can; nothing is in CuPy's pool."""
    module = importlib.import_module("lpma.backend.cuda.store.virtual_memory")
    if not module.is_supported(0):
        pytest.skip("the device cannot map memory part by part")
    gc.collect()  # what other tests have left
    cupy.get_default_memory_pool().free_all_blocks()
    return module


def test_memory_of_a_level_comes_part_by_part(cupy: Any, virtual_memory: Any) -> None:
    """By the device's own count, with kernels that it loads meanwhile; it goes with the last
    array. Other processes may take memory and free it at any moment: that spoils some attempts."""
    for last in (*[False] * 9, True):
        try:
            comes_part_by_part(cupy, virtual_memory)
        except AssertionError:
            if last:
                raise
        else:
            return


def comes_part_by_part(cupy: Any, virtual_memory: Any) -> None:
    def taken() -> int:
        cupy.get_default_memory_pool().free_all_blocks()
        free, _ = cupy.cuda.runtime.memGetInfo()
        return -int(free)

    n, before = 1 << 22, taken()
    part = n * 8 // PARTS
    column = virtual_memory.level_column(n, np.int64, 1)
    assert part <= taken() - before < part + part // 2
    for parts in (2, 3, 4):
        column[: n // PARTS * (parts - 1)] = parts
        virtual_memory.back(column, parts)
        virtual_memory.back(column, parts)
        assert parts * part <= taken() - before < parts * part + part // 2
        assert (column[: n // PARTS * (parts - 1)] == parts).all()
    column[:] = 7
    assert int(column.sum()) == 7 * n
    tail = column[-2:]
    del column
    assert tail.tolist() == [7, 7]
    del tail
    assert taken() - before < part // 2


@pytest.mark.parametrize("function", ["cuMemCreate", "cuMemMap", "cuMemSetAccess"])
def test_a_part_that_fails_leaves_nothing(cupy: Any, virtual_memory: Any, function: str) -> None:
    """The parts before it stay, the next attempt succeeds, and all goes with the array."""
    n, call, held = 1 << 22, virtual_memory._call, {"create": 0, "map": 0}
    ended: list[bool] = []

    def counted(name: str, *arguments: Any) -> None:
        if name == function and failing:
            raise MemoryError(name)
        call(name, *arguments)
        for what, more, less in (
            ("create", "cuMemCreate", "cuMemRelease"), ("map", "cuMemMap", "cuMemUnmap"),
        ):  # fmt: skip
            held[what] += (name == more) - (name == less)
        if name == "cuMemAddressFree":
            ended.append(True)

    with patch.object(virtual_memory, "_call", counted):
        failing = True
        with pytest.raises(MemoryError):
            virtual_memory.level_column(n, np.int64, 1)
        gc.collect()
        assert (held, ended) == ({"create": 0, "map": 0}, [True])
        failing = False
        column = virtual_memory.level_column(n, np.int64, 1)
        failing = True
        with pytest.raises(MemoryError):
            virtual_memory.back(column, 3)
        assert held == {"create": 1 if function == "cuMemCreate" else 2, "map": 1}
        failing = False
        virtual_memory.back(column, 3)
        column[: n // PARTS * 3] = 7
        assert int(column[n // PARTS * 3 - 1]) == 7
        del column
        gc.collect()
        assert (held, ended) == ({"create": 0, "map": 0}, [True, True])


def test_parts_keep_to_the_limit_of_the_pool(cupy: Any, virtual_memory: Any) -> None:
    """The limit is the user's, who cannot know where a level's memory is from."""
    n, pool = 1 << 22, cupy.get_default_memory_pool()
    part = n * 8 // PARTS
    others = virtual_memory.mapped_bytes(0)  # of graphs that are still there
    column = virtual_memory.level_column(n, np.int64, 1)
    try:
        pool.set_limit(size=pool.total_bytes() + others + 3 * part)
        virtual_memory.back(column, 3)
        with pytest.raises(MemoryError, match="limited"):
            virtual_memory.back(column, 4)
        del column
        gc.collect()
        again = virtual_memory.level_column(n, np.int64, 3)
        assert virtual_memory.mapped_bytes(0) - others == again.nbytes // PARTS * 3
    finally:
        pool.set_limit(size=0)


def test_a_random_load_keeps_to_32_bytes_an_edge(virtual_memory: Any) -> None:
    """Above 10^7 edges, at every moment between two batches, buffers and what is taken ahead
    included; through the opening of a level and of a part of it."""
    with levels_in_parts(1 << 21):
        _load_at_random(lpma.Graph(device="cuda"))


def _load_at_random(g: lpma.Graph) -> None:
    rng, batch = np.random.default_rng(5), lpma.pinned_batch(100_000)
    sizes, most = set(), 0.0
    while g.num_edges < 20_000_000:
        batch.src[:], batch.dst[:] = rng.integers(0, 1 << 21, (2, 100_000))
        g.apply(batch)
        if g.num_edges > 10_000_000:
            sizes.add(g._stores.out.segments.size)
            most = max(most, g.nbytes / g.num_edges)
    assert len({size.m for size in sizes}) == 2
    assert len(sizes) > 2
    assert most <= 32
