"""uvicorn's HTTP/1.1 connection, with a time for everything a client does and a bound on what it
sends.

Idea: a connection has one deadline, set anew when it passes from one phase to the next, and
`sweep` closes those that are overdue. Nothing is scheduled for each request, so that a quick one
pays a few assignments.

    phase    from                            until                      closed
    head     connected, or a first byte      the head is complete       after `head_s`, whatever
                                                                        trickles in
    body     the head                        its last byte              when it comes at less than
                                                                        `rate`, or not at all for
                                                                        `body_s`; with 408
    answer   the whole request               its last byte is sent      never, but if nobody reads
                                                                        it after `stalled_s`, and
                                                                        more for what is read, by
                                                                        `rate`
    idle     the answer                      the next request           after `idle_s`

What is overdue otherwise is aborted: a graceful end would wait for the client again. What the
parser holds of a client is bounded, too (`Framing`); `MAX_PIPELINED` requests may come before an
earlier one was answered, `MAX_UNREAD_BYTES` of a body that was refused. What follows the last chunk
is dropped: a header counts only where the guard sees it.

The parser calls Python for each header and each chunk, so the cost of bytes depends on what they
say: a hundred kilobytes of one-byte chunks take tens of milliseconds, and an event loop hands over
up to a quarter of a megabyte, many times over. So what came is parsed in shares, and nothing more
is read from the socket until the last one is done. The first share, which is all there is of most
requests, is parsed at once; the rest waits in a queue of all connections, of which one share is
parsed in each turn of the loop (`ParseScheduler`).

uvicorn tells only the request that came last that its client is gone. Where several were sent
together, the one that is being answered is told here, and the others are dropped.

Requires uvicorn and httptools, whose parser refuses ambiguous requests (two lengths, a length
beside chunks).
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from httptools import HttpParserError, HttpParserUpgrade
from uvicorn import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

MAX_PIPELINED = 64
MAX_UNREAD_BYTES = 16 << 20
SHARE_BYTES = 16 << 10  # parsed at once, of anything
LONG_SHARE_BYTES = 64 << 10  # of a body of known length, which is one call
MAX_HEAD_BYTES = 16 << 10  # of a head, of trailers, and of what is between two parts of a body
MAX_HEADERS = 100
MAX_CHUNKS = 1 << 14  # of a body, in parts as they come, and more if the mean of them is at least
MIN_CHUNK_BYTES = 64
MAX_FRAMING = 4  # times as many bytes as the body has, and
MAX_FRAMING_BYTES = 128 << 10  # beside them

# In the state of a request's scope: whether its answer has no end, as that of /v1/events.
ENDLESS = "endless"

# uvicorn warns of each bad request, in words that would let a client fill the log.
_SILENT = logging.getLogger("lpma.service.protocol")
_SILENT.setLevel(logging.CRITICAL + 1)
_SILENT.propagate = False


@dataclass(frozen=True)
class Timeouts:
    """How long a client may take, in seconds by `clock`."""

    head_s: float = 5.0  # for a handshake, and for a request's head
    body_s: float = 10.0  # for a body, and more as it comes
    stalled_s: float = 20.0  # for reading what is written, and more as it does
    rate: float = 16 << 10  # bytes a second, below which both run out
    idle_s: float = 30.0  # between two requests
    grace_s: float = 5.0  # for what is being answered when it is closed; by the loop's clock
    clock: Callable[[], float] = time.monotonic


# Framing -------------------------------------------------------------------------------------


class Refused(ValueError):
    """What is sent is not taken: the status of the answer, and why."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class Framing:
    """Counts what one request sends that is no body: head, trailers, chunks. Raises Refused.

    What has no body in it is bounded as a head is, whatever the guard thinks of the request; chunks
    may be small while they are few, and their framing may not outweigh the body."""

    def __init__(self) -> None:
        self.is_chunked = False
        self._headers = 0
        self._chunks = 0
        self._body_bytes = 0
        self._raw_bytes = 0  # of the body, with its framing
        self._quiet_bytes = 0  # without a part of the body
        self._moved = True  # by the share at hand: a request began, or some body came

    def add_header(self) -> None:
        self._headers += 1
        if self._headers > MAX_HEADERS:
            raise _long_head()

    def check_head(self, size: int) -> None:
        """The head is complete; what follows the last chunk has a count of its own."""
        if size > MAX_HEAD_BYTES:
            raise _long_head()
        self._headers = 0

    def add_body(self, size: int) -> None:
        """A part of the body came."""
        self._moved = True
        self._quiet_bytes = 0
        if not self.is_chunked:
            return
        self._chunks += 1
        self._body_bytes += size
        if self._chunks > MAX_CHUNKS and self._body_bytes < MIN_CHUNK_BYTES * self._chunks:
            raise _small_chunks()

    def add_bytes(self, size: int) -> None:
        """A share was parsed, behind which the request is still not whole."""
        moved, self._moved = self._moved, False
        if not moved:
            # The parser keeps a header until it is whole, however long it becomes.
            self._quiet_bytes += size
            if self._quiet_bytes > MAX_HEAD_BYTES:
                raise _long_head()
        if self.is_chunked:
            self._raw_bytes += size
            if self._raw_bytes > MAX_FRAMING * self._body_bytes + MAX_FRAMING_BYTES:
                raise _small_chunks()


