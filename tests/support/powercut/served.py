"""Updates over HTTP under power cuts: what was answered with 202 is in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ingest import Pipeline, RecordError, decode_record
from tests.support.asgi import call
from tests.support.stream_model import SavedModel

from .cases import records
from .logs import ToldLog, check_partition, remade
from .trace import mark

REQUESTS = 40


class Served:
    """One request after the other, each a record as the log has it. What is tested ends at the log:
    the pipeline does not step."""

    def prepare(self, directory: Path) -> None:
        pass

    def run(self, directory: Path, root: Path) -> None:
        from ingest.service.app import make_app
        from ingest.service.context import Context

        with ToldLog(root / "log") as log:
            mark(b"made")
            graph = SavedModel(predecessors=True)
            pipeline = Pipeline(log, graph)
            with Context(pipeline.requests, graph, pipeline) as context:  # type: ignore[arg-type]
                asyncio.run(_send_all(make_app(context)))

    def check(self, directory: Path, root: Path, marks: Sequence[bytes]) -> None:
        with remade(root / "log", marks, ("updates",)) as log:
            check_partition(log, marks, "updates")


def _updates() -> list[bytes]:
    """Records that are updates, without what the service refuses."""
    found = []
    for value in records(4 * REQUESTS):
        with suppress(RecordError):
            if not decode_record(value).queries:
                found.append(value)
    return found[:REQUESTS]


async def _send_all(app: object) -> None:
    for number, value in enumerate(_updates(), 1):
        mark(b"sending updates/0 " + value)
        answer = await call(app, "POST", "/v1/updates", value, "application/msgpack")
        if answer.status != 202:
            raise AssertionError(answer)
        mark(b"sent/updates/0 %d" % number)
