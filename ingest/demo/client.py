"""The demo's client: sends queries through the log and notes how long their replies take."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lpma import Edges, Kind, Neighbors

from ..errors import IngestError
from ..queries.base import Ask
from ..queries.client import Client
from ..sources.sqlite.log import SqliteLog
from ..types import UPDATES, Reply
from .stream import DemoStream

ASK_EVERY_S = 0.1
SHOW_EVERY_S = 1.0
ANSWER_TIMEOUT_S = 3600.0  # also for the uninterrupted run, which answers them again
KINDS = (Kind.EDGE, Kind.SUCCESSORS, Kind.PREDECESSORS, Kind.HOPS, Kind.DEGREE, Kind.VERTEX)


class Asker:
    """Sends one query after another, of each kind in turn, about vertices of the stream's edges."""

    def __init__(
        self, log: Path, stream: DemoStream, seed: int, tell: Callable[[str], None]
    ) -> None:  # fmt: skip
        self.replies: dict[str, Reply] = {}
        self._latency_ms: list[float] = []
        self._log = SqliteLog(log)
        # In the partition of the updates, so that no run reads a query before what was written
        # before it: the replies of two runs are compared.
        self._client = Client(self._log, query_topic=UPDATES, names=True, timeout=ANSWER_TIMEOUT_S)
        self._stream = stream
        self._rng = np.random.default_rng(seed)
        self._tell = tell
        self._shown = Counter[Kind]()
        self._last_shown = 0.0
        self._finish = threading.Event()
        self._failure: IngestError | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self, timeout_s: float) -> None:
        """Send no more queries, and wait for the outstanding reply. Raises IngestError if it
        does not come within `timeout_s`, or a query failed."""
        self._finish.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise IngestError(f"a query was not answered within {timeout_s:.0f} s")
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Stop at once."""
        self._finish.set()
        self._client.close()
        if self._thread.is_alive():
            self._thread.join()
        self._log.close()

    def latency_ms(self) -> dict[str, float]:
        """Milliseconds from a query to its reply. A query sent while no worker was running waited
        for the next one."""
        values = np.array(self._latency_ms or [0.0])
        return {
            "median": round(float(np.median(values)), 2),
            "slowest": round(float(values.max()), 2),
        }

    def _work(self) -> None:
        due = time.monotonic()
        try:
            while not self._finish.wait(max(0.0, due - time.monotonic())):
                self._ask(KINDS[len(self.replies) % len(KINDS)])
                due += ASK_EVERY_S
        except IngestError as error:
            self._failure = error

    def _ask(self, kind: Kind) -> None:
        row = int(self._rng.integers(len(self._stream)))
        columns = self._stream.columns
        u, v = (self._stream.name(int(ends[row])) for ends in (columns.src, columns.dst))
        if kind is Kind.EDGE:
            query, text = Ask(kind, u, v), f"edge({u}, {v})"
        elif kind is Kind.HOPS:
            query, text = Ask(kind, u, steps=2), f"hops({u}, 2)"
        else:
            query, text = Ask(kind, u), f"{kind.name.lower()}({u})"
        asked_at = time.perf_counter()
        reply = self._client.ask(query)
        self._latency_ms.append(1000 * (time.perf_counter() - asked_at))
        self.replies[reply.id] = reply
        self._show(reply, text)

    def _show(self, reply: Reply, text: str) -> None:
        """Print each kind about equally often, and no faster than people can read."""
        now = time.monotonic()
        rarest = min(self._shown[kind] for kind in KINDS)
        if now - self._last_shown >= SHOW_EVERY_S and self._shown[reply.kind] <= rarest:
            self._last_shown = now
            self._shown[reply.kind] += 1
            self._tell(
                f"  query: {text} = {answer_text(reply)}, as of version {reply.version}, "
                f"in {self._latency_ms[-1]:.0f} ms"
            )


def answer_text(reply: Reply) -> str:
    """A reply's answer in a few words."""
    answer = reply.answer
    if reply.error is not None:
        return f"{reply.error} ({reply.message})"
    if isinstance(answer, Edges):
        if not bool(answer.found[0]):
            return "absent"
        return "present" if answer.weights is None else f"weight {float(answer.weights[0]):g}"
    if isinstance(answer, Neighbors):
        return f"{len(answer.ids):,} vertices"
    assert answer is not None
    value = answer[0].item()
    if isinstance(value, bool):
        return "present" if value else "absent"
    return f"{value:,}"


def _parts(reply: Reply) -> list[np.ndarray | None]:
    answer = reply.answer
    if isinstance(answer, Edges):
        return [answer.found, answer.weights, answer.times]
    if isinstance(answer, Neighbors):
        return [answer.ids, answer.weights, answer.times]
    return [answer]


def same_replies(one: dict[str, Reply], other: dict[str, Reply]) -> bool:
    """Whether both hold equal answers to the same queries. Versions, which count batches, may
    differ."""
    if one.keys() != other.keys():
        return False
    for id, reply in one.items():
        twin = other[id]
        if (reply.kind, reply.error) != (twin.kind, twin.error):
            return False
        for left, right in zip(_parts(reply), _parts(twin), strict=True):
            if (left is None) != (right is None):
                return False
            if left is not None and right is not None and not np.array_equal(left, right):
                return False
    return True
