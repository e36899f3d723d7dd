"""`POST /v1/updates`: records into the pipeline's log.

    202  the records are in the log, synced; also where ?wait=applied waited in vain for the graph
    200  with ?wait=applied: they are in the graph, as of the version in the answer; or they were
         dropped, since their source had sent a seq as high before: the answer says `repeated`
    409  the stream comes from a file, or is a saved store: nothing can be written
    4xx, 503  nothing was written, unless the problem's type is `MAYBE_WRITTEN`: then the log did
         not answer in time, or refused a part, or the service was closed meanwhile, and nobody
         knows: with `source` and `seq` the same request may be sent again, and is applied once

It is answered by a deadline, once its body is judged. What is being written then is written or not,
and goes on; a request that nobody has begun to write is taken back.

All goes to partition 0 of one topic, so that requests of a client are applied in their order, and a
source's repeats are found. A body is decoded in a thread of its own where it is long.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ..errors import RecordError, SourceError
from ..pipeline.pipeline import Pipeline
from ..pipeline.windows import NO_TIMES
from ..sources.base import Log
from ..types import MAX_TEXT_BYTES, QUERIES, UPDATES, Partition
from .context import Context
from .jobs import seen
from .messages import UpdatesQuery, parameters
from .problems import Problem
from .update_codecs import Producer, Records, Stream, records_of
from .writer import QueueFull, UpdateWriter, Written

LONG_BYTES = 16 << 10  # of a body, which is decoded in another thread
MAYBE_WRITTEN = "urn:lpma:maybe-written"


def handlers(context: Context) -> dict[str, Any]:
    updates = _Updates(context)
    context.on_close(updates.close)
    return {"updates": updates.post}


class _Updates:
    """The endpoint, with its writer."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._limits = context.limits
        self._writer: UpdateWriter | None = None
        self._refusal = "this is a saved store, which never changes: serve a stream"
        if context.pipeline is not None:
            self._open(context.pipeline, context.update_topic)
        self._decoder = ThreadPoolExecutor(1, "lpma-updates")
        self._new: set[str] = set()  # sources let in that the stream may not have met yet

    def _open(self, pipeline: Pipeline, topic: str | None) -> None:
        source = pipeline.source
        if not isinstance(source, Log):
            self._refusal = source.why_read_only or (
                "this stream comes from a file, which nobody appends to: serve a log"
            )
            return
        found = _topic_of(pipeline, topic)
        if found is None:
            read = ", ".join(_written_to(pipeline))
            self._refusal = (
                f"this stream reads the topics {read}: say which one takes updates when it is "
                "started, with serve.updates_topic, or Context(update_topic=…)"
                if read
                else "this stream reads no topic of updates"
            )
            return
        partition = Partition(found, 0)
        patience = self._limits.deadline_s
        self._writer = UpdateWriter(
            lambda: source.writer(patience), partition, self._limits.max_waiting
        )

    def close(self) -> None:
        self._decoder.shutdown(cancel_futures=True)
        if self._writer is not None:
            self._writer.close()

    async def post(self, request: Request) -> Response:
        pipeline = self._context.pipeline
        if self._writer is None or pipeline is None:
            raise Problem(409, self._refusal)
        waits, producer = _asked(request)
        records = await self._records(request, producer, pipeline, self._writer.partition.topic)
        if records.expires and not self._context.graph.has_times:
            raise Problem(422, NO_TIMES)
        if records.source is not None:
            self._let_in(pipeline, self._writer.partition, records.source)
        until = asyncio.get_running_loop().time() + self._limits.deadline_s
        try:
            written = await self._written(self._writer, records, until)
        except Problem:
            self._new.discard(records.source or "")
            raise
        place: dict[str, Any] = {
            **self._writer.partition._asdict(),
            "offset": written.first,
            "last": written.last,
            "operations": records.operations,
        }
        place["partition"] = place.pop("number")
        if waits and written.last is not None:
            version = await self._applied(self._writer.partition, written.last, until)
            if version is not None:
                repeated = pipeline.decoder.reader.is_repeat(self._writer.partition, written.last)
                return JSONResponse({**place, "version": version, "repeated": repeated})
        return JSONResponse(place, 202)

    # A body, read and judged -----------------------------------------------------------------

    async def _records(
        self, request: Request, producer: Producer, pipeline: Pipeline, topic: str
    ) -> Records:
        body, settings = await request.body(), pipeline.settings
        stream = Stream(settings.names, settings.fields_of(topic))
        given = request.headers.get("content-type", ""), body, producer, stream
        if len(body) < LONG_BYTES:
            return records_of(*given)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._decoder, records_of, *given)

    def _let_in(self, pipeline: Pipeline, partition: Partition, source: str) -> None:
        """Refuse one source more than the stream remembers: its records would not be applied."""
        if source in self._new or pipeline.decoder.reader.knows(partition, source):
            return
        if len(self._new) >= pipeline.decoder.reader.producers_left(partition):
            self._new = {n for n in self._new if not pipeline.decoder.reader.knows(partition, n)}
            if len(self._new) >= pipeline.decoder.reader.producers_left(partition):
                raise Problem(
                    409,
                    "the stream remembers no more sources: keep the name of yours, or send without "
                    "source and seq",
                )
        self._new.add(source)

    # The log, and the graph ------------------------------------------------------------------

    async def _written(self, writer: UpdateWriter, records: Records, until: float) -> Written:
        """Where the records lie. Raises Problem by `until`, of the loop's clock."""
        try:
            future = writer.append(records.values)
        except QueueFull as error:
            raise _busy(str(error)) from None
        try:
            done = await _done(future, until)
        except asyncio.CancelledError:
            if future.cancel():
                raise  # nobody has begun to write it
            raise _maybe_written(503, "the service is being closed") from None
        if not done:
            if future.cancel():
                raise _busy("the log does not answer: nothing was written, send it again later")
            raise _maybe_written(503, "the log does not answer")
        try:
            return future.result()
        except SourceError as error:
            raise _maybe_written(503, str(error)) from None
        except RecordError as error:
            raise _maybe_written(413, str(error)) from None

    async def _applied(self, partition: Partition, offset: int, until: float) -> int | None:
        """The version by which the graph has it; None if that took too long, or the stream or the
        service ends."""
        future: Future[int] = self._context.requests.when_applied(partition, offset)
        try:
            done = await _done(future, until)
        except asyncio.CancelledError:
            done = False  # it is in the log: the client shall know
        if not done:
            future.cancel()
            return None
        return None if future.exception() is not None else future.result()


