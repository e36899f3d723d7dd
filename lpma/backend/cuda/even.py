"""Spreading windows evenly: the launch of even_out (windows.cu).

A batch after an expansion is preceded by one, of which only the range of windows is new. So its
arguments lie in a block that is kept, like those of a batch (asking.py).
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ...cuda.launch import Packed
from .kernels import Kernels
from .options import THREADS
from .segments import STORE

RANGE = struct.Struct("<iII")  # layer; from, to
LAYER_AT = STORE.itemsize


class Evening:
    """Of one store."""

    def __init__(self, stream: Any) -> None:
        block = np.zeros(LAYER_AT + RANGE.size, np.uint8)
        self._bytes, self._of = block.data, None
        at = [0, *(LAYER_AT + first for first in (0, 4, 8))]
        self._arguments = Packed(block, at, stream)

    def launch(self, kernels: Kernels, record: Any, layer: int, first: int, last: int) -> None:
        """Spread windows first … last - 1 of a layer of the store with this record, a block for
        each."""
        if self._of is not record:
            self._bytes[:LAYER_AT] = record.view(np.uint8).data
            self._of = record
        RANGE.pack_into(self._bytes, LAYER_AT, layer, first, last)
        kernels.launch("even_out", THREADS * (last - first), self._arguments)
