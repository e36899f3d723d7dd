"""The ladder of kept checkpoints: which old ones stay, so that past views stay near.

Idea: as backups are kept. `1h=24,1d=7` keeps, beside the two newest, the first checkpoint of each
of the newest 24 hours in which one was taken, and of each of the newest 7 such days. Hours and days
begin in UTC.

    ladder := rung ("," rung)*        rung := every "=" count        every := number unit
    unit   := "s" | "min" | "h" | "d" | "w"

The first of an hour, not the last: it is known as soon as it is taken, and a later one never
replaces it. So what is kept after a checkpoint is a subset of what was kept before it and that
checkpoint: pruning at every commit comes to the same as pruning once at the end, and a crash in
between costs nothing. Hours without a checkpoint do not count, so that a stream that stood still
for a month still has what it had.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..errors import PipelineError

_RUNG = re.compile(r"([1-9]\d{0,6})(s|min|h|d|w)=([1-9]\d{0,6})", re.ASCII)
_UNIT_MS = {"s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


class Rung(NamedTuple):
    """The first checkpoint of each `every_ms`, at most so many."""

    every_ms: int
    most: int


Ladder = tuple[Rung, ...]


def ladder_of(text: str) -> Ladder:
    """What `text` says; nothing if it is empty. Raises PipelineError.

    >>> from ingest.state.retention import ladder_of
    >>> ladder_of("1h=24")
    (Rung(every_ms=3600000, most=24),)
    """
    rungs = []
    if not isinstance(text, str):
        raise PipelineError(f"keep_checkpoints is {text!r}: expected text, as '1h=24,1d=7'")
    for item in text.split(",") if text else []:
        match = _RUNG.fullmatch(item.strip())
        if match is None:
            raise PipelineError(
                f"keep_checkpoints: {item!r} is no rung: expected as in '1h=24,1d=7', with s, min, "
                "h, d or w"
            )
        rungs.append(Rung(int(match[1]) * _UNIT_MS[match[2]], int(match[3])))
    return tuple(rungs)


def on_ladder(ladder: Ladder, times: Mapping[int, int]) -> set[int]:
    """The numbers that the ladder keeps. times: when each checkpoint was taken, ms since 1970, by
    its number.

    >>> from ingest.state.retention import ladder_of, on_ladder
    >>> sorted(on_ladder(ladder_of("1s=2"), {0: 100, 1: 1200, 2: 1900, 3: 2500, 4: 2600}))
    [1, 3]
    """
    kept: set[int] = set()
    for every_ms, most in ladder:
        first: dict[int, int] = {}
        for number in sorted(times):
            first.setdefault(times[number] // every_ms, number)
        kept.update(first[slot] for slot in sorted(first)[-most:])
    return kept
