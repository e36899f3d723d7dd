"""The topic of results is for nothing else: not one that the pipeline reads, which would then read
its own results as bad records, and not one of its replies or dead letters, behind which the newest
result would not be found after a crash (`sinks.LOOK_BACK`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..errors import PipelineError
from ..sources.base import Source
from ..sources.sqlite.file import MEMORY
from ..sources.sqlite.log import SqliteLog
from ..types import DEAD_LETTERS, RESULTS, Sink

if TYPE_CHECKING:
    from ..settings import Settings


def check_results_topic(source: Source, settings: Settings) -> None:
    """Raise PipelineError if results would go to a topic that this pipeline uses otherwise."""
    log, topic = _log_and_topic(settings.results, RESULTS)
    if not isinstance(log, Sink):
        return
    for use, other, name in _used(source, settings):
        if name == topic and _same(log, other):
            raise PipelineError(
                f"results is the topic {topic!r}, which is {use}: name another one, as "
                f"results=(log, {RESULTS!r})"
            )


def _used(source: Source, settings: Settings) -> Iterator[tuple[str, Any, str]]:
    """(use, log, topic) of what is read and written besides. Where no log is named for replies or
    dead letters, the source's own takes them."""
    # `topics` has those that are not there yet, too.
    for topic in source.topics or {partition.topic for partition in source.positions()}:
        yield "read", source, topic
    for topic in settings.reply_topics:
        yield "for replies", settings.replies or source, topic
    yield "for dead letters", *_log_and_topic(settings.dead_letters or source, DEAD_LETTERS)


def _log_and_topic(sink: Any, default: str) -> tuple[Any, str]:
    return sink if isinstance(sink, tuple) else (sink, default)


def _same(one: Any, other: Any) -> bool:
    """Whether these are one log: the same object, file, or a Kafka with a broker in common."""
    if one is other:
        return True
    if isinstance(one, SqliteLog) and isinstance(other, SqliteLog):
        return MEMORY not in (one.path, other.path) and _real(one) == _real(other)
    return bool(_brokers(one) & _brokers(other))


def _real(log: SqliteLog) -> str:
    return os.path.realpath(log.path)


def _brokers(log: Any) -> set[str]:
    return set(getattr(log, "bootstrap", "").split(",")) - {""}
