"""Alerts: rules over a stream's figures, and when each becomes true.

    rule := NAME OP NUMBER        NAME: one of `NAMES`, or a figure that the stream keeps
    OP   := > | >= | < | <= | == | !=        NUMBER: a number, true or false

A rule fires when it becomes true, and again only after it was false in between. A figure that is
not known, such as the lag of a file, makes no rule true.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import PipelineError

NAMES = (
    "lag", "lag_growing", "lag_per_s", "rate", "checkpoint_age_s", "dead_letters", "median_ms",
    "p99_ms", "edges", "density", "idle_s",
)  # fmt: skip
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip
_RULE = re.compile(r"\s*([a-z][a-z0-9_]*)\s*(>=|<=|==|!=|>|<)\s*(\S+)\s*")
_WORDS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class Rule:
    """One rule."""

    name: str
    operator: str
    bound: float

    def __str__(self) -> str:
        return f"{self.name} {self.operator} {self.bound:.15g}"

    def holds(self, figures: Mapping[str, Any]) -> bool:
        """Whether it is true of these figures."""
        value = figures.get(self.name)
        return value is not None and _OPERATORS[self.operator](float(value), self.bound)


def parse_rule(text: str, kept: Iterable[str] = ()) -> Rule:
    """The rule that a text says. kept: names of the figures that the stream keeps. Raises
    PipelineError.

    >>> from ingest.service.alerts import parse_rule
    >>> rule = parse_rule("lag > 1000")
    >>> rule.holds({"lag": 1001}), rule.holds({"lag": None})
    (True, False)
    """
    match = _RULE.fullmatch(text)
    known = (*NAMES, *kept)
    if match is None or match[1] not in known:
        raise PipelineError(
            f"alert {text!r}: write NAME OP NUMBER, as 'lag > 1000' or 'lag_growing == true'; "
            f"names are {', '.join(known)}"
        )
    try:
        bound = _WORDS[match[3]] if match[3] in _WORDS else float(match[3])
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise PipelineError(f"alert {text!r}: {match[3]!r} is not a number, true or false")
    return Rule(match[1], match[2], bound)


class Alerts:
    """Which rules are true, from look to look."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._true: frozenset[Rule] = frozenset()

    def look(self, figures: Mapping[str, Any]) -> list[Rule]:
        """The rules that have become true since the last look."""
        before, now = self._true, [rule for rule in self.rules if rule.holds(figures)]
        self._true = frozenset(now)
        return [rule for rule in now if rule not in before]

    @property
    def true(self) -> list[str]:
        """The rules that were true at the last look, as text."""
        return [str(rule) for rule in self.rules if rule in self._true]
