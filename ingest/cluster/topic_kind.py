"""What a sharded topic is written as: told by the name of an empty topic beside it.

Idea: rows do not say whether their edges stand once or for both ends, or what their vertices go by.
A second writer or a reader that takes them for something else would spoil them, or answer wrongly.
So the first write makes the topic `updates.directed.ids`, or one of the other five, and whoever
comes later looks which is there. A name is never trimmed by retention, and every log that has
topics can keep it.

A log in which it cannot be made is written all the same; that is told as an event.
"""

from __future__ import annotations

import logging

from ..errors import SourceError
from ..events import log_event
from ..sources.base import LogWriter

IN_AND_OUT, UNDIRECTED = "in-and-out", "undirected"  # the first: directed, with predecessors
_EDGES = ("directed", IN_AND_OUT, UNDIRECTED)
_VERTICES = ("ids", "names")


def noted_kinds(sink: LogWriter, topic: str) -> set[str]:
    """The kinds that were noted of a topic, as "undirected.ids": one, or none. Raises
    SourceError."""
    names = sink.topic_names()
    kinds = (f"{edges}.{vertices}" for edges in _EDGES for vertices in _VERTICES)
    return {kind for kind in kinds if f"{topic}.{kind}" in names}


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
        found = self._found(sink)
        if found - {self._kind, self._also}:
            raise self._differs(found)

    def note(self, sink: LogWriter) -> None:
        """Note that the topic is of this kind, before it is written to. Raises SourceError if it is
        of another."""
        found = self._found(sink)
        if not found:
            try:
                sink.create_topic(f"{self._topic}.{self._kind}", 1)
            except SourceError as error:
                log_event("kind not noted", logging.WARNING, topic=self._topic, problem=str(error))
            found = self._found(sink)  # another writer may have come first
        if found - {self._kind}:
            raise self._differs(found)

    def _found(self, sink: LogWriter) -> set[str]:
        return noted_kinds(sink, self._topic)

    def _differs(self, found: set[str]) -> SourceError:
        return SourceError(
            f"topic {self._topic!r} is written as {' and '.join(sorted(found))}, not as "
            f"{self._kind}: give the same directed, predecessors and names as its first writer; "
            "for anything else write another topic, which `lpma repartition` fills"
        )
