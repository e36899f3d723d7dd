"""Records that their source decodes itself, as those of an edge feed (`ingest/feed/source.py`)."""

from __future__ import annotations

from collections.abc import Callable

from ...types import Record, Rejected
from .base import TopicReader, bytes_of


class DecodedTopic(TopicReader):
    """decode: as `Source.decoder`."""

    def __init__(self, decode: Callable[[bytes], Record]) -> None:
        self._decode = decode

    def one(self, value: bytes | Rejected, key: bytes, stamp: int) -> Record:
        return self._decode(bytes_of(value))
