"""Requests: what other threads ask of the graph, done between two batches by the thread that
applies them.

Idea: a request has a place in the stream as a query of the log has, after all that was buffered
when it was made and before whatever is buffered later. It is answered between two batches, by the
thread that applies them, so nobody else touches the graph and nobody waits for a lock. Nothing of
it is written to the journal: whoever gets no answer asks again.

Invariants:
1. A request is answered once everything that was buffered before it was made is applied.
2. The time of its view is no less than any stamp applied before, and no more than any after.
3. No answer leaves before the journal is synced, so a resume comes to the same versions.
4. Every future is settled: by an answer, an error, or the end of the stream.
5. `told` is no less than any version that anybody was told. So an answer may be kept and given
   again to a later caller if its version is no less than `told` was when that caller asked.

Beside a stream that flows, requests get a fifth of the time (`SHARE`), the syncs of the journal
included, and batches are not cut short more often than every `PACE_S`; with nothing buffered they
are answered at once. So are those of the stream's own thread (`ask_here`), which reads nothing
meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..errors import PipelineError
from ..types import Partition, Position

if TYPE_CHECKING:
    from lpma.names import Names

Result = TypeVar("Result")

PACE_S = 0.01  # between two answers of a stream that flows
SHARE = 4  # of the stream's time to that of requests
MOST_PACE_S = 1.0  # however long one took
FLOWING_SHARE_S, IDLE_SHARE_S = 0.05, 0.25  # of one answer, beside a stream that flows or rests


class GraphView(NamedTuple):
    """What a request sees: the graph between two batches.

    names: the dictionary of a stream whose graph has none of its own; None: the graph takes and
    returns what its vertices go by. time: ms since 1970. share_s: how long work that comes in parts
    may hold up the stream."""

    graph: Any
    names: Names | None
    version: int
    time: int
    share_s: float = IDLE_SHARE_S

    def by_id(self) -> GraphView:
        """The same with the names beside the graph, whose vertices go by ids, wherever they are."""
        own = self.graph.names
        return self if own is None else self._replace(graph=self.graph._by_id(), names=own)


@dataclass(frozen=True)
class _Request:
    work: Callable[[GraphView], Any]
    future: Future[Any]
    after: int  # operations were buffered since the start when it was made


class GraphRequests:
    """The requests that wait for one pipeline, or for the thread of a saved store: the owner.

    wake: lets the owner, if it waits for something else, look at them; called from any thread.
    buffered: how many operations were ever buffered, counted by the owner before a request may have
    to see them."""

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self.buffered = 0
        self.read: dict[Partition, int] = {}  # by the owner too: the offsets that come next
        self.stepped_at = 0.0  # by the monotonic clock: when the stream last stood between batches
        self.asked_at = 0.0  # by the monotonic clock: when a request last came
        self.told = -1  # the newest version that anybody was told, or may be at any moment
        self._wake = wake
        self._lock = threading.Lock()
        self._requests: list[_Request] = []
        self._awaited: list[tuple[Partition, int, Future[int]]] = []
        self._first: dict[Partition, int] = {}  # awaited of each; replaced and never changed
        self._closed: Exception | None = None
        self._here: Future[Any] | None = None  # of the owner's own request
        self._due = 0.0  # when a stream that flows may answer next

    # Any thread ------------------------------------------------------------------------------

    def ask(self, work: Callable[[GraphView], Result]) -> Future[Result]:
        """What `work` returns, or raises, when it is called between two batches. It holds up the
        stream, so it should be short. The future raises PipelineError if the stream ends first."""
        future = self._asked(work)
        self._told(future)
        return future

    def _asked(self, work: Callable[[GraphView], Result]) -> Future[Result]:
        """A request, put behind the others unless all has ended."""
        future: Future[Result] = Future()
        with self._lock:
            if self._closed is None:
                self._requests.append(_Request(work, future, self.buffered))
        return future

    def when_applied(self, partition: Partition, offset: int) -> Future[int]:
        """The version by which the record at that place is in the graph, or was refused or dropped
        as a repeat. The future raises PipelineError if the stream ends first."""
        future: Future[int] = Future()
        with self._lock:
            if self._closed is None:
                self._awaited.append((partition, offset, future))
                if offset < self._first.get(partition, offset + 1):
                    self._first = self._first | {partition: offset}
        self._told(future)
        return future

    def note_told(self, version: int) -> None:
        """To be called before a version that was not read here is told (invariant 5)."""
        with self._lock:
            self.told = max(self.told, version)

    @property
    def ended(self) -> str | None:
        """Why nothing is answered any more; None while the stream runs."""
        return None if self._closed is None else str(self._closed)

    def _told(self, future: Future[Any]) -> None:
        if self._closed is not None:
            _settle(future, None, self._closed)  # unless `close` has done so just now
            return
        self.asked_at = time.monotonic()
        self._wake()

    # The owner's thread ----------------------------------------------------------------------

    def ask_here(self, work: Callable[[GraphView], Result]) -> Future[Result]:
        """As `ask`, for the owner itself, which buffers nothing more until it is answered. So it
        need not wait for its turn beside a stream that flows, and batches stay as large."""
        future = self._here = self._asked(work)
        if self._closed is not None:
            _settle(future, None, self._closed)
        return future

    def due(self, flows: bool) -> float | None:
        """In how many seconds an answer is due, 0 for now; None if there is nothing to answer:
        nobody asks, and no record that is waited for is buffered. flows: whether something is
        buffered, or known to be there to read."""
        if self._here is not None and not self._here.done():
            return 0.0
        if not self._requests and not self._has_awaited():
            return None
        return max(0.0, self._due - time.monotonic()) if flows else 0.0

    def _has_awaited(self) -> bool:
        """Whether a record that is waited for was buffered, so that it helps to cut a batch."""
        read = self.read
        return any(offset < read.get(partition, 0) for partition, offset in self._first.items())

    def answer(self, view: GraphView, applied: int, sync: Callable[[], None]) -> None:
        """Answer the requests that `applied` operations, of all that were ever buffered, are enough
        for. sync: called before the answers leave; what it raises is raised here."""
        with self._lock:
            now = [request for request in self._requests if request.after <= applied]
            self._requests = [r for r in self._requests if r.after > applied]
        if not now:
            return
        started = time.monotonic()
        self.note_told(view.version)
        _tell([(request.future, *_worked(request, view)) for request in now], sync)
        self._answered(started)

    def _answered(self, started: float) -> None:
        now = time.monotonic()
        self._due = now + min(max(PACE_S, SHARE * (now - started)), MOST_PACE_S)

    def moved(
        self, positions: Mapping[Partition, Position], version: int, sync: Callable[[], None]
    ) -> None:
        """Tell whoever waits for records that the stream now stands at `positions`. sync: as for
        `answer`."""
        self.stepped_at = time.monotonic()
        if not self._awaited:
            return
        there: list[tuple[Partition, int, Future[int]]] = []
        left: list[tuple[Partition, int, Future[int]]] = []
        first: dict[Partition, int] = {}
        with self._lock:
            for awaited in self._awaited:
                partition, offset, future = awaited
                if future.cancelled():
                    continue
                if _is_past(positions, partition, offset):
                    there.append(awaited)
                else:
                    left.append(awaited)
                    first[partition] = min(offset, first.get(partition, offset))
            self._awaited, self._first = left, first
        if there:
            self.note_told(version)
            _tell([(future, version, None) for _, _, future in there], sync)
            self._answered(time.monotonic())

    def close(self, why: str) -> None:
        """Answer nothing from now on: every request, also one that waits, raises PipelineError."""
        with self._lock:
            self._closed = self._closed or PipelineError(why)
            futures = [r.future for r in self._requests] + [a[2] for a in self._awaited]
            self._requests, self._awaited, self._first = [], [], {}
        for future in futures:
            _settle(future, None, self._closed)


def _worked(request: _Request, view: GraphView) -> tuple[Any, Exception | None]:
    if request.future.cancelled():
        return None, None
    try:
        return request.work(view), None
    except Exception as error:  # noqa: BLE001 - it is whoever asked who is told
        return None, error


def _tell(
    outcomes: list[tuple[Future[Any], Any, Exception | None]], sync: Callable[[], None]
) -> None:
    """Settle futures by (result, error), after a sync; if that fails, by its error, and raise it
    (invariants 3 and 4)."""
    try:
        sync()
    except BaseException as error:
        for future, _, _ in outcomes:
            _settle(future, None, PipelineError(f"the stream ended: {error}"))
        raise
    for future, result, failure in outcomes:
        _settle(future, result, failure)


def _settle(future: Future[Any], result: Any, error: Exception | None) -> None:
    try:
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)
    except InvalidStateError:  # cancelled by whoever asked
        pass


def _is_past(positions: Mapping[Partition, Position], partition: Partition, offset: int) -> bool:
    position = positions.get(partition)
    return position is not None and position.offset > offset
