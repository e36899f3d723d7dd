"""Structural diversity: how many social contexts surround each vertex, and whom the most."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import array_module

from .._views import simple
from .listing import Scorer
from .model import check_model

Array = npt.NDArray[Any]


def diversity(s: Any, model: str, k: int, method: str = "auto") -> Array:
    check_model(model, k)
    n = simple(s).num_vertices
    scorer = Scorer(s, model, k)
    return scorer.scores(np.arange(n, dtype=np.uint32))
