"""Converted rows on a CUDA device. They are made on the host, where NetworkX's dictionaries are."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def on_device(device: str, array: Array) -> Any:
    """A copy of a host array on the device "cuda", "cuda:N" or, for "auto", the first, whole when
    this returns."""
    with cupy.cuda.Device(int(device.partition(":")[2] or 0)):
        return cupy.asarray(np.ascontiguousarray(array))
