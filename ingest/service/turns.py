"""A connection is read in turns: however much a client sends at once, others have theirs between.

Idea: the parser calls Python for each header and each chunk, so that the cost of bytes depends on
what they say: a hundred kilobytes of one-byte chunks take tens of milliseconds, and an event loop
hands over up to a quarter of a megabyte, many times over. So what came is cut into shares; the loop
turns between two of them, and nothing more is read from the socket until the last one is parsed.

Requires uvicorn with httptools.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

SHARE_BYTES = 16 << 10  # that may be anything
LONG_SHARE_BYTES = 64 << 10  # of a body of known length, which is one call


class _Flow(FlowControl):
    """uvicorn's, with a second reason not to read: what came is not parsed yet."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self._is_held = False

    def hold(self) -> None:
        if not self._is_held and not self.read_paused:
            self._transport.pause_reading()
        self._is_held = True

    def let_go(self) -> None:
        if self._is_held and not self.read_paused:
            self._transport.resume_reading()
        self._is_held = False

    def pause_reading(self) -> None:
        if not self.read_paused and not self._is_held:
            self._transport.pause_reading()
        self.read_paused = True

    def resume_reading(self) -> None:
        if self.read_paused and not self._is_held:
            self._transport.resume_reading()
        self.read_paused = False


class TurnsProtocol(HttpToolsProtocol):
    """uvicorn's connection, which parses a share of what came in each turn of the loop."""

    _pending = b""  # came, and is not parsed
    _flow: _Flow

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = self._flow = _Flow(transport)

    def data_received(self, data: bytes) -> None:
        if self._pending:  # TLS may have had more already
            self._pending += data
        else:
            self._take(data)

    def _take(self, data: bytes) -> None:
        share = self.share_bytes()
        self._pending = data[share:]
        self.parse(data[:share])
        if self.transport.is_closing():
            self._pending = b""
        elif self._pending:
            self._flow.hold()
            self.loop.call_soon(self._go_on)
        else:
            self._flow.let_go()

    def _go_on(self) -> None:
        data, self._pending = self._pending, b""
        if self.parser is not None and not self.transport.is_closing():
            self._take(data)

    def share_bytes(self) -> int:
        """How much may be parsed in this turn."""
        return SHARE_BYTES

    def parse(self, data: bytes) -> None:
        """Parse a share of what came."""
        raise NotImplementedError
