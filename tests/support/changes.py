"""Changes of every kind, drawn by a test, for a graph and for the model beside it."""

from __future__ import annotations

from typing import Any

import numpy as np


def change(graph: Any, step: tuple[str, list[tuple[int, int]]]) -> None:
    """Make one change to an lpma.Graph or a ModelGraph. step: its kind, and pairs of ids: edges, or
    vertices by their first ids."""
    kind, given = step
    src, dst = np.array(given).T
    if kind == "insert":
        graph.insert(src, dst)
    elif kind == "set":
        graph.set(src, dst, 2.0 if src[0] % 2 else 0.0)
    elif kind == "delete":
        graph.delete(src, dst)
    elif kind == "add":
        graph.add_vertices(src)
    elif kind == "remove":
        graph.remove_vertices(src)
    elif kind == "expire":
        graph.expire(int(src[0]))
    elif kind == "one":
        for u, v in given:
            graph.insert(u, v)
            graph.delete(v, u)
