"""When the newest record that was applied was written, by partition: how old the graph's state is.

Idea: what is polled waits in the buffer, and is applied in the order of its offsets. So the times
of what waits are kept beside it, and passed over as the positions move. A source that knows no
times has none here.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from typing import NamedTuple

from ..types import Array, Partition, Polled, Position, Values


class _Run(NamedTuple):
    """Records at consecutive offsets, and when they, or the last of them, were written."""

    start: int
    stop: int
    time: int
    times: Array | None

    def before(self, offset: int) -> int:
        """When the last record before this offset was written; 0: not known."""
        if offset >= self.stop:
            return self.time
        if self.times is None or offset <= self.start:
            return 0
        return int(self.times[offset - 1 - self.start])


class WrittenTimes:
    """newest: ms since 1970, of the newest record of each partition that is applied. It may be read
    from any thread."""

    def __init__(self) -> None:
        self.newest: dict[Partition, int] = {}
        self._waiting: dict[Partition, deque[_Run]] = defaultdict(deque)

    def buffered(self, polled: Polled) -> None:
        """Note what was polled from one place."""
        if polled.time > 0:
            times = polled.value.times if isinstance(polled.value, Values) else None
            run = _Run(polled.offset, polled.last + 1, polled.time, times)
            self._waiting[polled.partition].append(run)

    def applied(self, positions: Mapping[Partition, Position]) -> None:
        """All before these positions is applied."""
        for partition, position in positions.items():
            waiting = self._waiting[partition]
            written = 0
            while waiting and waiting[0].stop <= position.offset:
                written = waiting.popleft().time
            if waiting:
                written = waiting[0].before(position.offset) or written
            if written > 0:
                self.newest[partition] = written
