"""Requests that were sent together: a client that goes away is noticed by the one that is answered.

uvicorn tells the request that came last that its client is gone, but those behind the first wait
for their turn: the one at hand would write to a connection that is closed, which is an error of the
service in its log, and the next ones would be answered for nobody.

Requires uvicorn with httptools.
"""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from .turns import TurnsProtocol


class PipelinedProtocol(TurnsProtocol):
    """A connection that knows whose turn it is."""

    _answered: RequestResponseCycle | None = None  # the request that is answered now

    def on_headers_complete(self) -> None:
        waiting = len(self.pipeline)
        super().on_headers_complete()
        if len(self.pipeline) == waiting:
            self._answered = self.cycle

    def on_response_complete(self) -> None:
        self._answered = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self.pipeline.clear()
        if self._answered is not None:
            self._answered.disconnected = True
            self._answered.message_event.set()
        super().connection_lost(exc)
