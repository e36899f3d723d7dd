"""Alerts: rules over a stream's figures, and when each becomes true.

What a rule is says `ingest/results/figures.py`. NAME is one of `NAMES`, or a figure that the stream
keeps. Watchers look at totals, a few times a second; `core` is then the largest core number. The
alerts that leave with a stream's results look at every vertex, after every batch: `ingest/results`.

A rule fires when it becomes true, and again only after it was false in between. A figure that is
not known, such as the lag of a file, makes no rule true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..results.figures import Rule, rule_of

NAMES = (
    "lag", "lag_growing", "lag_per_s", "rate", "checkpoint_age_s", "dead_letters", "median_ms",
    "p99_ms", "edges", "density", "idle_s",
)  # fmt: skip


def parse_rule(text: str, kept: Iterable[str] = ()) -> Rule:
    """The rule that a text says. kept: names of the figures that the stream keeps. Raises
    PipelineError.

    >>> from ingest.service.alerts import parse_rule
    >>> rule = parse_rule("lag > 1000")
    >>> rule.holds({"lag": 1001}), rule.holds({"lag": None})
    (True, False)
    """
    return rule_of(text, (*NAMES, *kept), "'lag > 1000' or 'lag_growing == true'")


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
