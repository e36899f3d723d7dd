"""What a reader of a topic does: it reads one record, or many as stretches. The plainest has a
source that decodes its records itself, as an edge feed does (`ingest/feed/source.py`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from ...errors import RecordError
from ...formats.row_reader import Stretch
from ...registry.envelope import Envelope
from ...types import Record, Rejected, Values


class TopicReader(ABC):
    """Reads the records of one topic, in their order. stamp: of those that are read; it decides
    which schemas there are. envelope: that some may be in; None: none is in one."""

    envelope: Envelope | None = None

    @abstractmethod
    def one(self, value: bytes | Rejected, key: bytes, stamp: int) -> tuple[Record, int]:
        """What a record holds, and how many rows of a table that are remembered it changed: 0 or 1.
        Raises RecordError; then none has changed."""

    def stretches(self, values: Values, stamp: int) -> Iterator[Stretch]:
        """Many records, in order, with the same result as `one`. REQUIRES: those of a stretch
        without rows are read by `one` before the next stretch is asked for."""
        yield Stretch(0, len(values))

    def revert(self) -> None:
        """Let the row be again what it was before the last record. REQUIRES: that changed one."""
        raise NotImplementedError


class DecodedTopic(TopicReader):
    """decode: as `Source.decoder`."""

    def __init__(self, decode: Callable[[bytes], Record]) -> None:
        self._decode = decode

    def one(self, value: bytes | Rejected, key: bytes, stamp: int) -> tuple[Record, int]:
        return self._decode(bytes_of(value)), 0


def bytes_of(value: bytes | Rejected) -> bytes:
    """Raises RecordError for what the source could not read."""
    if isinstance(value, Rejected):
        raise RecordError(value.reason, "unreadable")
    return value
