"""When records were written that wait to be applied, and that were applied last, by partition: how
old the state of the graph is.

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

    def of(self, offset: int) -> int:
        """When the record there was written, or the last one. REQUIRES: it is before `stop`."""
        return self.time if self.times is None else int(self.times[max(0, offset - self.start)])


class WrittenTimes:
    """By partition, in ms since 1970, as far as they are known; for any thread. applied: of the
    newest record that is applied; waiting: of the oldest in the buffer."""

    def __init__(self) -> None:
        self.applied: dict[Partition, int] = {}
        self.waiting: dict[Partition, int] = {}
        self._runs: dict[Partition, deque[_Run]] = defaultdict(deque)

    def buffer(self, polled: Polled) -> None:
        """Note what was polled from one place."""
        if polled.time > 0:
            times = polled.value.times if isinstance(polled.value, Values) else None
            run = _Run(polled.offset, polled.last + 1, polled.time, times)
            self._runs[polled.partition].append(run)
            self.waiting.setdefault(polled.partition, run.of(run.start))

    def apply(self, positions: Mapping[Partition, Position]) -> None:
        """All before these positions is applied."""
        for partition, (offset, _) in positions.items():
            runs, newest = self._runs[partition], 0
            while runs and runs[0].stop <= offset:
                newest = runs.popleft().time
            if not runs:
                self.waiting.pop(partition, None)
            else:
                self.waiting[partition] = runs[0].of(offset)
                if runs[0].times is not None and runs[0].start < offset:
                    newest = runs[0].of(offset - 1)
            if newest > 0:
                self.applied[partition] = newest