def _long_head() -> Refused:
    return Refused(
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        f"a head, or a trailer, has at most {MAX_HEADERS} headers and {MAX_HEAD_BYTES >> 10} KiB",
    )


def _small_chunks() -> Refused:
    return Refused(
        HTTPStatus.BAD_REQUEST,
        "the body comes in chunks of a few bytes, or with little in them: send larger ones",
    )


# Turns ---------------------------------------------------------------------------------------


class ParseScheduler:
    """The queue of connections that have something to parse."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: deque[Connection] = deque()

    def wait(self, connection: Connection) -> None:
        """Have a connection go on, when it is its turn."""
        self._queue.append(connection)
        if len(self._queue) == 1:
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        connection = self._queue[0]
        try:
            connection.go_on()
        finally:
            self._queue.popleft()
            if self._queue:
                self._loop.call_soon(self._next)


class _Flow(FlowControl):
    """uvicorn's, with a second reason not to read: what came is not parsed yet."""

    _is_held = False

    def hold(self, is_held: bool) -> None:
        self._change(is_held, self.read_paused)

    def pause_reading(self) -> None:
        self._change(self._is_held, True)

    def resume_reading(self) -> None:
        self._change(self._is_held, False)

    def _change(self, is_held: bool, is_paused: bool) -> None:
        before, now = self._is_held or self.read_paused, is_held or is_paused
        self._is_held, self.read_paused = is_held, is_paused
        if now and not before:
            self._transport.pause_reading()
        elif before and not now:
            self._transport.resume_reading()


