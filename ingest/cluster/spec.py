"""What a shard is made of, and what it says of itself: plain values that may be sent anywhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ..types import QUERIES, UPDATES

KAFKA = "kafka://"  # before the addresses of brokers; any other source is a path

ShardState = Literal["starting", "running", "failed", "stopped"]


@dataclass(frozen=True)
class ShardSpec:
    """One shard of a graph, as whoever launches it describes it. Can be pickled.

    source: the path of an embedded log, or "kafka://host:port,host:port". kafka_settings: how to
    reach the brokers (`KafkaSource`). number, shards: it reads the partitions p of `topic` and of
    `queries` with p % shards == number. checkpoint: the directory of all shards; this one's own is
    `shard-NNNN` in it. device: of its graph. directed: whether the whole graph is; an undirected
    one has each edge twice in its topic. predecessors: a second pipeline reads the topics
    `<topic>.in` and `<queries>.in`, which hold every edge turned round. names: vertices go by
    names. keep: storage that outlives the disk, to which checkpoints are copied. settings: of the
    pipelines (`ingest.Settings`).

    REQUIRES: 0 <= number < shards; predecessors only where it is directed."""

    source: str
    kafka_settings: dict[str, Any] | None
    number: int
    shards: int
    checkpoint: str
    device: str = "cpu"
    topic: str = UPDATES
    queries: str = QUERIES
    directed: bool = True
    predecessors: bool = False
    names: bool = False
    keep: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def is_kafka(self) -> bool:
        return self.source.startswith(KAFKA)

    @property
    def brokers(self) -> str:
        """The addresses of Kafka. REQUIRES: is_kafka."""
        return self.source.removeprefix(KAFKA)

    @property
    def directions(self) -> tuple[str, ...]:
        """A pipeline each: "out", and "in" if there is one for the turned edges."""
        return ("out", "in") if self.predecessors else ("out",)

    def part(self, direction: str = "out") -> str:
        """The folder of that direction's pipeline within the shard's, "" for the shard's itself."""
        return direction if self.predecessors else ""

    def directory(self, direction: str = "out") -> str:
        return f"{self.checkpoint}/{folder_of(self.number, self.part(direction))}"

    def topics(self, direction: str = "out") -> tuple[str, str]:
        """The updates and the queries that the pipeline of that direction reads."""
        end = ".in" if direction == "in" else ""
        return self.topic + end, self.queries + end


def folder_of(number: int, part: str = "") -> str:
    """Where a shard's checkpoints lie, in the directory of all shards and in kept storage."""
    return f"shard-{number:04d}/{part}".rstrip("/")


@dataclass(frozen=True)
class EpochClosed:
    """The end of an epoch at one shard.

    version, time: of its graph then; time is that of its last update, as in a snapshot. num_edges:
    entries in its rows. held: whether a snapshot is held; it was expected, and there was memory.
    refused: why none is although it was expected, and what helps; None: nothing was refused."""

    epoch: int
    version: int
    time: int
    num_edges: int
    held: bool
    refused: str | None = None


@dataclass(frozen=True)
class ShardStatus:
    """What a shard says of itself. Of two pipelines, figures are of the one of out-edges, but
    `lag` is the sum, `seconds_behind` the larger, `highest_epoch` the higher."""

    number: int
    shards: int
    state: ShardState
    problem: str | None  # why it failed, or what goes wrong at the moment; None: nothing
    incarnation: str  # random text, new at each start
    device: str
    operations: int = 0  # applied since the stream began
    replayed: int = 0  # of these, again at this start
    edges: int = 0  # entries in the rows
    version: int = 0  # of the graph
    lag: int = 0  # records in its partitions that are not applied
    seconds_behind: float = 0.0  # how long ago the last record read was written; 0 without lag
    epoch: int = 0  # newest closed since this start; 0 before the first
    epochs_closed: int = 0  # since this start
    highest_epoch: int = 0  # of which a marker was ever met
    held: tuple[int, ...] = ()  # epochs of which a snapshot is held
    checkpoint_time: int | None = None  # of the newest since this start, ms since 1970
    kept_time: int | None = None  # of the newest in kept storage, ms since 1970
