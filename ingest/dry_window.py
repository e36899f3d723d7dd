"""What a window would do to a stream, for a dry run: how much would be late, how much would expire.

Idea: which edges expire depends on all that came before, so nothing less than a graph can say. The
dry run has one in memory, that nobody keeps: batches are cut, applied to it, and let expire, by the
pipeline's own code.

A run cuts batches by their age, too, and an edge that is seen again in the batch that would have
let it expire stays. So where a stream is slow, or ends between two runs, a run may count a few
more.
"""

from __future__ import annotations

import lpma

from .batcher import Batcher, Piece, StreamBatch, updates_of
from .settings import Settings
from .sliding import slide, with_expiry
from .state.checkpoint import State
from .window import facts_of


class DryWindow:
    """Applies pieces to `graph`, from `state` on. REQUIRES: the settings have a window, the graph
    keeps times, and vertices of pieces are its ids."""

    def __init__(self, graph: lpma.Graph, settings: Settings, state: State) -> None:
        assert isinstance(settings.window, int)
        self._graph = graph
        self._settings = settings
        self._width = settings.window
        self._newest = state.window_newest
        self._expired_before = graph.expired
        self._batcher = Batcher(
            settings.batch_size, 0, settings.max_queries,
            by_arrival=settings.window_time == "arrival",
        )  # fmt: skip
        self.late = 0  # edges that would be too old when they come
        self.untimed = 0  # updates without a time of their own

    @property
    def expired(self) -> int:
        """Edges that would expire."""
        return self._graph.expired - self._expired_before

    def facts(self) -> dict[str, int | str | None]:
        """As `Progress.window_facts`, and what has no time."""
        found = facts_of(self._width, self._settings.window_time, self._newest)
        assert found is not None
        return {**found, "late": self.late, "untimed": self.untimed}

    def add(self, piece: Piece) -> None:
        """Take in what would be buffered; apply whatever makes a batch."""
        self._batcher.add([piece])
        if piece.query is None and piece.columns.time is None:
            self.untimed += len(piece)
        waiting = self._batcher
        while waiting.operations >= waiting.size or waiting.queries >= waiting.max_queries:
            self._apply(waiting.take(waiting.size, waiting.max_queries))

    def end(self) -> None:
        """Apply what waits."""
        self._apply(self._batcher.take(self._batcher.size, self._batcher.max_queries))

    def _apply(self, batch: StreamBatch) -> None:
        moved = slide(batch, self._newest, self._width, self._settings.window_time == "arrival")
        columns = updates_of(batch.columns)
        if moved.before is not None:
            columns = with_expiry(columns, moved.before)
        if len(columns):
            self._graph.apply(columns.replace(ids_resolved=self._graph.names is not None))
        self._newest = moved.newest
        self.late += moved.late
