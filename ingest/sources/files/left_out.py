"""What of a file was left out: how many lines, by reason, and the first of them."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from ...types import Rejected

NO_NUMBER = "weight: not a number"
HEADER_AGAIN = "the header again"  # where files were put together
MOST_BAD, SHARE_BAD = 10, 0.01  # lines and share of them that may be left out
FIRST = 3  # lines shown
MAX_CHARACTERS = 60  # of a line


class LeftOut:
    """The lines left out so far."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self.first: list[dict[str, Any]] = []
        self._are_names = False  # whether some would be read if vertices went by names

    @property
    def count(self) -> int:
        """How many lines were left out."""
        return self.reasons.total()

    def add(self, rejected: Rejected) -> None:
        """Count a line."""
        self.reasons[rejected.reason] += 1
        self._are_names |= rejected.is_name
        if len(self.first) < FIRST:
            text = rejected.value[:MAX_CHARACTERS].decode(errors="replace")
            self.first.append({"number": rejected.line, "line": text, "reason": rejected.reason})

    def too_many(self, rows: int, accepted: float | None = None) -> str | None:
        """What to say if, beside so many rows that were read, too many are left out: more than ten
        and more than one in a hundred, or than the share that is accepted. Else None."""
        bad = self.count - self.reasons[HEADER_AGAIN]
        share = bad / (rows + bad) if bad else 0.0
        if share <= (SHARE_BAD if accepted is None else accepted):
            return None
        if accepted is None and bad <= MOST_BAD:
            return None
        needed = min(1.0, math.ceil(1000 * share) / 1000)
        return f"{self}; {share:.1%} of all: --accept-bad {needed:g} (accept_bad=) loads the rest"

    def facts(self) -> dict[str, Any]:
        """What a JSON document says about them."""
        return {
            "rejected": self.count,
            "rejected_by": dict(self.reasons),
            "first_rejected": self.first,
        }

    def __str__(self) -> str:
        by = "; ".join(f"{reason}: {count:,}" for reason, count in self.reasons.most_common())
        first = ", ".join(_shown(one) for one in self.first)
        hint = ""
        if self._are_names:
            hint = ". Text and any 64-bit integer name vertices with --names"
        elif self.reasons[NO_NUMBER]:
            hint = ". Weights are numbers: --weight names another column, --weight none reads none"
        lines = "line" if self.count == 1 else "lines"
        return f"left out {self.count:,} bad {lines} ({by}), the first: {first}{hint}"

    def nothing_of(self, what: object) -> str:
        """The message if no line was an operation."""
        return f"{what}: nothing was loaded: " + (str(self) if self.count else "it holds no edge")


def _shown(one: dict[str, Any]) -> str:
    return repr(one["line"]) if one["number"] is None else f"line {one['number']}, {one['line']!r}"
