"""`GET /v1/snapshot`: the whole graph at one version, as an Arrow stream or a NumPy archive.

    ?format=arrow | npz    what comes; absent: by `Accept`, and Arrow where both are as good
    ?compact=true          only rows that are vertices, renumbered: for graphs whose ids are sparse
    ?since=7d&half_life=2d a view in time: until and now, too (see `ingest/views.py`)

The pipeline's thread copies the graph between two batches. In another thread the copy is renumbered
if that is asked for, and becomes pieces (see `snapshot_forms.py`), which ends when nobody waits for
it any more; the event loop writes them as they lie, so that a byte is copied once, into the socket.
`Content-Length` is known, and a broken transfer is noticed.

A snapshot is as large as the graph, so at most `max_snapshots` exist at a time. Whoever asks for
the same meanwhile shares it, unless it is of an older version than the graph was when he asked;
others get 429. A client that reads more slowly than `LEAST_RATE` is dropped after `GRACE_S`, and
the copy is freed with its last reader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lpma.errors import SnapshotTooLarge

from ..views import ABOUT, view_of
from .context import Context
from .jobs import Job, Worker, copied, in_turn
from .media import ARROW, NPZ, SNAPSHOTS, accepted
from .messages import SnapshotQuery, parameters
from .problems import Problem
from .snapshot_forms import Pieces, on_host, pieces_of

MAX_SECONDS = 300.0  # that a client waits until the first byte
CHUNK_BYTES = 1 << 20  # written at once
GRACE_S = 30.0
LEAST_RATE = 1 << 20  # bytes a second
MAX_READERS = 16  # of one snapshot

FORMATS = {"arrow": ARROW, "npz": NPZ}


def handlers(context: Context) -> dict[str, Any]:
    snapshots = _Snapshots(context)
    context.on_close(snapshots.close)
    return {"snapshot": snapshots.get}


class _Wanted(NamedTuple):
    form: str
    compact: bool
    view: dict[str, int]  # as `Graph.snapshot` takes it


class _Made(NamedTuple):
    """A snapshot as it is sent."""

    version: int
    time: int
    pieces: Pieces


@dataclass(eq=False)
class _Kept:
    """A snapshot that is being made or sent. users: who wait for it, or read it."""

    wanted: _Wanted
    work: Job[_Made]
    users: int = 0

    def serves(self, wanted: _Wanted, least: int) -> bool:
        """Whether one more who wants this may share it, of version `least` or later."""
        made = self.work.result
        is_new = self.work.is_open if made is None else made.version >= least
        return is_new and self.wanted == wanted and self.users < MAX_READERS


class _Snapshots:
    """The endpoint, with the snapshots that are being made or sent. Used by the event loop
    alone."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._kept: list[_Kept] = []
        self._worker = Worker("lpma-snapshot")

    def close(self) -> None:
        self._worker.close()

    async def get(self, request: Request) -> Response:
        wanted = _wanted(request)
        least = await in_turn(self._context, lambda view: view.version)
        while True:
            kept = next((k for k in self._kept if k.serves(wanted, least)), None)
            kept = kept or self._begin(wanted)
            kept.users += 1
            try:
                late = f"not made within {MAX_SECONDS:g} s: take `lpma export` on a checkpoint"
                made = await kept.work.wait(request.receive, MAX_SECONDS, late)
            except BaseException:
                self.leave(kept)
                raise
            if made.version >= least:
                return _Sending(made, wanted.form, partial(self.leave, kept))
            self.leave(kept)  # it was begun before, and is behind

    def leave(self, kept: _Kept) -> None:
        """One less waits for it or reads it."""
        kept.users -= 1
        if not kept.users:
            self._kept.remove(kept)

    def _begin(self, wanted: _Wanted) -> _Kept:
        """A new one. Raises Problem if there are as many as may be."""
        if len(self._kept) >= self._context.limits.max_snapshots:
            raise Problem(
                429,
                "a snapshot of another version, format, view or compact is being sent: ask again "
                "later",
                retry_after_s=1,
            )
        kept = _Kept(wanted, self._worker.begin(lambda job: self._make(wanted, job)))
        self._kept.append(kept)
        return kept

    # The worker's thread ---------------------------------------------------------------------

    def _make(self, wanted: _Wanted, job: Job[_Made]) -> _Made:
        try:
            view, finish = job.copied(
                self._context, partial(copied, compact=wanted.compact, view=wanted.view)
            )
        except SnapshotTooLarge:
            raise Problem(
                422, "the largest id asks for too large an array: ask with compact=true"
            ) from None
        s = finish()
        if view.names is not None:
            ids = {"ids": s._ids} if s._ids is not None else {"rows": s.num_rows}
            s = s._with(names=view.names.frozen(**ids))
        job.check()
        return _Made(s.version, view.time, pieces_of(on_host(s), wanted.form, job.check))


class _Sending(Response):
    """The pieces of a snapshot, as fast as they are read. leave: called when that is over."""

    def __init__(self, made: _Made, form: str, leave: Callable[[], None]) -> None:
        headers = {
            "Content-Length": str(made.pieces.size),
            "Lpma-Version": str(made.version),
            "Lpma-Time": str(made.time),
        }
        super().__init__(None, 200, headers, form)
        self._pieces = made.pieces
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            await send(started)
            await self._send_all(send)
        except TimeoutError:
            pass  # the server closes a connection whose answer is not whole
        finally:
            self._leave()

    async def _send_all(self, send: Send) -> None:
        loop = asyncio.get_running_loop()
        began, done = loop.time(), 0
        async with asyncio.timeout(GRACE_S) as limit:
            for chunk in self._pieces.chunks(CHUNK_BYTES):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                done += chunk.nbytes
                limit.reschedule(began + GRACE_S + done / LEAST_RATE)
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def _wanted(request: Request) -> _Wanted:
    query = parameters(request.scope["query_string"], SnapshotQuery)
    accept = request.headers.get("accept", "")
    form = accepted(accept, SNAPSHOTS) if query.format is UNSET else FORMATS[query.format]
    given = {name: getattr(query, name) for name in ABOUT}
    texts = {name: None if text is UNSET else text for name, text in given.items()}
    return _Wanted(form, query.compact == "true", view_of(texts))
