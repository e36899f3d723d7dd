"""What a cluster says of itself: each shard, how often it was started again, what is wrong.

A supervisor counts its own starts, but one that dies takes its count with it. So whoever looks adds
up what all supervisors of a shard have said. One that came and went between two looks is not
counted.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ..events import log_event
from .coordinator import Epoch
from .supervisor import SupervisorStatus

if TYPE_CHECKING:
    from .spec import ShardStatus


@dataclass(frozen=True)
class ShardView:
    """One shard as the cluster sees it. state: the shard's own, or "unreachable". restarts: since
    this cluster was made. problem: why it does not run; None if it does. last_problem: what went
    wrong the last time, as far as anybody could say. status: None if it could not be asked."""

    number: int
    state: str
    restarts: int
    problem: str | None
    last_problem: str | None
    status: ShardStatus | None


@dataclass(frozen=True)
class ClusterStatus:
    """The shards, in order; the newest epoch that all have closed, None before the first; what is
    wrong with the engine that carries the shards, None if nothing is."""

    shards: tuple[ShardView, ...]
    epoch: Epoch | None
    engine_problem: str | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """What keeps the cluster from answering as a whole, a line each; empty if nothing does."""
        of_engine = () if self.engine_problem is None else (self.engine_problem,)
        return of_engine + tuple(
            f"shard {shard.number}: {shard.state}" + (f": {shard.problem}" if shard.problem else "")
            for shard in self.shards
            if shard.state != "running" and shard.problem not in of_engine
        )

    @property
    def restarts(self) -> int:
        return sum(shard.restarts for shard in self.shards)

    def to_json(self) -> str:
        """As a JSON object, with the problems and the number of restarts beside the fields."""
        content = {**asdict(self), "problems": self.problems, "restarts": self.restarts}
        return json.dumps(content, default=str)


class Watch:
    """Counts the starts of the shards, from status to status, and tells of them."""

    def __init__(self, shards: int) -> None:
        self._starts: list[dict[str, int]] = [{} for _ in range(shards)]

    def seen(self, found: Sequence[SupervisorStatus | Exception]) -> tuple[ShardView, ...]:
        """The shards by what `try_all(…, "status")` found."""
        return tuple(self._view(number, one) for number, one in enumerate(found))

    def _view(self, number: int, found: SupervisorStatus | Exception) -> ShardView:
        starts = self._starts[number]
        before = self._restarts(number)
        if isinstance(found, Exception):
            why = getattr(found, "why", str(found))
            return ShardView(number, "unreachable", before, why, None, None)
        starts[found.name] = max(found.starts, starts.get(found.name, 0))
        restarts = self._restarts(number)
        if restarts > before:
            log_event("shard started again", logging.WARNING, shard=number, restarts=restarts,
                      problem=found.problem)  # fmt: skip
        state = "starting" if found.shard is None else found.shard.state
        own = None if found.shard is None else found.shard.problem
        problem = None if state == "running" else found.problem or own
        return ShardView(number, state, restarts, problem, found.problem, found.shard)

    def _restarts(self, number: int) -> int:
        return max(0, sum(self._starts[number].values()) - 1)
