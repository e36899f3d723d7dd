"""What a pipeline is told, what it tells, and what it asks of a graph."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from lpma.batch import Columns
from lpma.unchanged import Unchanged

from .checkpoint import Image
from .errors import PipelineError
from .outputs import DeadLetterSink, ReplySink
from .queries import Answers
from .reading import Reading
from .sources.sqlite_log import REPLIES


def now_ms() -> int:
    """The wall clock, in ms since 1970."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class Settings(Reading):
    """What a pipeline is told, first of all how to read records: see `Reading`. Raises
    PipelineError where it makes no sense.

    dead_letters: where bad records go: a log (topic "dead-letters"), a (log, topic) pair, or a
    function of a DeadLetter. None: the log that is the source, where it is one; otherwise the last
    1000 are kept in `pipeline.outputs.kept`.
    replies: where the answers to queries go: a log, or a function of a Reply. None: the log that
    is the source, where it is one; otherwise queries are bad records."""

    dead_letters: DeadLetterSink = None
    replies: ReplySink = None
    batch_size: int = 100_000  # operations
    batch_interval: float = 0.1  # seconds from a batch's first operation to its close
    query_interval: float = 0.002  # seconds from a query to the close of its batch
    max_queries: int = 10_000  # asked in one batch
    max_waiting_queries: int = 10_000  # in a log of queries; above it they are told to retry
    poll_records: int = 500  # asked of the source at once
    checkpoint_operations: int = 5_000_000  # a checkpoint is due after so many
    checkpoint_interval: float = 60.0  # seconds, or so long after the last, where anything came
    reply_topics: tuple[str, ...] = (REPLIES,)  # that a query may name
    max_hops: int = 2  # of one query
    device: str = "auto"  # that `resume` loads the graph on
    max_reply_rows: int = 1_000_000  # then a query asks for the next
    history: int = 100_000  # batches whose figures are kept
    clock: Callable[[], int] = now_ms  # ms since 1970: the stamps

    def __post_init__(self) -> None:
        super().__post_init__()
        positive = ("batch_size", "max_queries", "max_waiting_queries", "poll_records",
                    "checkpoint_operations", "max_reply_rows")  # fmt: skip
        for name in positive:
            if getattr(self, name) < 1:
                raise PipelineError(f"{name} is {getattr(self, name)}: it must be at least 1")
        for name in ("batch_interval", "query_interval", "checkpoint_interval", "history"):
            if not getattr(self, name) >= 0:
                raise PipelineError(f"{name} is {getattr(self, name)}: it must not be negative")


@dataclass(frozen=True)
class BatchStats:
    """One batch, for progress bars and plots."""

    operations: int
    queries: int  # among the operations
    seconds: float  # that graph.apply took
    since_start: float  # seconds since the pipeline was made or resumed
    total_operations: int  # since the stream began
    version: int  # of the graph after it
    num_edges: int
    density: float  # filled slots / slots
    time: int  # stamp of its last operation, ms since 1970
    unchanged: Unchanged = field(default_factory=Unchanged)  # operations that changed nothing


@dataclass(frozen=True)
class CheckpointFigures:
    """One checkpoint that was committed."""

    number: int
    time: int  # when it was taken, ms since 1970
    operations: int  # applied by then, since the stream began
    version: int  # of the graph then
    bytes: int
    stopped: float  # seconds that the stream waited for it
    seconds: float  # from its beginning to its commit


class StreamGraph(Protocol):
    """What a pipeline asks of a graph; `lpma.Graph` has it.

    `apply` changes nothing where it raises OutOfMemory, unless that is AnswersTooLarge: then the
    updates are applied. Batches have been validated. `image` is a copy of all it holds; see
    checkpointer.Part."""

    @property
    def version(self) -> int: ...
    @property
    def directed(self) -> bool: ...
    @property
    def has_predecessors(self) -> bool: ...
    @property
    def num_edges(self) -> int: ...
    @property
    def num_vertices(self) -> int: ...
    @property
    def levels(self) -> int: ...
    @property
    def density(self) -> float: ...
    @property
    def unchanged(self) -> Unchanged: ...
    def apply(self, batch: Columns, /) -> Answers: ...
    def image(self, old: Any = None, /) -> Image: ...
