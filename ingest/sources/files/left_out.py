"""What of a file was left out: how many lines, by reason, and the first of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...types import Rejected

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
        lines = "line" if self.count == 1 else "lines"
        return f"left out {self.count:,} bad {lines} ({by}), the first: {first}{hint}"

    def nothing_of(self, what: object) -> str:
        """The message if no line was an operation."""
        return f"{what}: nothing was loaded: " + (str(self) if self.count else "it holds no edge")


def _shown(one: dict[str, Any]) -> str:
    return repr(one["line"]) if one["number"] is None else f"line {one['number']}, {one['line']!r}"
