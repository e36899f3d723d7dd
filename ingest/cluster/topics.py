"""What the topics of a sharded graph are for, told by the names of empty topics beside them.

Idea: rows do not say whether their edges stand once or for both ends, or what their vertices go by,
and a query does not say which graph it is about. Whoever takes them for something else would spoil
a topic, or answer wrongly. A note that is a topic's name is never trimmed by retention, and every
log that has topics can keep it:

    updates.directed.ids    how `updates` is written, noted by its first writer; or another kind
    queries.of.updates      the shards of `updates`, and no others, answer `queries`

Any number of clusters may read one pair of topics: they are the same graph. A note about queries
whose sharded topic is gone does not count. A log in which notes cannot be made is used all the
same; an event says so.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from ..errors import SourceError
from ..events import log_event
from ..sources.base import LogWriter

IN_AND_OUT, UNDIRECTED = "in-and-out", "undirected"  # the first: directed, with predecessors
_NO_IN_TOPICS = (
    "predecessors=True needs the topics of edges turned round: ingest.create_sharded(…, "
    "predecessors=True) makes them, and a PartitionedSink with predecessors=True fills them"
)
_EDGES = ("directed", IN_AND_OUT, UNDIRECTED)
_VERTICES = ("ids", "names")
_OF = ".of."


def in_topic(topic: str) -> str:
    """The topic that holds the edges of `topic` turned round, or the queries about them."""
    return f"{topic}.in"


def topic_pairs(topic: str, queries: str, predecessors: bool) -> list[tuple[str, str]]:
    """Each sharded topic of a graph, and the topic of the queries that its partitions answer."""
    turned = [(in_topic(topic), in_topic(queries))] if predecessors else []
    return [(topic, queries), *turned]


def shared_partitions(log: LogWriter, topics: Collection[str]) -> int:
    """How many partitions each of these topics of a graph has, which its shards share. Raises
    SourceError if one is not there, or has another number."""
    counts: dict[str, int] = {}
    for topic in topics:
        try:
            counts[topic] = log.partitions_of(topic)
        except SourceError as error:
            if not counts or not topic.endswith(in_topic("")):
                raise
            raise SourceError(f"{error}: {_NO_IN_TOPICS}") from None
    if len(set(counts.values())) > 1:
        raise SourceError(
            f"these topics need as many partitions, and have {counts}: make them together, with "
            "ingest.create_sharded"
        )
    return next(iter(counts.values()))


def noted_kinds(sink: LogWriter, topic: str) -> set[str]:
    """The kinds that were noted of a topic, as "undirected.ids": one, or none."""
    names = sink.topic_names()
    kinds = (f"{edges}.{vertices}" for edges in _EDGES for vertices in _VERTICES)
    return {kind for kind in kinds if f"{topic}.{kind}" in names}


def _note(sink: LogWriter, name: str, failure: str, topic: str) -> None:
    try:
        sink.create_topic(name, 1)
    except SourceError as error:
        log_event(failure, logging.WARNING, topic=topic, problem=str(error))


class TopicKind:
    """How `topic` is written. directed, predecessors, names: as of `PartitionedSink`."""

    def __init__(self, topic: str, directed: bool, predecessors: bool, names: bool) -> None:
        self._topic = topic
        edges = _EDGES[(1 if predecessors else 0) if directed else 2]
        self._kind = f"{edges}.{_VERTICES[names]}"
        self._also = f"{IN_AND_OUT}.{_VERTICES[names]}" if edges == "directed" else self._kind

    def check(self, sink: LogWriter) -> None:
        """Raise SourceError if the topic is known to be of a kind that cannot be read as this one.
        Whoever asks for no predecessors may read what holds them."""
        self._check_kinds(noted_kinds(sink, self._topic), self._kind, self._also)

    def note(self, sink: LogWriter) -> None:
        """Note that the topic is of this kind, before it is written to. Raises SourceError if it is
        of another."""
        if not noted_kinds(sink, self._topic):
            _note(sink, f"{self._topic}.{self._kind}", "kind not noted", self._topic)
        # Another writer may have come first.
        self._check_kinds(noted_kinds(sink, self._topic), self._kind)

    def _check_kinds(self, found: set[str], *allowed: str) -> None:
        if found.difference(allowed):
            raise SourceError(
                f"topic {self._topic!r} is written as {' and '.join(sorted(found))}, not as "
                f"{self._kind}: give the same directed, predecessors and names as its first "
                "writer; for anything else write another topic, which `lpma repartition` fills"
            )


class QueryTopics:
    """The query topics of one graph. pairs: see `topic_pairs`. Raises SourceError if these cannot
    be so many topics."""

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
            noted = (f"{other}{_OF}{queries}" in names for other in names)
            if noted_kinds(sink, queries) or any(noted):
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
            if (name := f"{queries}{_OF}{topic}") not in sink.topic_names():
                _note(sink, name, "query topic not noted", queries)
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
    return {name.removeprefix(start) for name in names if name.startswith(start)} & set(names)


def _listed(topics: Collection[str]) -> str:
    return " and ".join(map(repr, sorted(topics)))
