"""`GET /v1/snapshot`: the whole graph at one version, as an Arrow stream or a NumPy archive.

    ?format=arrow | npz    what comes; absent: by `Accept`, and Arrow where both are as good
    ?compact=true          only rows that are vertices, renumbered: for graphs whose ids are sparse

The pipeline's thread copies the graph between two batches; the copy becomes pieces (see
`snapshot_forms.py`) in another thread, and the event loop writes them as they lie, so that a byte
is copied once, into the socket. `Content-Length` is known, and a broken transfer is noticed.

A snapshot is as large as the graph, so at most `max_snapshots` exist at a time. Whoever asks for
the same version meanwhile shares it; others get 429. A client that reads more slowly than
`LEAST_RATE` is dropped after `GRACE_S`, and the copy is freed with its last reader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from lpma import Snapshot
from lpma.errors import SnapshotTooLarge

from ..interludes import Moment
from .context import Context
from .problems import Problem
from .snapshot_forms import ARROW, CONTENT_TYPES, NPZ, Pieces, on_host, pieces_of

Result = TypeVar("Result")

CHUNK_BYTES = 1 << 20  # written at once
GRACE_S = 30.0
LEAST_RATE = 1 << 20  # bytes a second
MAX_READERS = 16  # of one snapshot

_FORMS = {
    "application/vnd.apache.arrow.stream": ARROW,
    "application/octet-stream": NPZ,
    "application/zip": NPZ,
    "application/*": ARROW,
    "*/*": ARROW,
}


def routes(context: Context) -> list[BaseRoute]:
    """`GET /v1/snapshot`."""
    snapshots = _Snapshots(context)
    context.on_close(snapshots.close)
    route = Route("/v1/snapshot", snapshots.get, methods=["GET"])
    assert route.methods is not None
    route.methods.discard("HEAD")  # it would cost as much, and bring nothing
    return [route]


class _Wanted(NamedTuple):
    form: str
    compact: bool


@dataclass(eq=False)
class _Held:
    """A snapshot that is being sent."""

    wanted: _Wanted
    version: int
    time: int
    pieces: Pieces
    readers: int = 0


class _Snapshots:
    """The endpoint, with the snapshots that are being taken or sent. Used by the event loop
    alone."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._held: list[_Held] = []
        self._taking: dict[_Wanted, asyncio.Future[_Held | None]] = {}
        self._writer = ThreadPoolExecutor(1, "lpma-snapshot")

    def close(self) -> None:
        self._writer.shutdown(cancel_futures=True)

    async def get(self, request: Request) -> Response:
        wanted = _wanted(request)
        held = await self._shared(wanted, self._held)
        while held is None and wanted in self._taking:
            taken = await asyncio.shield(self._taking[wanted])
            held = await self._shared(wanted, [taken] if taken else [])
        return _Sending(held or await self._taken(wanted), self._held)

    async def _shared(self, wanted: _Wanted, there: list[_Held]) -> _Held | None:
        """The snapshot among those `there`, if it is of the present version."""
        there = [h for h in there if h.wanted == wanted and h.readers < MAX_READERS]
        if not there:
            return None
        version = await self._asked(lambda moment: moment.version)
        return next((held for held in there if held.version == version), None)

    async def _taken(self, wanted: _Wanted) -> _Held:
        """A new one. REQUIRES: none like it is being taken."""
        if len(self._held) + len(self._taking) >= self._context.limits.max_snapshots:
            raise Problem(
                429,
                "a snapshot of another version, format or compact is being sent: ask again later",
                retry_after_s=1,
            )
        loop = asyncio.get_running_loop()
        held, taken = None, loop.create_future()
        self._taking[wanted] = taken
        try:
            s, time = await self._asked(lambda moment: (_snapshot(moment, wanted), moment.time))
            pieces = await loop.run_in_executor(
                self._writer, lambda: pieces_of(on_host(s), wanted.form)
            )
            held = _Held(wanted, s.version, time, pieces)
            return held
        except SnapshotTooLarge:
            raise Problem(
                422, "the largest id asks for too large an array: ask with compact=true"
            ) from None
        finally:
            del self._taking[wanted]
            taken.set_result(held)

    async def _asked(self, work: Callable[[Moment], Result]) -> Result:
        future = asyncio.wrap_future(self._context.interludes.ask(work))
        try:
            return await asyncio.wait_for(future, self._context.limits.deadline_s)
        except TimeoutError:
            raise Problem(503, "the stream did not come to it in time", retry_after_s=1) from None


def _snapshot(moment: Moment, wanted: _Wanted) -> Snapshot:
    s: Snapshot = moment.graph.snapshot(compact=wanted.compact)
    if moment.names is not None:
        ids = {"ids": s._ids} if s._ids is not None else {"rows": s.num_rows}
        s = s._with(names=moment.names.frozen(**ids))
    return s


class _Sending(Response):
    """The pieces of a snapshot, as fast as they are read."""

    def __init__(self, held: _Held, all_held: list[_Held]) -> None:
        headers = {
            "Content-Length": str(held.pieces.size),
            "Lpma-Version": str(held.version),
            "Lpma-Time": str(held.time),
        }
        super().__init__(None, 200, headers, CONTENT_TYPES[held.wanted.form])
        self._sent = held
        self._all = all_held
        held.readers += 1
        if held not in all_held:
            all_held.append(held)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            await send(started)
            await self._send_all(send)
        except TimeoutError:
            pass  # the server closes a connection whose answer is not whole
        finally:
            self._sent.readers -= 1
            if not self._sent.readers:
                self._all.remove(self._sent)

    async def _send_all(self, send: Send) -> None:
        loop = asyncio.get_running_loop()
        began, done = loop.time(), 0
        async with asyncio.timeout(GRACE_S) as limit:
            for chunk in self._sent.pieces.chunks(CHUNK_BYTES):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                done += chunk.nbytes
                limit.reschedule(began + GRACE_S + done / LEAST_RATE)
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def _wanted(request: Request) -> _Wanted:
    given = request.query_params
    if unknown := sorted(set(given) - {"format", "compact"}):
        raise Problem(422, f"unknown parameter {unknown[0][:64]!r}: known are format and compact")
    form = given.get("format") or _accepted(request.headers.get("accept", "*/*"))
    if form not in CONTENT_TYPES:
        raise Problem(422, f"format: expected one of {', '.join(CONTENT_TYPES)}")
    compact = given.get("compact", "false")
    if compact not in ("true", "false"):
        raise Problem(422, "compact: expected true or false")
    return _Wanted(form, compact == "true")


def _accepted(accept: str) -> str:
    named = [item.partition(";")[0].strip().lower() for item in accept.split(",")]
    for name in named:
        if name in _FORMS:
            return _FORMS[name]
    known = ", ".join(name for name in _FORMS if "*" not in name)
    raise Problem(406, f"Accept: a snapshot comes as {known}")
