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
parser holds of a client is bounded, too (framing.py); `MAX_PIPELINED` requests may come before an
earlier one was answered, `MAX_UNREAD_BYTES` of a body that was refused. What follows the last chunk
is dropped: a header counts only where the guard sees it.

Requires uvicorn and httptools, whose parser refuses ambiguous requests (two lengths, a length
beside chunks).
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from http import HTTPStatus

from httptools import HttpParserError, HttpParserUpgrade
from uvicorn import Config
from uvicorn.server import ServerState

from .framing import Framing, Refused
from .patience import Patience
from .pipelined import PipelinedProtocol
from .turns import LONG_SHARE_BYTES, SHARE_BYTES, Turns

MAX_PIPELINED = 64
MAX_UNREAD_BYTES = 16 << 20

# In the state of a request's scope: whether its answer has no end, as that of /v1/events.
ENDLESS = "endless"

# uvicorn warns of each bad request, in words that would let a client fill the log.
_SILENT = logging.getLogger("lpma.service.protocol")
_SILENT.setLevel(logging.CRITICAL + 1)
_SILENT.propagate = False


class BoundedProtocol(PipelinedProtocol):
    """One connection."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        patience: Patience,
        turns: Turns,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(config, server_state, turns, loop)
        self.logger = _SILENT
        self.access_log = False
        self.since = patience.clock()  # when it began to wait for the client
        self.requests = 0  # that came whole
        self._patience = patience
        self._deadline = math.inf
        self._stalled_at = math.inf  # since when the client has to read before we go on
        self._unsent = 0  # bytes, at that time
        self._spare_s = patience.stalled_s  # that it may take
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

    def _wait(self, seconds: float) -> None:
        self.since = self._patience.clock()
        self._deadline = self.since + seconds

    def _rest(self) -> None:
        self._idle = True
        self._wait(self._patience.idle_s)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def sweep(self, now: float) -> None:
        """Close the connection if it is overdue. now: by the clock of its patience."""
        patience = self._patience
        if self.transport.is_closing() and self._stalled_at == math.inf:
            self._note_unsent()  # it closes when that is sent
        if self._stalled_at < math.inf:
            if self._spare_at(now) < 0:
                self.transport.abort()
            elif self._idle:
                self._wait(patience.idle_s)  # it is still busy with the last answer
            return
        if self.flow.read_paused or self.is_behind:
            # It is we who do not read.
            self._deadline = max(self._deadline, now + patience.body_s)
        if self._deadline <= now and self._in_body and not self._has_answer():
            self._refusal = Refused(HTTPStatus.REQUEST_TIMEOUT, self._slow_body())
            self.send_400_response("")
            self._deadline = now + patience.stalled_s
        elif self._deadline <= now:
            self.transport.abort()

    def _note_unsent(self) -> None:
        self._stalled_at = self._patience.clock()
        self._unsent = self.transport.get_write_buffer_size()

    def _spare_at(self, now: float) -> float:
        """Seconds that the client may still take to read, by what it has read."""
        read = max(0, self._unsent - self.transport.get_write_buffer_size())
        spare = self._spare_s - (now - self._stalled_at) + read / self._patience.rate
        return min(spare, self._patience.stalled_s)

    def _has_answer(self) -> bool:
        """Whether something was, or will be, answered that is not a word about the body at hand."""
        return self.transport.is_closing() or not self._is_answering() or bool(self.pipeline)

    def _slow_body(self) -> str:
        seconds, rate = self._patience.body_s, self._patience.rate / 1024
        return f"a body comes at {rate:g} KiB a second, and stands still for {seconds:g} s at most"

    # The connection --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(self._patience.head_s)

    def data_received(self, data: bytes) -> None:
        if self._idle:
            self._idle = False
            self._wait(self._patience.head_s)
        super().data_received(data)

    def share_bytes(self) -> int:
        is_plain = self._in_body and not self._framing.is_chunked
        return LONG_SHARE_BYTES if is_plain else SHARE_BYTES

    def parse(self, data: bytes) -> None:
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
        self._spare_s = self._spare_at(self._patience.clock())
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
            self._wait(self._patience.body_s)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self.is_waiting:
            # Whoever was fast may not be silent for long afterwards.
            most = self._patience.clock() + self._patience.body_s
            self._deadline = min(self._deadline + len(body) / self._patience.rate, most)
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
        super().on_response_complete()
        self._unset_keepalive_if_required()  # `sweep` does that
        if self._in_body:
            # The client goes on with what nobody reads, or with the request behind this one.
            if not self.is_waiting:
                self._wait(self._patience.body_s)
            return
        if self._in_head:
            self._wait(self._patience.head_s)
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
