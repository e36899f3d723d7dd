"""What changed of tracked figures from one version of a graph to the next, and which rules became
true with it.

Invariants:
1. In an empty graph every figure is 0, and that of every vertex; so is that of a vertex that is not
   there. What is there when results begin has changed from 0.
2. A rule becomes true where it holds of `new` and not of `old`. So alerts are a function of the
   changes, and these of two states of the graph: nothing else has to be kept over a crash, and a
   replay finds the same ones. A rule that holds of 0 becomes true only after it was false.

Costs: for each figure of vertices one comparison of two arrays, where the graph lies; everything
else follows what changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lpma.arrays import array_module, device_of, to_host

from ..formats.results import (
    MAX_RESULT_BYTES,
    MAX_RESULT_ROWS,
    ROW_BYTES,
    Result,
    encode_result,
)
from ..types import Array
from .figures import OF_VERTICES, UNTOLD, Rule, Values, total_name, total_of

if TYPE_CHECKING:
    from lpma.names import Names

_HEAD_BYTES = 1 << 10  # of a result beside its columns, at most
_EMPTY = np.zeros(0, np.int32)


class Changes:
    """Follows tracked values from nothing on: each call of `to` gives what changed since the last.
    names: None if vertices go by their ids."""

    memo: tuple[int, ...] = ()  # all that a checkpoint has to keep: see `publisher.Content`

    def __init__(self, rules: Sequence[Rule], names: Names | None, figures: Sequence[str] = ()):
        self.asked = tuple(figures), tuple(map(str, rules))
        self._rules = rules
        self._names = names
        self._values: Values = {}
        self._totals: dict[str, int] = {}

    def anew(self) -> Changes:
        """The same, from nothing on."""
        return Changes(self._rules, self._names, self.asked[0])

    def resume(self, values: Values, memo: tuple[int, ...]) -> None:
        """Go on from these values, which were told."""
        self.since(values)

    def since(self, values: Values) -> None:
        """Follow from these values on, as if they had been told."""
        self._values = {name: v for name, v in values.items() if name not in UNTOLD}
        self._totals = {total_name(name): total_of(name, v) for name, v in self._values.items()}

    def to(self, run: str, version: int, time: int, values: Values) -> list[Result]:
        """The results that lead to these values: changes in the order of the figures, then the
        alerts in the order of their rules."""
        before, totals = self._values, self._totals
        self.since(values)
        changes = []
        for name, value in self._values.items():
            was = before.get(name, _EMPTY)
            if value is was:
                continue
            if name in OF_VERTICES:
                vertex, old, new = _changed(was, value)
                if len(vertex):
                    changes.append(Result(run, version, 0, 1, time, name, vertex, old, new))
            total = total_name(name)
            if (old_total := totals.get(total, 0)) != self._totals[total]:
                ends = old_total, self._totals[total]
                changes.append(Result(run, version, 0, 1, time, total, None, *ends))
        found = [part for each in [*changes, *self._alerts(changes)] for part in self._parts(each)]
        return _numbered(found)

    def none(self, run: str, version: int, time: int) -> Result:
        """A result that says of one total, which was 0, that it is 0. REQUIRES: a run begins, all
        figures are 0."""
        return Result(run, version, 0, 1, time, next(iter(self._totals)))

    def _alerts(self, changes: Sequence[Result]) -> Iterator[Result]:
        """Where a rule became true (invariant 2)."""
        for rule in self._rules:
            for change in changes:
                if change.figure != rule.name:
                    continue
                become = rule.holds_of(change.new) & ~np.bool_(rule.holds_of(change.old))
                if change.vertex is None:
                    if become:
                        yield replace(change, alert=str(rule))
                elif become.any():
                    columns = (c[become] for c in (change.vertex, change.old, change.new))
                    yield _with(replace(change, alert=str(rule)), *columns)

    def _parts(self, result: Result) -> Iterator[Result]:
        """The result cut into ones that a log takes, with names for ids."""
        if result.vertex is None:
            yield result
            return
        vertex = result.vertex if self._names is None else self._names.of(result.vertex)
        rows = MAX_RESULT_ROWS
        if vertex.dtype == object:
            longest = max(len(str(name).encode()) for name in vertex.tolist())
            rows = min(rows, (MAX_RESULT_BYTES - _HEAD_BYTES) // (longest + ROW_BYTES))
        yield from _cut(replace(result, vertex=vertex), rows)


def within(results: Sequence[Result], max_bytes: int) -> list[Result]:
    """All results of one version, cut into ones of at most about so many bytes; into single rows
    where even these have more."""
    return _numbered([part for result in results for part in _halved(result, max_bytes)])


def _halved(result: Result, max_bytes: int) -> Iterator[Result]:
    if result.rows == 1 or len(encode_result(result)) <= max_bytes:
        yield result
        return
    for half in _cut(result, -(-result.rows // 2)):
        yield from _halved(half, max_bytes)


def _numbered(results: Sequence[Result]) -> list[Result]:
    """The same, each with its place among all of its version."""
    return [replace(each, part=i, parts=len(results)) for i, each in enumerate(results)]


def _cut(result: Result, rows: int) -> Iterator[Result]:
    """A result of vertices, in ones of so many rows. Names stay as they are."""
    assert result.vertex is not None, "a total is one row"
    for start in range(0, result.rows, rows):
        part = slice(start, start + rows)
        yield _with(result, result.vertex[part], result.old[part], result.new[part])


def _with(result: Result, vertex: Array, old: Array, new: Array) -> Result:
    return replace(result, vertex=vertex, old=old, new=new)


def _changed(old: Array, new: Array) -> tuple[Array, Array, Array]:
    """The ids at which two arrays differ, rising, and both values there. The shorter one ends with
    zeros. From a device it all comes in one piece, once it is known how much there is."""
    xp = array_module(new)
    with device_of(new):
        longest = max(len(old), len(new))
        old, new = (_with_zeros(xp, values, longest) for values in (old, new))
        at = xp.flatnonzero(old != new)
        found = xp.empty((3, len(at)), np.int32)
        found[0], found[1], found[2] = at, old[at], new[at]
        vertex, before, after = to_host(found)
        return vertex.view(np.uint32), before, after


def _with_zeros(xp: Any, values: Array, length: int) -> Array:
    """The same values on the module's device, and zeros behind them."""
    if len(values) == length:
        return xp.asarray(values)  # before the first value: of the host
    longer = xp.zeros(length, np.int32)
    longer[: len(values)] = xp.asarray(values)
    return longer
