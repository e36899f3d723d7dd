"""Edge files, and what a source reads of them as plain rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow

import ingest
from ingest import FileSource
from ingest.sources import Rejected
from lpma.batch.columns import Columns

Row = tuple[int, int, float, int | None, int]


Write = Callable[..., Path]


def drain(source: FileSource) -> dict[int, Row | str]:
    """Offset → (src, dst, weight, time, kind), or the reason it was rejected."""
    found: dict[int, Row | str] = {}
    while polled := source.poll():
        for record in polled:
            assert record.partition == source.partition
            if isinstance(record.value, Rejected):
                found[record.offset] = record.value.reason
                continue
            assert isinstance(record.value, Columns)
            for i in range(len(record.value)):
                found[record.offset + i] = row(record.value, i)
    assert source.at_end()
    assert source.positions() == {source.partition: len(found)}
    assert sorted(found) == list(range(len(found)))
    return found


def row(c: Columns, i: int) -> Row:
    weight = 1.0 if c.weight is None else float(c.weight[i])
    time = None if c.time is None else int(c.time[i])
    return int(c.src[i]), int(c.dst[i]), weight, time, int(c.kind[i])


def edges(path: Path, **options: Any) -> list[Row | str]:
    return list(drain(FileSource(path, **options)).values())


def plain(*pairs: tuple[int, int]) -> list[Row]:
    return [(u, v, 1.0, None, 0) for u, v in pairs]


Edge = tuple[Any, Any, float, int | None]


def read(path: Path, **options: Any) -> list[Edge]:
    """Every edge of a file: its ends, its weight and its time."""
    found: list[Edge] = []
    for columns in ingest.read_edges(path, **options):
        n = len(columns)
        weights = [1.0] * n if columns.weight is None else columns.weight.tolist()
        times = [None] * n if columns.time is None else columns.time.tolist()
        src, dst = (end.tolist() for end in (columns.src, columns.dst))
        found += zip(src, dst, weights, times, strict=True)
    return found


def zstd(data: bytes) -> bytes:
    packed: bytes = pyarrow.Codec("zstd").compress(data, asbytes=True)
    return packed
