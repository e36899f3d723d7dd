"""What a checkpoint keeps of the results that left: see `results/publisher.py`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

NOTHING = (-1, -1)  # below every place of a result


@dataclass(frozen=True)
class Published:
    """A run of results, up to the checkpoint's version."""

    run: str
    figures: tuple[str, ...]
    rules: tuple[str, ...]
    visible: bool  # whether the place where they are told can be looked at
    records: int = 0  # since the run began, each once
    told: tuple[int, int] = NOTHING  # the place of the last one

    def to_json(self) -> dict[str, Any]:
        """As a checkpoint keeps it."""
        return asdict(self)

    @staticmethod
    def from_json(value: dict[str, Any] | None) -> Published | None:
        """What `to_json` gave; None for a stream without results, or one of which it is not known
        how far they went."""
        if value is None or "told" not in value:
            return None
        version, part = value["told"]
        return Published(
            value["run"],
            tuple(value["figures"]),
            tuple(value["rules"]),
            value.get("visible", False),
            value["records"],
            (version, part),
        )
