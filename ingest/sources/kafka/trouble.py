"""How long a Kafka source keeps trying after errors, and when it asks the brokers again.

After an error the brokers are asked again at growing intervals, until the trouble has lasted for as
long as the caller has patience. It is over when there was no error for `CALM_S`: brokers that
answer only now and then do not end it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TypeVar

from ...closing import Closing
from ...errors import AwayError, IdentityError, OffsetError, SourceError
from . import clock
from .client import may_pass, said
from .outage import Outage
from .reader import Reader

from kafka.errors import KafkaError, LogTruncationError, OffsetOutOfRangeError  # isort: skip

RECONNECT_TIMEOUT_S = 2.0  # a poll may exceed its time-out by this
FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.1, 2.0
CALM_S = 5.0  # without an error, after which trouble is over

T = TypeVar("T")


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


class PatientReading(Closing):
    """Makes requests of a reader, and replaces it when it is lost: after any error but those that
    say the log is not what it was.

    topics, bootstrap: what is read. patience: seconds of trouble before SourceError is raised."""

    topics: tuple[str, ...]
    bootstrap: str

    def __init__(self, outage: Outage, patience: float) -> None:
        self.patience = patience
        self._trouble = Trouble(outage)
        self._reader: Reader | None = None  # None: lost, or not connected yet
        self._closed = False

    @abstractmethod
    def _open(self, timeout: float) -> Reader:
        """A reader that has reached a broker within `timeout` seconds."""

    @abstractmethod
    def _greet(self, reader: Reader) -> None:
        """Learn from the first reader what the log is, and let it read."""

    @abstractmethod
    def _meet(self, reader: Reader) -> None:
        """Check a reader in place of one that was lost, and let it read on. Raises IdentityError or
        OffsetError if the log is not what it was."""

    @abstractmethod
    def _explain(self, error: Exception) -> None:
        """Raise IdentityError or OffsetError if the log has lost what is to be read."""

    def _connect(self, timeout: float) -> None:
        """Connect for the first time: a broker that is away is waited for as it is later."""
        self._trouble.begins(clock.now())  # should there be any
        while self._reader is None:
            try:
                self._reader = self._open(timeout)
                self._greet(self._reader)
            except Exception as error:
                if not may_pass(error):
                    self._drop()
                    if isinstance(error, KafkaError):
                        where = f"{', '.join(self.topics)} at {self.bootstrap}"
                        raise SourceError(f"{where}: {said(error)}") from None
                    raise
                self._lost(error)
                self._trouble.rest()
            except BaseException:
                self._drop()
                raise
        self._trouble.ends()
        self._trouble.outage.answered()

    def _patiently(self, ask: Callable[[Reader], T]) -> T:
        """What `ask` returns, asked again after errors until the patience ends."""
        while True:
            answer = self._attempt(lambda reader: [ask(reader)])
            if answer is not None:
                return answer[0]
            self._trouble.rest()

    def _attempt(self, ask: Callable[[Reader], T]) -> T | None:
        """What `ask` returns of a reader, a new one if it was lost; None, and the reader lost,
        after an error. Raises errors that will not pass, SourceError if the patience ends."""
        if self._closed:
            raise SourceError(f"{self!r} is closed")
        if self._reader is None and self._trouble.rests:
            return None
        try:
            if self._reader is None:
                self._reader = self._open(RECONNECT_TIMEOUT_S)
                self._meet(self._reader)
            answer = ask(self._reader)
        except (IdentityError, OffsetError):
            raise
        except Exception as error:  # noqa: BLE001 - damaged bytes raise anything in kafka-python
            self._lost(error)
            return None
        self._trouble.answered()
        return answer

    def _lost(self, error: Exception) -> None:
        """After an error: close the reader, and let the next one be opened after a pause."""
        if isinstance(error, OffsetOutOfRangeError | LogTruncationError):
            self._explain(error)
        self._drop()
        lasted = self._trouble.fails(said(error), self.patience)
        if lasted is not None:
            raise AwayError(
                f"{', '.join(self.topics)} at {self.bootstrap}: not read for {lasted:.0f} s: "
                f"{said(error)}"
            ) from None

    def _drop(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
