"""Sliding windows: a graph of the edges that were touched since a time. See expiry.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from .batch import Columns, Kind
from .coerce import time_array, time_column
from .errors import BatchError
from .graph_object import GraphObject


class GraphWindows(GraphObject):
    """The part of `lpma.Graph` that lets edges expire."""

    def expire(self, before: Any) -> None:
        """Remove every edge whose time is less than `before`: one time, as `insert` takes it.
        Vertices that were added stay. The graph's `time` stays too. An edge's time is that of its
        last append that did something, even where an earlier append had a later time.

        The first call passes over the whole graph, later ones cost by what expires: about four
        slots passed over for each edge. What is kept for that takes at most eight bytes a slot, or
        a mebibyte. Raises BatchError if the graph was made with times=False, and as `apply`
        does.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 2, 3], [2, 3, 4], time=[10, 20, 30])
        >>> g.expire(20)
        >>> g.has_edge(1, 2), g.num_edges
        (False, 2)
        """
        time = None if before is None else time_array(before)
        if time is None or time.ndim:
            raise BatchError("before: expire takes one time: integer milliseconds or a datetime")
        zero = np.zeros(1, np.uint32)
        kind, by_name = np.array([Kind.EXPIRE], np.uint8), self.names is not None
        given = kind, zero, zero, None, time_column(time, zero)
        self.apply(Columns(*given, checked=True, looked_up=by_name))
