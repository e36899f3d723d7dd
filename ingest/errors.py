"""What can go wrong between a stream and the graph, by type. Every message says what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lpma.errors import LpmaError

if TYPE_CHECKING:
    from .types import Reply


class IngestError(LpmaError):
    """Base of every error this package raises on purpose."""


class RecordError(IngestError, ValueError):
    """A record is malformed, too large, or asks for the impossible. The codec raises no other
    error.

    kind: what dead letters are counted by: "oversized", "malformed" (no record at all), "invalid"
    (a record with a wrong field), "late", "ahead" (its time, of the clock), "misplaced" (in another
    partition than its vertices'), "unserved" (not done here), "unreadable" (to its source)."""

    def __init__(self, message: str, kind: str = "invalid") -> None:
        super().__init__(message)
        self.kind = kind


class WordError(IngestError, ValueError):
    """A word cannot name a vertex of the graph it was meant for."""


class SourceError(IngestError):
    """A source cannot be read, or is not what it says it is."""


class AwayError(SourceError):
    """Nothing answers, apparently for a reason that may pass: ask again."""


class OffsetError(SourceError):
    """An offset lies outside what the source still holds: trimmed away, or never written."""


class IdentityError(SourceError):
    """A source is not the one a checkpoint was taken from: foreign, replaced or re-created."""


class RewrittenError(IdentityError):
    """A log holds other records than those that were read: it was rolled back and written again."""


class CheckpointError(IngestError):
    """A checkpoint directory cannot be used: none good, already in use, or a write failed."""


class JournalError(CheckpointError):
    """The journal since a checkpoint is missing or damaged: restore it, or accept its loss."""


class PastError(CheckpointError):
    """A past view cannot be had: its records or its checkpoints are gone, or the stream has not
    come so far. The message says what can be had."""


class LockedError(CheckpointError):
    """Another writer holds the checkpoint directory, or has taken it over since; or another one
    holds the file of results."""


class PipelineError(IngestError, RuntimeError):
    """A pipeline cannot begin or go on: its settings make no sense or do not fit together, it is
    closed, or an earlier failure stopped it."""


class AllRecordsBad(PipelineError):
    """The first records of a stream that begins are all bad, or none has a field that the mapping
    names, or they are Debezium's change events and read as plain rows: the setting
    `stop_if_first_bad`. No checkpoint and no dead letter is left. `absent`: says which field, and
    what they have, or that they are such events; "" where they are bad."""

    def __init__(self, text: str, absent: str = "") -> None:
        super().__init__(text)
        self.absent = absent


class UnknownSetting(PipelineError, TypeError):
    """A pipeline was given a setting that does not exist; the message names the nearest one."""


class VertexLimitError(PipelineError):
    """A stream names more vertices than a graph has ids for."""


class ClusterError(IngestError):
    """A cluster cannot do what was asked of it, or not in time. `shard`: the number of the shard
    that it lies with; None: none in particular. `why`: what is wrong there. `final`: another try
    would fail as well."""

    final = False

    def __init__(self, why: str, shard: int | None = None) -> None:
        super().__init__(why if shard is None else f"shard {shard}: {why}")
        self.shard = shard
        self.why = why

    def __reduce__(self) -> tuple[type[ClusterError], tuple[str, int | None]]:
        return type(self), (self.why, self.shard)


class SnapshotRefused(ClusterError):
    """A shard can hold no snapshot of an epoch: the message says why, and what helps."""

    final = True


class EpochsUsedUp(ClusterError):
    """A marker of the topic has the highest number that an epoch may have, so none can follow."""

    final = True


class ClusterClosed(ClusterError):
    """The cluster was closed, before the call or during it."""

    final = True


class EngineLost(ClusterError):
    """What carries the shards is gone as a whole. Make the cluster again with the same checkpoint
    directory: it goes on from there."""

    final = True


class QueryError(IngestError):
    """Base of what a client raises if a query has no answer."""


class QueryTimeout(QueryError, TimeoutError):
    """No reply came in time. `replies`: those that did, in the order asked, None for the others."""

    def __init__(self, message: str, replies: Sequence[Reply | None]) -> None:
        super().__init__(message)
        self.replies = list(replies)


class QueryRefused(QueryError):
    """The pipeline refused to answer the query. `reply.error` says why, for programs:
    "deadline", "hops", "unsupported", "memory" or "retry"; the message says what to do."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"refused ({reply.error}): {reply.message}")
        self.reply = reply
