"""Lines of a file that are no operations: counted by what is wrong, the first ones kept."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..formats.replies import DeadLetter

# Reasons that other ids would mend.
NOT_IDS = tuple(f"{end}: {fault}" for end in ("src", "dst") for fault in ("not", "ids", "text nam"))
FIRST = 3  # lines shown
MAX_CHARACTERS = 60  # of a line


class LeftOut:
    """The lines left out so far."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self.first: list[dict[str, str]] = []

    @property
    def count(self) -> int:
        return self.reasons.total()

    def add(self, line: bytes, reason: str) -> None:
        self.reasons[reason] += 1
        if len(self.first) < FIRST:
            text = line[:MAX_CHARACTERS].decode(errors="replace")
            self.first.append({"line": text, "reason": reason})

    def take(self, letter: DeadLetter) -> None:
        """Note what a pipeline did not take of a file, but for late operations."""
        if not letter.reason.startswith("late"):
            self.add(letter.value, letter.reason)

    def told(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "rejected": self.count,
            "rejected_by": dict(self.reasons),
            "first_rejected": self.first,
        }

    def __str__(self) -> str:
        by = "; ".join(f"{reason}: {count:,}" for reason, count in self.reasons.most_common())
        first = ", ".join(repr(one["line"]) for one in self.first)
        hint = ""
        if any(reason.startswith(NOT_IDS) for reason in self.reasons):
            hint = ". Text and any 64-bit integer name vertices with --ids mapped"
        return f"left out {self.count:,} bad lines ({by}), the first: {first}{hint}"

    def nothing_of(self, what: str) -> str:
        """What is said where nothing is left."""
        return f"{what}: nothing was loaded: " + (str(self) if self.count else "it holds no edge")
