"""Whose query topic a topic is: told by the name of an empty topic beside it.

Idea: a query says which vertex it is about, not which graph. Shards of two graphs that read one
query topic would both answer, and whoever asked takes the first reply. So each sharded topic has
query topics of its own, and the pair is noted as `queries.of.updates`, an empty topic, as
`topic_kind.py` does for kinds. Any number of clusters may read one pair: they are the same graph.

A note whose sharded topic is gone counts for nothing. A log in which notes cannot be made is used
all the same; that is told as an event.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from ..errors import SourceError
from ..events import log_event
from ..sources.base import LogWriter
from .topic_kind import noted_kinds

_OF = ".of."


class QueryTopics:
    """The query topics of one graph. pairs: (sharded topic, query topic); the second pair, if there
    is one, is that of edges turned round. Raises SourceError if these cannot be so many topics."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._pairs = pairs
        names = [name for pair in pairs for name in pair]
        for name in names:
            if not isinstance(name, str) or not name:
                raise SourceError(f"{name!r} is no name of a topic: expected text")
        if len(set(names)) < len(names):
            raise SourceError(
                f"updates and queries each need a topic of their own, not {', '.join(names)}: name "
                f"one for queries, {self._remedy}"
            )

    def check(self, sink: LogWriter) -> None:
        """Raise SourceError if a query topic belongs to another graph, or holds updates, or if a
        sharded topic is a query topic itself."""
        names = sink.topic_names()
        for topic, queries in self._pairs:
            if others := _owners(names, queries) - {topic}:
                raise SourceError(
                    f"topic {queries!r} has the queries of {_listed(others)}, whose shards would "
                    f"answer those of {topic!r} too: name one of its own, {self._remedy}"
                )
            if _is_sharded(sink, names, queries):
                raise SourceError(
                    f"topic {queries!r} is a sharded topic of updates: name one for queries alone, "
                    f"{self._remedy}"
                )
            if others := _owners(names, topic):
                raise SourceError(
                    f"topic {topic!r} has the queries of {_listed(others)}: choose another for "
                    "updates"
                )

    def note(self, sink: LogWriter) -> None:
        """Note whose query topics they are. Raises SourceError as `check` does."""
        for topic, queries in self._pairs:
            name = f"{queries}{_OF}{topic}"
            if name in sink.topic_names():
                continue
            try:
                sink.create_topic(name, 1)
            except SourceError as error:
                problem = str(error)
                log_event("query topic not noted", logging.WARNING, topic=queries, problem=problem)
        self.check(sink)  # another graph may have come first

    @property
    def _remedy(self) -> str:
        own = f"{self._pairs[0][0]}.queries"
        return (
            f"queries={own!r} (`--query-topic` of `lpma cluster run`, `--queries` of "
            "`lpma repartition`)"
        )


def _owners(names: Collection[str], queries: str) -> set[str]:
    """The sharded topics whose queries it has, as far as that was noted."""
    start = f"{queries}{_OF}"
    found = {name.removeprefix(start) for name in names if name.startswith(start)}
    return found & set(names)


def _is_sharded(sink: LogWriter, names: Collection[str], topic: str) -> bool:
    """Whether it is known to be a sharded topic."""
    noted = (name.removesuffix(f"{_OF}{topic}") for name in names if name.endswith(_OF + topic))
    return bool(noted_kinds(sink, topic)) or any(queries in names for queries in noted)


def _listed(topics: Collection[str]) -> str:
    return " and ".join(map(repr, sorted(topics)))
