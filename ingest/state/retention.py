"""Which old checkpoints are kept, so that past views stay near.

Idea: as with backups. `1h=24,1d=7` keeps, besides the two newest, the first checkpoint of each of
the newest 24 hours in which one was taken, and of each of the newest 7 such days. Hours and days
begin in UTC.

    policy := rule ("," rule)*        rule := every "=" count        every := number unit
    unit   := "s" | "min" | "h" | "d" | "w"

It is the first of an hour, not the last, because the first is known as soon as it is taken, and no
later one replaces it. So what is kept after a checkpoint is a subset of what was kept before and
that checkpoint: pruning at every commit comes to the same as pruning once at the end, and a crash
in between costs nothing. Hours without a checkpoint do not count, so a stream that stood still for
a month still has what it had.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, Self

from ..errors import PipelineError

_RULE = re.compile(r"([1-9]\d{0,6})(s|min|h|d|w)=([1-9]\d{0,6})", re.ASCII)
_UNIT_MS = {"s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


class Every(NamedTuple):
    """The first checkpoint of each `every_ms`, at most so many."""

    every_ms: int
    most: int


class RetentionPolicy(tuple[Every, ...]):
    """The rules by which checkpoints are kept.

    >>> from ingest.state.retention import RetentionPolicy
    >>> policy = RetentionPolicy.of("1s=2")
    >>> policy
    (Every(every_ms=1000, most=2),)
    >>> sorted(policy.kept({0: 100, 1: 1200, 2: 1900, 3: 2500, 4: 2600}))
    [1, 3]
    """

    __slots__ = ()

    @classmethod
    def of(cls, text: str) -> Self:
        """What `text` says; no rule if it is empty. Raises PipelineError."""
        if not isinstance(text, str):
            raise PipelineError(f"keep_checkpoints is {text!r}: expected text, as '1h=24,1d=7'")
        rules = []
        for item in text.split(",") if text else []:
            match = _RULE.fullmatch(item.strip())
            if match is None:
                raise PipelineError(
                    f"keep_checkpoints: {item!r} is not a rule: expected as in '1h=24,1d=7', with "
                    "s, min, h, d or w"
                )
            rules.append(Every(int(match[1]) * _UNIT_MS[match[2]], int(match[3])))
        return cls(rules)

    def kept(self, times: Mapping[int, int]) -> set[int]:
        """The numbers of the checkpoints that are kept. times: when each was taken, ms since 1970,
        by its number."""
        kept: set[int] = set()
        for every_ms, most in self:
            first: dict[int, int] = {}
            for number in sorted(times):
                first.setdefault(times[number] // every_ms, number)
            kept.update(first[slot] for slot in sorted(first)[-most:])
        return kept
