"""What the CPU's and the device's programs take."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

Array = npt.NDArray[Any]  # or cupy.ndarray


class Lengths(NamedTuple):
    """The weights of a graph's edges: finite and not negative, so that paths may have them."""

    weights: Array  # float32[m] or float64[m]
    mean: float  # of the weights, for programs that divide vertices by it; nan if none does
