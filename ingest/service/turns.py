"""A connection is read in turns: however much a client sends at once, others have theirs between.

Idea: the parser calls Python for each header and each chunk, so that the cost of bytes depends on
what they say: a hundred kilobytes of one-byte chunks take tens of milliseconds, and an event loop
hands over up to a quarter of a megabyte, many times over. So what came is cut into shares, and
nothing more is read from the socket until the last one is parsed. The first share is parsed at
once, which is all there is of most requests. The rest waits in a line that all connections share,
and of which one is parsed in each turn of the loop: how many connections do this does not matter.

Requires uvicorn with httptools.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from uvicorn import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

SHARE_BYTES = 16 << 10  # that may be anything
LONG_SHARE_BYTES = 64 << 10  # of a body of known length, which is one call


class Turns:
    """The line of connections that have something to parse."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._line: deque[TurnsProtocol] = deque()

    def wait(self, connection: TurnsProtocol) -> None:
        """Have a connection go on, when it is its turn."""
        self._line.append(connection)
        if len(self._line) == 1:
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        connection = self._line[0]
        try:
            connection.go_on()
        finally:
            self._line.popleft()
            if self._line:
                self._loop.call_soon(self._next)


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

    def __init__(self, config: Config, server_state: ServerState, turns: Turns, loop: Any) -> None:
        super().__init__(config=config, server_state=server_state, app_state={}, _loop=loop)
        self._turns = turns

    @property
    def is_behind(self) -> bool:
        """Whether something came that is not parsed yet."""
        return bool(self._pending)

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
            self._turns.wait(self)
        else:
            self._flow.let_go()

    def go_on(self) -> None:
        """Parse the next share."""
        data, self._pending = self._pending, b""
        if self.parser is not None and not self.transport.is_closing():
            self._take(data)

    def share_bytes(self) -> int:
        """How much may be parsed in this turn."""
        return SHARE_BYTES

    def parse(self, data: bytes) -> None:
        """Parse a share of what came."""
        raise NotImplementedError
