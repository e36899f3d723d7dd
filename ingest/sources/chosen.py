"""Which partitions of its topics a source reads: all, or those that a shard was given.

Ownership is by number, so a number that the topic does not have is an error: whoever chose it
counts on more partitions than there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..errors import SourceError
from ..types import Partition


class Chosen:
    """The partitions that are read of `topics`. numbers: by topic; a topic that it does not name is
    read whole, and so are all if it is None. Raises SourceError if it names another topic, or
    something that is not a partition number."""

    def __init__(
        self, topics: Sequence[str], numbers: Mapping[str, Iterable[int]] | None = None
    ) -> None:
        self._numbers = {topic: frozenset(some) for topic, some in (numbers or {}).items()}
        self.are_all = not self._numbers
        if others := sorted(self._numbers.keys() - set(topics)):
            raise SourceError(
                f"partitions of topic {others[0]!r} were chosen, but the topics read are "
                f"{', '.join(topics)}"
            )
        for topic, some in self._numbers.items():
            for number in some:
                if type(number) is not int or number < 0:
                    raise SourceError(
                        f"{number!r} is not a partition of topic {topic!r}: give numbers from 0 on"
                    )

    def __contains__(self, partition: Partition) -> bool:
        numbers = self._numbers.get(partition.topic)
        return numbers is None or partition.number in numbers

    def check(self, found: Iterable[Partition]) -> None:
        """Raise SourceError if a number was chosen that is not among the partitions `found`."""
        there = set(found)
        for topic, numbers in self._numbers.items():
            if unknown := sorted(n for n in numbers if Partition(topic, n) not in there):
                count = sum(partition.topic == topic for partition in there)
                raise SourceError(
                    f"topic {topic!r} has no partition {unknown[0]}, only {count} of them, counted "
                    "from 0: make it with as many as its writers and readers are told"
                )

    def topics(self, topics: Sequence[str]) -> list[str]:
        """Those of these topics of which anything is read."""
        return [topic for topic in topics if self._numbers.get(topic, True)]


def readable(
    only: Iterable[Partition] | None, partitions: Iterable[Partition]
) -> frozenset[Partition] | None:
    """`only` as a set. Raises SourceError if one of them is not among the `partitions` read."""
    if only is None:
        return None
    chosen = frozenset(Partition(*partition) for partition in only)
    if unknown := sorted(chosen - set(partitions)):
        topic, number = unknown[0]
        raise SourceError(f"{topic}/{number} is not read here, so it cannot be read alone")
    return chosen
