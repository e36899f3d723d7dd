"""A batch for the controls: its columns one after the other in host memory, so that one copy
takes it to the device. Keys arrive ready-made, which favours the controls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..keys import Array


@dataclass(frozen=True)
class Packed:
    """keys uint64[n] | times int64[n] | weights float32[n], or the keys alone."""

    n: int
    host: Array  # uint8, pinned or not
    nbytes: int

    @staticmethod
    def empty(most: int, columns: bool, pinned: bool = True) -> Array:
        """Memory for a batch of up to `most` rows."""
        nbytes = most * (20 if columns else 8)
        if not pinned:
            return np.empty(nbytes, np.uint8)
        import cupyx

        memory: Array = cupyx.empty_pinned(nbytes, np.uint8)
        return memory

    @staticmethod
    def fill(memory: Array, keys: Array, weights: Array | None, times: Array | None) -> Packed:
        n, at = len(keys), 0
        for column in (keys, times, weights):
            if column is not None:
                memory[at : at + column.nbytes].view(column.dtype)[:] = column
                at += column.nbytes
        return Packed(n, memory, at)


class Staging:
    """The batch on the device. Kept from batch to batch, so that nothing is allocated."""

    def __init__(self, columns: bool) -> None:
        import cupy

        self.columns = columns
        self.memory = cupy.empty(0, cupy.uint8)

    def receive(self, batch: Packed) -> tuple[Any, Any, Any]:
        """(keys, weights, times) on the device; the latter two None for keys alone."""
        import cupy

        if self.memory.nbytes < batch.nbytes:
            self.memory = cupy.empty(batch.nbytes, cupy.uint8)
        cupy.cuda.runtime.memcpyAsync(
            self.memory.data.ptr,
            batch.host.ctypes.data,
            batch.nbytes,
            cupy.cuda.runtime.memcpyHostToDevice,
            cupy.cuda.get_current_stream().ptr,
        )
        n = batch.n
        keys = self.memory[: 8 * n].view(cupy.uint64)
        if not self.columns:
            return keys, None, None
        times = self.memory[8 * n : 16 * n].view(cupy.int64)
        return keys, self.memory[16 * n : 20 * n].view(cupy.float32), times
