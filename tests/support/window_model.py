"""A stream with times, and what a window keeps of it: a dictionary, one operation at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import ingest
from lpma import Kind

STAMP = 10**12  # of operations without a time, where the clock stands still
LOWEST, HIGHEST = -(2**63), 2**63 - 1

times = st.integers(-30, 60) | st.sampled_from([LOWEST, LOWEST + 1, -1, 0, HIGHEST - 1, HIGHEST])
small_times = st.integers(-30, 60)
widths = st.integers(0, 40) | st.sampled_from([0, 2**62, HIGHEST - 1, HIGHEST])


class Op(NamedTuple):
    """One operation. weight and time: None if the record says none."""

    kind: Kind
    u: int = 0
    v: int = 0
    weight: float | None = None
    time: int | None = None


@dataclass
class WindowModel:
    """What a pipeline with this window holds after each batch. arrival: stamps move it."""

    width: int
    arrival: bool = False
    edges: dict[tuple[int, int], tuple[float, int]] = field(default_factory=dict)
    newest: int | None = None
    late: int = 0
    expired: int = 0

    @property
    def bound(self) -> int | None:
        """Edges of an earlier time have expired."""
        if self.newest is None or self.newest - self.width < LOWEST:
            return None
        return self.newest - self.width

    def batch(self, ops: list[Op], stamp: int = STAMP) -> list[bool]:
        """Apply a batch, and then what the window says. Whether the edges asked for were there."""
        return self.stamped([(op, stamp) for op in ops])

    def stamped(self, ops: list[tuple[Op, int]]) -> list[bool]:
        """The same of operations that came at times of their own."""
        found = []
        for op, stamp in ops:
            if op.kind is Kind.EDGE:
                found.append((op.u, op.v) in self.edges)
            else:
                self._apply(op, stamp)
        if self.arrival and ops:
            self._move(ops[-1][1])
        if self.bound is not None:
            self._expire(self.bound)
        return found

    def _move(self, time: int) -> None:
        self.newest = time if self.newest is None else max(self.newest, time)

    def _expire(self, before: int) -> None:
        kept = {key: edge for key, edge in self.edges.items() if edge[1] >= before}
        self.expired += len(self.edges) - len(kept)
        self.edges = kept

    def _apply(self, op: Op, stamp: int) -> None:
        if op.kind is Kind.EXPIRE:
            assert op.time is not None
            self._expire(op.time)
            return
        time = stamp if op.time is None or self.arrival else op.time
        if op.time is not None and not self.arrival:
            self._move(op.time)
        if op.kind is Kind.DELETE:
            self.edges.pop((op.u, op.v), None)
            return
        if self.bound is not None and time < self.bound and not self.arrival:
            self.late += 1
        weight = 1.0 if op.weight is None else op.weight
        if op.kind is Kind.SET:
            self.edges.pop((op.u, op.v), None)
        if (op.u, op.v) in self.edges:
            weight += self.edges[op.u, op.v][0]
            if weight < 0:
                del self.edges[op.u, op.v]
                return
        elif weight <= 0:
            return
        self.edges[op.u, op.v] = weight, time


def record_of(ops: list[Op], id: str = "q") -> bytes:
    """The operations as one record: a query by itself, updates of which all or none have times."""
    if ops[0].kind is Kind.EDGE:
        (op,) = ops
        return ingest.encode_query(id, Kind.EDGE, op.u, op.v)
    if len(ops) == 1:
        (op,) = ops
        if op.kind is Kind.EXPIRE:
            assert op.time is not None
            return ingest.encode_expire(op.time)
        return ingest.encode_row(op.u, op.v, op.weight, op.time, op.kind)
    kinds, us, vs, weights, given = zip(*ops, strict=True)
    return ingest.encode_updates(
        us, vs, [1.0 if w is None else w for w in weights],
        None if given[0] is None else np.array(given, np.int64), np.array(kinds, np.uint8),
    )  # fmt: skip


@st.composite
def records(draw: st.DrawFn, when: Any = times, weights: Any = None, most: int = 20) -> Any:
    """Lists of operations, a record each."""
    vertex = st.integers(0, 4)
    weight = weights if weights is not None else st.sampled_from([None, 1.0, 0.5, -0.5, -2.0])
    kind = st.sampled_from([Kind.INSERT] * 4 + [Kind.SET] * 2 + [Kind.DELETE])
    update = st.builds(Op, kind, vertex, vertex, weight, st.none())
    asked = st.builds(lambda u, v: [Op(Kind.EDGE, u, v)], vertex, vertex)
    expiry = st.builds(lambda t: [Op(Kind.EXPIRE, time=t)], when)
    untimed = st.lists(update, min_size=1, max_size=3)
    timed = st.lists(
        st.builds(lambda op, t: op._replace(time=t), update, when)
        | st.builds(lambda t: Op(Kind.EXPIRE, time=t), when),
        min_size=1, max_size=6,
    )  # fmt: skip
    form = st.one_of(timed, timed, timed, untimed, asked, expiry)
    return draw(st.lists(form, min_size=1, max_size=most))
