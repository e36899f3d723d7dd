"""Launching the kernels that read a store, and preparing their arguments."""

from __future__ import annotations

import struct
from typing import Any

import cupy
import numpy as np

from ....cuda import launch
from ..launch.options import THREADS, source
from ..store.segments import STORE, Segments

Array = Any  # numpy.ndarray or cupy.ndarray

GROUP_SLOTS = 512  # tiles.cuh


def launch_on(
    segments: Segments, stem: str, name: str, threads: int, *args: Any, block: int = THREADS
) -> None:
    launch.run(source(stem), name, threads, *args, block=block, options=segments.options)


class ReadKernel:
    """A kernel for one store, launched on the store's stream. Its arguments, a Store if it reads
    that and then words of 8 bytes, lie in memory that is kept: see lpma.cuda.launch."""

    def __init__(
        self, stem: str, name: str, words: int, stream: Any, reads_store: bool = True
    ) -> None:
        self._file, self._name = source(stem), name
        self._kernel: Any = None  # once it is launched
        self._words = struct.Struct(f"<{words}q")
        block = np.zeros(STORE.itemsize + self._words.size, np.uint8)
        self._bytes = block.data
        offsets = range(STORE.itemsize, len(block), 8)
        self._arguments = launch.Packed(block, [0, *offsets] if reads_store else offsets, stream)
        self._store: Any = None  # the record that is in the block

    def launch(self, segments: Segments, threads: int, *words: int) -> None:
        record = segments.record
        if record is not self._store:
            self._bytes[: STORE.itemsize] = record.view(np.uint8).data
            self._store = record
        self._words.pack_into(self._bytes, STORE.itemsize, *words)
        if self._kernel is None:
            self._kernel = launch.compiled(self._file, self._name, segments.options)
        blocks = launch.blocks_for(threads, THREADS)
        launch.start(self._name, self._kernel, blocks, THREADS, self._arguments)


def address_of(array: Array | None) -> int:
    """Where a column of the device lies; 0 for None."""
    return 0 if array is None else array.data.ptr


def column(values: Any, dtype: Any) -> Any:
    """`values` on the device, contiguous; None stays None."""
    if values is None:
        return None
    if isinstance(values, cupy.ndarray):
        return cupy.ascontiguousarray(values, dtype)
    return cupy.asarray(np.ascontiguousarray(values, dtype))


def groups(segments: Segments) -> int:
    """Groups of segments, one per warp: see tiles.cuh."""
    each = min(32, max(1, GROUP_SLOTS // segments.segment_size))
    return -(-(1 << segments.m) // each)
