"""Rows on the host, for algorithms that run there alone, and their results beside the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import array_module, device_of, on_device, to_host

from .simple import View

Array = npt.NDArray[Any]  # or cupy.ndarray


def on_host(view: View) -> View:
    """The rows in NumPy's arrays: copied from a device, else the same."""
    return View(to_host(view.indptr), to_host(view.indices)) if view.on_device else view


def beside(array: Array, values: Array) -> Array:
    """Values from the host where the array lies: copied to its device, else the same."""
    if not on_device(array):
        return values
    with device_of(array):
        placed: Array = array_module(array).asarray(np.ascontiguousarray(values))
        return placed
