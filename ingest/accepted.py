"""What a resume was allowed to give up, so that it could go on: kept with the state from then on.

    kind      given up                          detail
    "gap"     records that retention dropped    topic, partition, from, to (offsets), records
    "journal" what a journal no longer says     see journal.py
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["gap", "journal"]


@dataclass(frozen=True)
class Accepted:
    """One loss that was accepted by an explicit option. The detail is of plain values."""

    kind: Kind
    time: int  # when it was accepted, ms since 1970
    detail: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.kind}: {', '.join(f'{name} {value}' for name, value in self.detail.items())}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(content: dict[str, Any]) -> Accepted:
        return Accepted(**content)
