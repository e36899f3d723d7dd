"""Results from the host, beside a graph that may be on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import array_module, device_of, on_device

Array = npt.NDArray[Any]  # or cupy.ndarray


def beside(array: Array, values: Array) -> Array:
    """Values from the host where the array lies: copied to its device, else the same."""
    if not on_device(array):
        return values
    with device_of(array):
        placed: Array = array_module(array).asarray(np.ascontiguousarray(values))
        return placed
