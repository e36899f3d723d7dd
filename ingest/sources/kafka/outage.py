"""An outage of the brokers, logged once when it begins and once when it is over; and how long a
source keeps trying.

Idea: every caller of the brokers reports here when it fails and when it is answered, and
kafka-python's own log lines about connections, dozens a minute while a broker is away, are taken as
signs of the same trouble instead of being printed. They also show what no caller notices: that one
broker of several stays away.

    event := "outage"        service, bootstrap, error, and patience_s, if a caller waits
           | "outage over"   service, bootstrap, seconds

An outage begins with the first failure, or after `SIGNS_S` of signs; it is over when there was
neither for `CALM_S`. A caller that fails while others are answered, since it needs more of the
brokers than they do, says who it is: then it is not over before that one is answered, too. Brokers
that were never reached have no outage where the caller soon tells of them itself: `reached=False`.
Lines of kafka-python about anything else are logged as they are, and so are those about connections
if its loggers are set to DEBUG.

A source (`Trouble`) asks the brokers again at growing intervals, until the trouble has lasted for
as long as its caller has patience. It is over when there was no error for `CALM_S`: brokers that
answer only now and then do not end it.
"""

from __future__ import annotations

import logging
import re
import threading
import weakref
from collections.abc import Mapping

from ...events import log_event
from . import clock

CALM_S = 5.0  # without an error, after which trouble is over
FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.1, 2.0
SIGNS_S = 8.0  # longer than callers take to notice it themselves

# How kafka-python 3.0 begins the lines about a broker that is away, by logger.
_SIGNS: Mapping[str, str] = {
    "kafka.net.transport": "",
    "kafka.net.inet": "",
    "kafka.net.http_connect": "",
    "kafka.net.socks5": "",
    "kafka.net.manager": "Bootstrap|Connection failed",
    "kafka.net.connection": r".*(Connection lost|Request timed out)",
    "kafka.cluster": "No node available|Metadata refresh|No broker metadata|Topic .* not found in",
    "kafka.consumer.fetcher": "(Fetch to node|Attempt to fetch|Discarding error in ListOff)",
    "kafka.producer.kafka": ".*(waiting for metadata|Overriding close timeout)",
    "kafka.producer.producer_batch": "Failed to produce",
    "kafka.producer.sender": ".*(Error sending|Got error produce|Aborting|Got an exception)",
    "kafka.producer.transaction_manager": "Fatal Error handling|Bumping producer epoch",
}

KAFKA = "Kafka"
_outages: weakref.WeakSet[Outage] = weakref.WeakSet()
_outages_lock = threading.Lock()


class Outage:
    """What is known of one cluster's trouble. reached: False if nothing is to be logged before an
    answer came. service: what is away, as messages call it; kafka-python's lines are signs of Kafka
    alone. May be used from any thread."""

    def __init__(self, bootstrap: str, *, reached: bool = True, service: str = KAFKA) -> None:
        self._bootstrap, self._service = bootstrap, service
        self._reached = reached
        self._lock = threading.RLock()  # a handler of these events may log something itself
        self._since: float | None = None  # of the outage that was logged; None: there is none
        self._first = self._latest = -float("inf")  # failure or sign, less than CALM_S apart
        self._sign = ""
        self._answered: float | None = None  # first since the latest failure or sign
        self._failing: set[object] = set()  # callers that said who they are
        if service == KAFKA:
            with _outages_lock:
                _outages.add(self)

    def fails(
        self, error: str, patience: float, since: float | None = None, caller: object = None
    ) -> None:
        """A request to the brokers failed, begun no earlier than `since`; it is repeated for
        `patience` seconds."""
        with self._lock:
            if caller is not None:
                self._failing.add(caller)
            began = self._note()
            if self._since is None and self._reached:
                self._since = began if since is None else min(began, since)
                log_event("outage", logging.WARNING, service=self._service, error=error,
                          bootstrap=self._bootstrap, patience_s=patience)  # fmt: skip

    def sign(self, text: str) -> None:
        """kafka-python had trouble with a connection."""
        with self._lock:
            self._note()
            self._sign = text

    def _note(self) -> float:
        """Note trouble now; returns when it began."""
        now = clock.now()
        if now - self._latest > CALM_S:
            self._first = now
        self._latest, self._answered = now, None
        return self._first

    def answered(self, caller: object = None) -> None:
        """A request to the brokers succeeded."""
        with self._lock:
            self._failing.discard(caller)
            self._reached = True
            if self._failing:
                return
            now = clock.now()
            calm = now - self._latest > CALM_S
            if self._answered is None:
                self._answered = now
            if self._since is not None:
                if calm:
                    self._log_over(self._answered)
            elif not calm and self._latest - self._first > SIGNS_S:
                self._since = self._first
                log_event("outage", logging.WARNING, service=self._service, error=self._sign,
                          bootstrap=self._bootstrap)  # fmt: skip

    def end(self, caller: object = None) -> None:
        """There are no more callers; this one says no more."""
        with self._lock:
            self._failing.discard(caller)
            if self._since is not None and self._answered is not None:
                self._log_over(self._answered)

    def _log_over(self, when: float) -> None:
        assert self._since is not None
        seconds = round(when - self._since, 1)
        log_event("outage over", logging.WARNING, service=self._service, seconds=seconds,
                  bootstrap=self._bootstrap)  # fmt: skip
        self._since = None


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


def _passes(record: logging.LogRecord) -> bool:
    """Whether a line of kafka-python is not about an outage, which is logged separately."""
    logger = logging.getLogger(record.name)
    if record.levelno < logging.WARNING or logger.isEnabledFor(logging.DEBUG):
        return True
    text = record.getMessage()
    if not re.match(_SIGNS[record.name], text):
        return True
    with _outages_lock:
        outages = list(_outages)
    for outage in outages:
        outage.sign(text[:500])
    return False


for _name in _SIGNS:
    logging.getLogger(_name).addFilter(_passes)
