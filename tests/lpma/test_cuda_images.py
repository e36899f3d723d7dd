"""Images of a graph on a device: copied between two batches, whatever the streams have under way.

What an image is, on every device, is in test_image.py; here is what only a device can get wrong:
copies that are not there yet, memory that is used again, page-locked memory that is not granted.
"""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lpma
from lpma import OutOfMemory
from tests.lpma.test_cuda_streams import BATCHES, Failing, stream_of
from tests.support.oracles import agree, assert_same, host
from tests.support.strategies import Config

pytestmark = pytest.mark.gpu

CONFIGS = [
    Config(predecessors=True),
    Config(weight_dtype=None, times=False, directed=False),
    Config(weight_dtype="float64", times=False),
    Config(weight_dtype=None),
]


def named(config: Config) -> str:
    return f"{config.weight_dtype}-{'times' if config.times else 'no times'}"


def saved(graph: Any, path: Path) -> bytes:
    graph.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("config", CONFIGS, ids=named)
def test_files_are_the_same_from_both_devices(cupy: Any, config: Config, tmp_path: Path) -> None:
    """Byte for byte after every batch, from an image that reuses the memory of the last; and what
    one device wrote the other reads and goes on from."""
    there, here = config.graph("cuda"), config.graph("cpu")
    path = tmp_path / "graph"
    image = there.image()
    for turn, columns in enumerate(stream_of(config, 50 + CONFIGS.index(config))):
        for graph in (there, here):
            graph.apply(columns)
        image = there.image(image)
        assert saved(image, path) == saved(here, path), f"batch {turn}"
        if turn == BATCHES // 2:
            there.save(tmp_path / "there")
            here.save(tmp_path / "here")
            there = lpma.Graph.load(tmp_path / "here", "cuda")
            here = lpma.Graph.load(tmp_path / "there", "cpu")
    there.check()
    assert_same(there.snapshot(), here.snapshot())


@pytest.mark.parametrize("config", CONFIGS, ids=named)
def test_an_image_of_nothing(cupy: Any, config: Config, tmp_path: Path) -> None:
    there, here = config.graph("cuda"), config.graph("cpu")
    assert there.image().nbytes == 0
    assert saved(there.image(), tmp_path / "there") == saved(here, tmp_path / "here")
    for graph in (there, here):
        graph.insert([1, 2], [2, 3], time=1)
        graph.delete([1, 2], [2, 3], time=2)
    assert saved(there.image(there.image()), tmp_path / "there") == saved(here, tmp_path / "here")
    loaded = lpma.Graph.load(tmp_path / "here", "cuda")
    loaded.insert(5, 6)
    loaded.check()


def test_images_are_written_while_batches_go_on(cupy: Any, tmp_path: Path) -> None:
    """Each batch comes on another stream, from the device or from the host, and each image goes to
    a thread that writes it, with the next batches, snapshots and queries under way."""
    config = Config(predecessors=True, global_merge="never")
    g, here = config.graph("cuda"), config.graph("cpu")
    rng = np.random.default_rng(1)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(3)]
    images: list[Any] = [None, None]
    written: list[Any] = [None, None]
    with ThreadPoolExecutor(2) as pool:
        for turn in range(24):
            src, dst = rng.integers(0, 5000, (2, 30_000))
            with streams[turn % 3]:
                given = (cupy.asarray(src), cupy.asarray(dst)) if turn % 2 else (src, dst)
                g.insert(*given, 0.25, turn)
                if written[turn % 2] is not None:
                    path, expected = written[turn % 2].result()
                    assert path.read_bytes() == expected
                images[turn % 2] = g.image(images[turn % 2])
                g.insert(*(given[::-1]), 0.5, turn)  # at once, over what was copied
                g.successors([1, 2, 3])
                g.snapshot()
            here.insert(src, dst, 0.25, turn)
            expected = saved(here, tmp_path / "here")
            here.insert(dst, src, 0.5, turn)
            path = tmp_path / f"image{turn}"
            written[turn % 2] = pool.submit(_written, images[turn % 2], path, expected)
    for future in written:
        path, expected = future.result()
        assert path.read_bytes() == expected
    assert_same(g.snapshot(), here.snapshot())


