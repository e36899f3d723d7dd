"""How long a Kafka source keeps trying after errors, and when it asks the brokers again.

After an error the brokers are asked again at growing intervals, until the trouble has lasted for as
long as the caller has patience. It is over when there was no error for `CALM_S`: brokers that
answer only now and then do not end it.
"""

from __future__ import annotations

from . import clock
from .outage import Outage

FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.1, 2.0
CALM_S = 5.0  # without an error, after which trouble is over


class Trouble:
    """Trouble between one caller and the brokers; `outage` logs it."""

    def __init__(self, outage: Outage) -> None:
        self.outage = outage
        self._since: float | None = None  # None: there is none
        self._last_error = 0.0
        self._error = "the brokers do not answer"
        self._next_try = 0.0
        self._backoff = FIRST_BACKOFF_S

    def begins(self, since: float) -> None:
        """Count patience from `since`, of the clock, unless there was trouble before that."""
        self._since = self._since or since

    def fails(self, error: str, patience: float) -> float | None:
        """Note an error; None if it is worth asking again, else the seconds that the trouble has
        lasted."""
        now = self._last_error = clock.now()
        self._error = error
        self._since = self._since or now
        self._next_try = now + self._backoff
        self._backoff = min(2 * self._backoff, MAX_BACKOFF_S)
        self.outage.fails(error, patience, self._since)
        lasted = now - self._since
        return lasted if lasted >= patience else None

    def answered(self) -> None:
        """A request to the brokers succeeded."""
        self.outage.answered()
        if self._since is not None and clock.now() - self._last_error > CALM_S:
            self.ends()

    def ends(self) -> None:
        self._since, self._backoff = None, FIRST_BACKOFF_S

    def said(self) -> str | None:
        """What goes wrong and for how long; None if nothing does. May be called from any thread."""
        since = self._since
        if since is None:
            return None
        return f"not read for {clock.now() - since:.0f} s: {self._error}"

    @property
    def rests(self) -> bool:
        """Whether it is too early to ask again."""
        return clock.now() < self._next_try

    def rest(self, until: float = float("inf")) -> None:
        """Wait until it is time to ask again, but not beyond `until`, of the clock."""
        clock.sleep(max(0.0, min(until, self._next_try) - clock.now()))
