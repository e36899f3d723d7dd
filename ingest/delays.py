"""What has been under way for long, told by another thread than the one that waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SLOW_S = 5.0  # from which on it is told


class Delay:
    """Something that is done again and again, one at a time. clock: in seconds.

    >>> from ingest.delays import Delay
    >>> now = 100.0
    >>> writing = Delay("results are not written", lambda: now)
    >>> with writing.under_way():
    ...     now += 7
    ...     print(writing.said("no broker answers"))
    results are not written for 7 s: no broker answers
    >>> print(writing.said())
    None
    """

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._clock = clock
        self._since: float | None = None

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Within, it is done. What an error ends stays undone, and is told so."""
        self._since = self._clock()
        yield
        self._since = None

    def said(self, why: str | None = None) -> str | None:
        """That it takes long, and why; None if it does not. May be called from any thread."""
        since = self._since
        if since is None or (lasted := self._clock() - since) < SLOW_S:
            return None
        return f"{self._what} for {lasted:.0f} s: {why or 'no answer from where they go'}"