class Connection(HttpToolsProtocol):
    """One connection."""

    _flow: _Flow

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        timeouts: Timeouts,
        scheduler: ParseScheduler,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(config, server_state, app_state={}, _loop=loop)
        self._scheduler = scheduler
        self._pending = b""  # came, and is not parsed
        self._answered: RequestResponseCycle | None = None  # the request being answered
        self.logger = _SILENT
        self.access_log = False
        self.since = timeouts.clock()  # when it began to wait for the client
        self.requests = 0  # that came whole
        self._timeouts = timeouts
        self._deadline = math.inf
        self._stalled_at = math.inf  # since when the client has to read before we go on
        self._unsent = 0  # bytes, at that time
        self._spare_s = timeouts.stalled_s  # that it may take
        self._idle = False  # between two requests, with no byte of the next
        self._in_head = False
        self._in_body = False
        self._framing = Framing()
        self._unparsed_bytes = 0  # of a body that the parser leaves to us
        self._unread_bytes = 0  # of a body whose answer is complete
        self._refusal = Refused(HTTPStatus.BAD_REQUEST, "not a request of HTTP/1.1")

    # Phases ----------------------------------------------------------------------------------

    @property
    def is_waiting(self) -> bool:
        """Whether the next move is the client's."""
        return self._deadline < math.inf

    @property
    def is_behind(self) -> bool:
        """Whether something came that is not parsed yet."""
        return bool(self._pending)

    def _wait(self, seconds: float) -> None:
        self.since = self._timeouts.clock()
        self._deadline = self.since + seconds

    def _rest(self) -> None:
        self._idle = True
        self._wait(self._timeouts.idle_s)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def sweep(self, now: float) -> None:
        """Close the connection if it is overdue. now: by the clock of its timeouts."""
        timeouts = self._timeouts
        if self.transport.is_closing() and self._stalled_at == math.inf:
            self._note_unsent()  # it closes when that is sent
        if self._stalled_at < math.inf:
            if self._spare_at(now) < 0:
                self.transport.abort()
            elif self._idle:
                self._wait(timeouts.idle_s)  # it is still busy with the last answer
            return
        if self.flow.read_paused or self.is_behind:
            # It is we who do not read.
            self._deadline = max(self._deadline, now + timeouts.body_s)
        if self._deadline <= now and self._in_body and not self._has_answer():
            self._refusal = Refused(HTTPStatus.REQUEST_TIMEOUT, self._slow_body())
            self.send_400_response("")
            self._deadline = now + timeouts.stalled_s
        elif self._deadline <= now:
            self.transport.abort()

    def _note_unsent(self) -> None:
        self._stalled_at = self._timeouts.clock()
        self._unsent = self.transport.get_write_buffer_size()

    def _spare_at(self, now: float) -> float:
        """Seconds that the client may still take to read, by what it has read."""
        read = max(0, self._unsent - self.transport.get_write_buffer_size())
        spare = self._spare_s - (now - self._stalled_at) + read / self._timeouts.rate
        return min(spare, self._timeouts.stalled_s)

    def _has_answer(self) -> bool:
        """Whether something was, or will be, answered that is not a word about the body at hand."""
        return self.transport.is_closing() or not self._is_answering() or bool(self.pipeline)

    def _slow_body(self) -> str:
        seconds, rate = self._timeouts.body_s, self._timeouts.rate / 1024
        return f"a body comes at {rate:g} KiB a second, and stands still for {seconds:g} s at most"

    # The connection --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = self._flow = _Flow(transport)
        self._wait(self._timeouts.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self.pipeline.clear()
        if self._answered is not None:
            self._answered.disconnected = True
            self._answered.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._idle:
            self._idle = False
            self._wait(self._timeouts.head_s)
        if self._pending:  # TLS may have had more already
            self._pending += data
        else:
            self._take(data)

    def _take(self, data: bytes) -> None:
        is_plain = self._in_body and not self._framing.is_chunked
        share = LONG_SHARE_BYTES if is_plain else SHARE_BYTES
        self._pending = data[share:]
        self.parse(data[:share])
        if self.transport.is_closing():
            self._pending = b""
            return
        self._flow.hold(bool(self._pending))
        if self._pending:
            self._scheduler.wait(self)

    def go_on(self) -> None:
        """Parse the next share."""
        data, self._pending = self._pending, b""
        if self.parser is not None and not self.transport.is_closing():
            self._take(data)

    def parse(self, data: bytes) -> None:
        """Parse a share of what came."""
        self._unset_keepalive_if_required()
        self._feed(data)
        if (self._in_head or self._in_body) and not self.transport.is_closing():
            try:
                self._framing.add_bytes(len(data))
            except Refused as refusal:
                self._refusal = refusal
                self.send_400_response("")

    def _feed(self, data: bytes) -> None:
        """Parse what came. A request may ask for another protocol, as clients of HTTP/2 do in their
        first one; it is answered in this one. The parser stops behind its head, so we count its
        body ourselves."""
        while data:
            if self._unparsed_bytes:
                body, data = data[: self._unparsed_bytes], data[self._unparsed_bytes :]
                self._unparsed_bytes -= len(body)
                self.on_body(body)
                if not self._unparsed_bytes:
                    self.on_message_complete()
                continue
            try:
                self.parser.feed_data(data)
                return
            except HttpParserUpgrade as stopped:
                data = data[stopped.args[0] :]
            except HttpParserError as error:
                if isinstance(error.__context__, Refused):
                    self._refusal = error.__context__
                self.send_400_response("")
                return

    def pause_writing(self) -> None:
        super().pause_writing()
        self._note_unsent()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._spare_s = self._spare_at(self._timeouts.clock())
        self._stalled_at = math.inf

    def shutdown(self) -> None:
        """The service is closed: end what would not end by itself, and finish the rest."""
        super().shutdown()
        if self._is_answering() and ENDLESS in self.cycle.scope["state"]:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self.transport.close()

    # The parser ------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._framing = Framing()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._framing.add_header()
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self.parser.get_http_version() not in ("1.0", "1.1"):
            raise ValueError("another version")
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        self._framing.check_head(size)
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ValueError(f"{MAX_PIPELINED} requests wait")
        if self.parser.should_upgrade():
            self._unparsed_bytes = self._length()
        self._in_body = True
        self._framing.is_chunked = any(name == b"transfer-encoding" for name, _ in self.headers)
        self._unread_bytes = 0
        if not self._is_answering():
            self._wait(self._timeouts.body_s)
        waiting = len(self.pipeline)
        super().on_headers_complete()
        if len(self.pipeline) == waiting:
            self._answered = self.cycle

    def on_body(self, body: bytes) -> None:
        if self.is_waiting:
            # Whoever was fast may not be silent for long afterwards.
            most = self._timeouts.clock() + self._timeouts.body_s
            self._deadline = min(self._deadline + len(body) / self._timeouts.rate, most)
        self._framing.add_body(len(body))
        if not self._is_answering():
            # It was answered before it was whole, by a refusal, which its client reads last.
            self._unread_bytes += len(body)
            if self._unread_bytes > MAX_UNREAD_BYTES:
                self.transport.abort()
        super().on_body(body)

    def _length(self) -> int:
        """The length of the body that the headers say."""
        found = dict(self.headers)
        if b"transfer-encoding" in found:
            raise ValueError("chunks behind a request for another protocol")
        return int(found.get(b"content-length", 0))

    def on_message_complete(self) -> None:
        if self._unparsed_bytes:
            return  # it is the parser that has no more
        self._in_body = False
        self.requests += 1
        super().on_message_complete()
        if self._is_answering():
            self._deadline = math.inf
        else:
            self._rest()

    def on_response_complete(self) -> None:
        pipelined = bool(self.pipeline)
        self._answered = self.pipeline[-1][0] if pipelined else None
        super().on_response_complete()
        self._unset_keepalive_if_required()  # `sweep` does that
        if self._in_body:
            # The client goes on with what nobody reads, or with the request behind this one.
            if not self.is_waiting:
                self._wait(self._timeouts.body_s)
            return
        if self._in_head:
            self._wait(self._timeouts.head_s)
        elif not pipelined:
            self._rest()

    # Refusals --------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, and close. uvicorn calls this when its parser fails."""
        if self._in_body and not self._is_answering():
            self.transport.close()  # it has an answer, which may still be on its way
            return
        if self._is_answering():
            cycle = self.cycle
            if not self._in_body or self.pipeline or cycle.response_started:
                self.transport.abort()  # an answer in place of an earlier one would be taken for it
                return
            cycle.disconnected = True  # its body fails: nobody else answers it
            cycle.message_event.set()
        status, detail = self._refusal.status, self._refusal.detail
        body = json.dumps(
            {"type": "about:blank", "title": status.phrase, "status": status, "detail": detail}
        ).encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/problem+json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