async def _done(future: Future[Any], until: float) -> bool:
    """Whether a future is done by then. It stays as it is, also where this is cancelled."""
    waiting = asyncio.wrap_future(future)
    waiting.add_done_callback(seen)
    await asyncio.wait({waiting}, timeout=max(0.0, until - asyncio.get_running_loop().time()))
    return future.done()


def _topic_of(pipeline: Pipeline, topic: str | None) -> str | None:
    """Where updates are written: the topic that is named, "updates", or the only one; None if there
    are several. Raises SourceError if the pipeline does not read it."""
    topics = _written_to(pipeline)
    if topic is None:
        only = topics[0] if len(topics) == 1 else None
        return UPDATES if UPDATES in topics else only
    if topic not in topics:
        raise SourceError(
            f"updates cannot go to topic {topic!r}, which is not read for them: name one of "
            f"{', '.join(topics)}"
        )
    return topic


def _written_to(pipeline: Pipeline) -> list[str]:
    """The topics that are read, but that of queries."""
    return sorted({partition.topic for partition in pipeline.positions()} - {QUERIES})


def _asked(request: Request) -> tuple[bool, Producer]:
    """Whether the request waits for the graph, and who sends it, as its query says."""
    query = parameters(request.scope["query_string"], UpdatesQuery)
    source = None if query.source is UNSET else query.source
    if source is not None and len(source.encode()) > MAX_TEXT_BYTES:
        raise Problem(422, f"source: text of 1 to at most {MAX_TEXT_BYTES} bytes is taken")
    return query.wait is not UNSET, Producer(source, None if query.seq is UNSET else query.seq)


def _busy(detail: str) -> Problem:
    return Problem(503, detail, retry_after_s=1)


def _maybe_written(status: int, detail: str) -> Problem:
    return Problem(
        status,
        f"{detail}. Whether it was written is not known: with source and seq the same request may "
        "be sent again, and is applied once",
        retry_after_s=1 if status == 503 else None,
        type=MAYBE_WRITTEN,
    )
