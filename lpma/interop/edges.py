"""Graphs from columns, and how every function of this folder makes its graph."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..arguments.convert import as_array
from ..arguments.scalars import choice
from ..arrays import Array, all_of, array_module
from ..display.words import count_of
from ..errors import BatchError
from ..graph import Graph
from .columns import holds_text

NARROW = (np.bool_, np.int8, np.int16, np.uint8, np.uint16, np.float16, np.float32)


def from_edges(
    src: Any,
    dst: Any,
    weight: Any = None,
    time: Any = None,
    *,
    weight_dtype: str | None = "auto",
    **options: Any,
) -> Graph:
    """A graph of these edges, inserted as one batch.

    src, dst      vertices, as arrays of one length n: integers or, which makes a graph with names
                  (see `lpma.Graph`), text. A scalar counts for every row
    weight, time  float[n] and times[n] as for `Graph.insert`, or one for every row; None: 1.0, and
                  now
    weight_dtype  the type of the graph's weights: "float32", "float64" or None; "auto": float64 if
                  the weights given are of a type that float32 would round
    options       of `lpma.Graph`: directed, names, device …

    The edges of a directed=False graph are given once, in either direction. Repeated edges add up,
    and a weight of 0 or less makes no edge: see `Graph.insert`. A warning counts the rows that did
    nothing for it. Raises BatchError.

    >>> g = lpma.from_edges([0, 0, 1], [1, 2, 2], weight=[0.5, 1.0, 2.0], device="cpu")
    >>> g.num_edges, g.edge(1, 2).weight
    (3, 2.0)
    """
    named = holds_text(src) or holds_text(dst)
    graph = make_graph(named, type_of_weights(weight), weight_dtype, options)
    graph.insert(src, dst, 1.0 if weight is None else weight, time)
    tell_lost_weights(graph, "from_edges")
    return graph


def type_of_weights(weight: Any) -> np.dtype[Any]:
    """The type that weights are given in; of one number, the narrowest that holds it."""
    if weight is None:
        return np.dtype(np.float32)
    array = as_array(weight, "weight")
    if array.ndim == 0 and array.dtype.kind in "iuf" and float(np.float32(array)) == float(array):
        return np.dtype(np.float32)
    return array.dtype


def make_graph(
    named: bool, weights: np.dtype[Any], weight_dtype: str | None, options: dict[str, Any],
    **facts: Any,
) -> Graph:  # fmt: skip
    """An empty graph with these options, for weights of this type. named: its vertices are named by
    text; facts: options that are the function's to give. Raises BatchError."""
    if weight_dtype is not None:
        weight_dtype = choice(weight_dtype, "weight_dtype", ("auto", "float32", "float64"))
    if weight_dtype == "auto":
        weight_dtype = "float32" if weights.type in NARROW else "float64"
    if named:
        options = {"names": True, **options}
    if named and options["names"] is False:
        raise BatchError("vertices are named by text here: leave out names=False, or give integers")
    return Graph(weight_dtype=weight_dtype, **facts, **options)


def refuse_lost_weights(weights: Array, src: Any, dst: Any, advice: str) -> None:
    """Raise BatchError if a weight would make no edge: an insertion takes those above 0."""
    good = weights > 0
    if all_of(good):
        return
    row = int(array_module(weights).argmin(good))
    raise BatchError(
        f"the edge from {src[row]} to {dst[row]} has the weight {weights[row]}, and a graph takes "
        f"finite weights above 0: {advice}"
    )


def tell_lost_weights(graph: Graph, function: str) -> None:
    """Warn if rows that a public function, which calls this, inserted into a new graph made no edge
    for their weight: no error, since rows may also lower edges that earlier rows made."""
    if graph.unchanged.not_positive:
        advice = "leave them out, or give no weights, and each row is an edge"
        warnings.warn(f"{function}: {lost_weights(graph)}: {advice}", stacklevel=3)


def lost_weights(graph: Graph) -> str:
    """How many rows made no edge for their weight, in words."""
    lost = graph.unchanged.not_positive
    rows = count_of(lost, "row of a weight of 0 or less", "rows of weights of 0 or less")
    return f"{rows} made no edge, where none was there to add to"