def _written(image: Any, path: Path, expected: bytes) -> tuple[Path, bytes]:
    image.save(path)
    return path, expected


def test_copied_slots_are_the_slots(cupy: Any) -> None:
    """Into pageable memory too, and into the host's columns one by one."""
    config = Config(segment_size=4)
    g = config.graph("cuda")
    rng = np.random.default_rng(2)
    for _ in range(3):
        src, dst = rng.integers(0, 2000, (2, 20_000))
        g.insert(src, dst, 0.25, 7)
        store = g._stores.out
        n = store.num_slots
        expected = [host(column) for column in store.backend.slots(store.segments)]
        keys, weights, times = np.zeros(n, np.uint64), np.zeros(n, np.float32), np.zeros(n, int)
        with cupy.cuda.Stream(non_blocking=True):
            store.backend.copy_slots(store.segments, keys, weights, times)
        assert_same([keys, weights, times], expected)
        keys = np.zeros(n, np.uint64)
        store.backend.copy_slots(store.segments, keys, None, None)
        assert_same(keys, expected[0])


def test_memory_that_is_not_page_locked_does_too(
    cupy: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(size: int) -> None:
        raise cupy.cuda.runtime.CUDARuntimeError(2)

    g = lpma.Graph(device="cuda")
    g.insert(range(1000), 1, time=3)
    expected = saved(g, tmp_path / "locked")
    monkeypatch.setattr(cupy.cuda, "PinnedMemory", refuse)
    assert saved(g.image(), tmp_path / "pageable") == expected


def test_memory_that_was_outgrown_is_given_back(cupy: Any) -> None:
    """An image outlives its graph; what none uses any more is no longer locked."""
    pool = cupy.get_default_pinned_memory_pool()
    g = lpma.Graph(device="cuda")
    image = None
    src, kept = np.arange(200_000), []
    for turn in range(8):
        g.insert(src, src + turn, time=0)
        image = g.image(image)
        if turn == 3:
            g.degree([1])
            gc.collect()
            kept.append(pool.n_free_blocks())
    gc.collect()
    assert pool.n_free_blocks() <= kept[0] + 2, "images come not from the pool"
    assert image is not None
    del g
    gc.collect()
    assert image.nbytes == 20 * 8 * 200_000


def test_an_image_that_finds_no_room_on_the_device(cupy: Any, tmp_path: Path) -> None:
    """Every allocation fails in turn: a typed error, the graph as it was, and a next try works."""
    config = Config(predecessors=True)
    g, model = config.graph("cuda"), config.model()
    rng = np.random.default_rng(4)
    src, dst = rng.integers(0, 300, (2, 2000))
    for graph in (g, model):
        graph.insert(src, dst, 0.25, 7)
    expected = saved(g, tmp_path / "first")
    image, n = g.image(), 0
    while True:
        n += 1
        with Failing(cupy, n) as failing:
            try:
                image = g.image(image)
            except OutOfMemory:
                assert image.nbytes == 0, "its memory was given away"
                continue
        if failing.calls < n:
            break
    assert n == 4, "one allocation a column"
    assert saved(image, tmp_path / "image") == expected
    agree(g, model)


def test_an_image_takes_a_columns_room_on_the_device(cupy: Any) -> None:
    pool = cupy.get_default_memory_pool()
    g = lpma.Graph(device="cuda", global_merge="never")
    src, dst = np.random.default_rng(5).integers(0, 1 << 16, (2, 1 << 20))
    g.insert(src, dst, time=1)
    image = g.image()
    g.image(image)
    cupy.cuda.runtime.deviceSynchronize()
    pool.free_all_blocks()
    before = pool.total_bytes()
    g.image()
    room = pool.total_bytes() - before
    assert room <= 8 * g.num_edges + (1 << 20)
