"""A stream of encoded records held in memory: what a pipeline costs apart from its source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingest import Partition, Source, encode_updates
from ingest.sources import Identity, Polled

RECORD = 4096  # edges of a columnar record
PARTITION = Partition("memory", 0)


class MemorySource(Source):
    """Records in memory, at the offsets of their places."""

    def __init__(self, records: list[bytes]) -> None:
        self._records = records
        self._next = 0

    def poll(self, max_records: int, timeout: float) -> list[Polled]:
        start = self._next
        self._next = min(start + max_records, len(self._records))
        return [Polled(PARTITION, i, self._records[i]) for i in range(start, self._next)]

    def seek(self, positions: Mapping[Partition, int]) -> None:
        self._next = positions.get(PARTITION, self._next)

    def positions(self) -> dict[Partition, int]:
        return {PARTITION: self._next}

    def at_end(self) -> bool:
        return self._next == len(self._records)

    def identity(self) -> Identity:
        return Identity("memory", {PARTITION.topic: "0"})


def encoded(src: Any, dst: Any) -> list[bytes]:
    """Edges as columnar records of RECORD each."""
    pieces = range(0, len(src), RECORD)
    return [encode_updates(src[i : i + RECORD], dst[i : i + RECORD]) for i in pieces]


def refuse(letter: object) -> None:
    """Where dead letters go: there should be none."""
    raise AssertionError(f"a record was refused: {letter}")
