"""The demo's client: asks queries through the log, waits for replies, notes how long they took."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lpma.batch import Columns, Edges, Kind, Neighbors

from .codec import encode_query
from .errors import IngestError
from .replies import Reply, decode_reply
from .sources.sqlite_log import QUERIES, REPLIES, SqliteLog

ASK_EVERY_S = 0.1
SHOW_EVERY_S = 1.0
KINDS = (Kind.EDGE, Kind.SUCCESSORS, Kind.PREDECESSORS, Kind.HOPS, Kind.DEGREE, Kind.VERTEX)


class Client:
    """Asks one query after another, of each kind in turn, about vertices of the stream's edges."""

    def __init__(self, log: Path, stream: Columns, seed: int, tell: Callable[[str], None]) -> None:
        self.replies: dict[str, Reply] = {}
        self._latency_ms: dict[str, float] = {}
        self._asked: dict[str, tuple[float, str]] = {}
        self._log = SqliteLog(log, topics=(REPLIES,))
        self._stream = stream
        self._rng = np.random.default_rng(seed)
        self._tell = tell
        self._asking = True
        self._shown = Counter[Kind]()
        self._last_shown = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self, timeout_s: float) -> None:
        """Ask no more, and wait for the replies still out. Raises IngestError where some do not
        come within `timeout_s`."""
        self._asking = False
        self._thread.join(timeout_s)
        if waiting := len(self._asked) - len(self.replies):
            raise IngestError(f"{waiting} queries were not answered within {timeout_s:.0f} s")

    def stop(self) -> None:
        """End at once."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._log.close()

    def latency_ms(self) -> dict[str, float]:
        """Milliseconds from a query's writing to its reply's reading; what was asked while no
        worker lived waited for the next."""
        values = np.array(list(self._latency_ms.values()) or [0.0])
        return {
            "median": round(float(np.median(values)), 2),
            "slowest": round(float(values.max()), 2),
        }

    def _work(self) -> None:
        asked = 0
        due = time.monotonic()
        while not self._stop.is_set():
            if self._asking and time.monotonic() >= due:
                self._ask(asked)
                asked += 1
                due += ASK_EVERY_S
            elif not self._asking and len(self.replies) == asked:
                return
            for polled in self._log.poll(timeout=0.02):
                assert isinstance(polled.value, bytes)
                self._receive(decode_reply(polled.value))

    def _ask(self, number: int) -> None:
        kind = KINDS[number % len(KINDS)]
        row = int(self._rng.integers(len(self._stream)))
        u, v = int(self._stream.src[row]), int(self._stream.dst[row])
        id = f"q-{number:04d}"
        if kind is Kind.EDGE:
            query, text = encode_query(id, kind, u, v), f"edge({u}, {v})"
        elif kind is Kind.HOPS:
            query, text = encode_query(id, kind, u, steps=2), f"hops({u}, 2)"
        else:
            query, text = encode_query(id, kind, u), f"{kind.name.lower()}({u})"
        self._asked[id] = (time.perf_counter(), text)
        self._log.produce(QUERIES, query)

    def _receive(self, reply: Reply) -> None:
        """Note a reply; one that comes again after a crash is dropped by its id."""
        if reply.id in self.replies or reply.id not in self._asked:
            return
        asked_at, text = self._asked[reply.id]
        self._latency_ms[reply.id] = 1000 * (time.perf_counter() - asked_at)
        self.replies[reply.id] = reply
        now = time.monotonic()
        # Of each kind about as often, and not faster than can be read.
        if now - self._last_shown >= SHOW_EVERY_S and self._shown[reply.kind] <= min(
            self._shown[kind] for kind in KINDS
        ):
            self._last_shown = now
            self._shown[reply.kind] += 1
            self._tell(
                f"  query: {text} = {answer_text(reply)}, as of version {reply.version}, "
                f"in {self._latency_ms[reply.id]:.0f} ms"
            )


def answer_text(reply: Reply) -> str:
    """A reply's answer in a few words."""
    answer = reply.answer
    if reply.error is not None:
        return f"{reply.error} ({reply.message})"
    if isinstance(answer, Edges):
        if not bool(answer.found[0]):
            return "absent"
        return "present" if answer.weight is None else f"weight {float(answer.weight[0]):g}"
    if isinstance(answer, Neighbors):
        return f"{len(answer.ids):,} vertices"
    assert answer is not None
    return str(answer[0].item())


def _parts(reply: Reply) -> list[np.ndarray | None]:
    answer = reply.answer
    if isinstance(answer, Edges):
        return [answer.found, answer.weight, answer.time]
    if isinstance(answer, Neighbors):
        return [answer.ids, answer.weight, answer.time]
    return [answer]


def same_replies(one: dict[str, Reply], other: dict[str, Reply]) -> bool:
    """Whether both answer the same queries alike. Versions count batches, and may differ."""
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
