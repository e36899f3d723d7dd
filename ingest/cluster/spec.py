"""What a shard is made of, and what it says of itself: values that travel between processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ShardSpec:
    source: str
    kafka_settings: dict[str, Any] | None
    number: int
    shards: int
    checkpoint: str
    device: str = "cpu"
    topic: str = "updates"
    queries: str = "queries"
    directed: bool = True
    predecessors: bool = False
    names: bool = False
    keep: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ShardStatus:
    number: int
    state: str
    problem: str | None
    incarnation: str
    operations: int = 0
    edges: int = 0
    lag: int | None = None
    version: int = 0
    epoch: int | None = None
    epochs_closed: int = 0
    checkpoint_time: int | None = None
    device: str = "cpu"
