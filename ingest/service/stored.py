"""A saved store that is served: a thread of its own answers what is asked of it.

The service treats it as a stream that has ended: its version and time never change."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ..pipeline.graph_requests import GraphRequests, GraphView
from ..types import Closing

if TYPE_CHECKING:
    import lpma


class StoredGraph(Closing):
    """Answers questions about `graph`, which must not change, until closed."""

    def __init__(self, graph: lpma.Graph) -> None:
        self.graph = graph
        self._asked = threading.Event()
        self._closing = False
        self.requests = GraphRequests(self._asked.set)
        self._thread = threading.Thread(target=self._answer, name="lpma-store", daemon=True)
        self._thread.start()

    def _answer(self) -> None:
        graph = self.graph
        view = GraphView(graph, None, graph.version, graph.time)
        while not self._closing:
            self._asked.wait()
            self._asked.clear()
            self.requests.answer(view, 0, lambda: None)
        self.requests.close("the service was closed")

    def close(self) -> None:
        self._closing = True
        self._asked.set()
        self._thread.join()
