"""What the endpoints share: what is served, the bounds, what is counted, and what is closed at the
end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..pipeline.graph_requests import GraphRequests
from ..timers import Stage
from ..types import Closing

if TYPE_CHECKING:
    from starlette.types import Scope

    import lpma

    from ..pipeline.pipeline import Pipeline
    from ..results.figures import Rule

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


@dataclass(frozen=True)
class Limits:
    """The bounds of a service. Each is checked before anything is done for a request."""

    max_body_bytes: int = 8 << 20
    max_rows: int = 100_000  # vertices or edges asked for at once
    page_rows: int = 100_000  # of an answer; a cursor asks for the rest
    max_hops: int = 2
    max_answer_rows: int = 2_000_000  # of one answer, all its pages
    max_walked_edges: int = 1_000_000  # by hops of two steps or more, for one question: 0.4 s
    max_waiting: int = 10_000  # questions, then "retry later"
    deadline_s: float = 10.0  # for an answer
    kept_bytes: int = 256 << 20  # of answers whose rest may be asked for
    kept_s: float = 60.0  # that the rest is kept
    max_snapshots: int = 1  # sent at once
    max_runs: int = 2  # of algorithms that wait
    max_watchers: int = 64  # of events
    max_connections: int = 1024
    max_requests: int = 512  # at once


class Figures:
    """What a service counts of itself. An endpoint is the path of its route, not the path that was
    asked for, so that no client can make the figures many. Written by the event loop alone, and
    read from any thread."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()  # (endpoint, method, status)
        self.seconds: defaultdict[str, Stage] = defaultdict(Stage)  # by endpoint
        self.in_progress = 0
        self.connections: Callable[[], int] | None = None  # how many there are; set by the server

    def note(self, scope: Scope, status: int, seconds: float) -> None:
        """Count one request that has been answered."""
        endpoint = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self.requests[endpoint, method, status] += 1
        self.seconds[endpoint].add(seconds)


@dataclass(eq=False)
class Context(Closing):
    """What is served.

    pipeline: None if it is a saved store, which nobody changes. graph: its figures may be read from
    any thread; everything else is asked in a turn. title: what people call it, no path.
    update_topic: where updates are written, one that the pipeline reads; None: "updates", or the
    only one that it reads; if it reads several others, updates are refused.
    alerts: rules that watchers are told of when they become true."""

    requests: GraphRequests
    graph: lpma.Graph
    pipeline: Pipeline | None = None
    title: str = "graph"
    limits: Limits = field(default_factory=Limits)
    update_topic: str | None = None
    figures: Figures = field(default_factory=Figures)
    alerts: Sequence[Rule] = ()
    _closers: list[Callable[[], object]] = field(default_factory=list)

    def on_close(self, call: Callable[[], object]) -> None:
        """Have `call` called when the service ends, the last one first."""
        self._closers.append(call)

    def close(self) -> None:
        while self._closers:
            self._closers.pop()()
