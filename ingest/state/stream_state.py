"""The stream of one pipeline, as the parts of the pipeline share it: `Pipeline(…)` and
`Pipeline.resume` each make one (`pipeline/recovery.py`), and from there on both are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..registry.schemas import Schemas
from ..settings import Settings
from ..sources.base import Source
from ..types import QUERIES, Partition, StreamGraph
from .checkpoint import Checkpoint, State
from .directory import CheckpointDirectory
from .table_rows import TableRows

if TYPE_CHECKING:
    from lpma.names import Names


class Gap(NamedTuple):
    """Offsets start … stop − 1 of a partition, which are gone."""

    partition: Partition
    start: int
    stop: int

    def __str__(self) -> str:
        topic, number = self.partition
        count = self.stop - self.start
        return f"{topic}/{number}: {count:,} records are gone, {self.start} … {self.stop - 1}"

    def detail(self) -> dict[str, Any]:
        topic, number = self.partition
        place = {"topic": topic, "partition": number, "from": self.start, "to": self.stop - 1}
        return {**place, "records": self.stop - self.start}


@dataclass(eq=False)
class StreamState:
    """What is read, into what, and how far. REQUIRES: source, graph and vertices stand where
    `state` says.

    vertices: names ⇄ ids of the graph; None: vertices go by ids. state: what a checkpoint keeps.
    It is replaced by the pipeline's thread and never changed, so any thread may read it.
    rows: of tables whose rows are remembered; None: none are.
    directory: where checkpoints are taken; None: nowhere. checkpoint: the one that the stream goes
    on from; None: it begins. gaps: records gone since, as far as they are accepted. accepts_loss:
    whether what is damaged of the journal may be given up. schemas: of records in Confluent's
    envelope; None: they are not read."""

    source: Source
    graph: StreamGraph
    settings: Settings
    vertices: Names | None
    state: State
    rows: TableRows | None = None
    directory: CheckpointDirectory | None = None
    checkpoint: Checkpoint | None = None
    gaps: Sequence[Gap] = ()
    accepts_loss: bool = False
    schemas: Schemas | None = None

    def update(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)

    @property
    def is_of_one_topic(self) -> bool:
        """Whether all updates come from one topic."""
        read = self.source.topics or [partition.topic for partition in self.state.positions]
        return len({*read} - {QUERIES}) == 1

    @property
    def looks_up(self) -> bool:
        """Whether `vertices` is the graph's own dictionary."""
        return self.vertices is not None and getattr(self.graph, "names", None) is self.vertices
