"""One ego network as a graph of its own, for owners whose matrix of bits would be too large.

The subgraph that the owner's neighbours induce is given to the algorithms for whole graphs. That
reads the whole graph for one owner, and needs memory for another graph, no larger than the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import array_module, device_of

from ...arrays import Array
from ...components import connected_components
from ...core import k_core
from ...truss import k_truss
from ...views.simple import View, induced
from ..model import NONE


def labels(view: View, row: Array, model: str, k: int) -> Array:
    """int32[len(row)]: the number of the context of each vertex of `row`, a row of the view; NONE
    if it is in none."""
    with device_of(view.indptr):
        xp = array_module(view.indptr)
        inside = xp.zeros(view.num_rows, bool)
        inside[row] = True
        ego = induced(view, inside)
        if model == "core":
            ego = _view(k_core(ego, k))
        elif model == "truss":
            ego = _view(k_truss(ego, max(k, 2)))
        component = connected_components((ego.indptr, ego.indices))[row]
        if model == "component":
            is_in = xp.bincount(component, minlength=1)[component] >= k
        else:
            is_in = (ego.indptr[1:] > ego.indptr[:-1])[row]
        found: Array = xp.where(is_in, component, NONE).astype(np.int32)
        return found


def _view(s: Any) -> View:
    return View(s._indptr, s._indices)
