"""Rules over figures: a comparison of one figure with a number.

    rule := NAME OP NUMBER
    OP   := > | >= | < | <= | == | !=        NUMBER: a number, true or false

Two read them: whoever watches a service (`service/alerts.py`), and the alerts that leave a stream
with its results (`results/`). Each knows its own names.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import PipelineError

_OPERATORS: dict[str, Callable[[Any, float], Any]] = {
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
        """One way of writing it: figure, operator and bound, to 15 digits."""
        return f"{self.name} {self.operator} {self.bound:.15g}"

    def holds_of(self, value: Any) -> Any:
        """Whether it is true of a value; of each value, if this is an array."""
        return _OPERATORS[self.operator](value, self.bound)

    def holds(self, figures: Mapping[str, Any]) -> bool:
        """Whether it is true of these figures. One that is not known makes no rule true."""
        value = figures.get(self.name)
        return value is not None and bool(self.holds_of(float(value)))


def rule_of(text: str, known: Iterable[str], examples: str) -> Rule:
    """The rule that a text says, of one of the `known` names. Raises PipelineError, which gives the
    `examples`.

    >>> from ingest.rules import rule_of
    >>> rule = rule_of("core >= 20", ["core"], "'core >= 20'")
    >>> rule.holds_of(20), rule.holds({"core": 19})
    (True, False)
    """
    names = tuple(known)
    match = _RULE.fullmatch(text)
    if match is None or match[1] not in names:
        raise PipelineError(
            f"alert {text!r}: write NAME OP NUMBER, as {examples}; names are "
            f"{', '.join(names) or 'those of tracked figures, but none is tracked'}"
        )
    try:
        bound = _WORDS[match[3]] if match[3] in _WORDS else float(match[3])
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise PipelineError(f"alert {text!r}: {match[3]!r} is not a number, true or false")
    bound = float(f"{bound + 0.0:.15g}")  # as the rule's text has it; 0 for -0
    return Rule(match[1], match[2], bound)
