"""What an epoch must hold, found slowly: the records before its markers, applied one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import ingest
from ingest import Partition
from ingest.formats.markers import marker_of
from lpma import Kind
from lpma.sharding import owners_of
from tests.support.oracles import host
from tests.support.stream_model import SavedModel, weighted

Stream = Mapping[Partition, Sequence[bytes]]
Edges = dict[tuple[int, int], float]


def edges_of(part: Any) -> Edges:
    """(u, v) → weight, of a snapshot or a part of one."""
    indptr, indices, weights = (host(a) for a in (part.indptr, part.indices, part.weights))
    src = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return dict(
        zip(zip(src.tolist(), indices.tolist(), strict=True), weights.tolist(), strict=True)
    )


def replayed(stream: Stream) -> Edges:
    """The edges after all of these records. Partitions share no row, so their order is free."""
    model = SavedModel()
    for records in stream.values():
        for data in records:
            model.apply(ingest.decode_record(data).batch)
    return weighted(model)


def before(stream: Stream, epoch: int) -> Stream | None:
    """What lies before the first marker of this epoch, in each partition; None if one has none."""
    found = {}
    for partition, records in stream.items():
        epochs = [marker_of(data) for data in records]
        if epoch not in epochs:
            return None
        found[partition] = records[: epochs.index(epoch)]
    return found


def in_all(stream: Stream) -> list[int]:
    """The epochs of which every partition has a marker, in ascending order."""
    found = [{marker_of(data) for data in records} - {None} for records in stream.values()]
    return sorted(epoch for epoch in set.intersection(*found) if epoch is not None)


def random_record(rng: np.random.Generator, number: int, partitions: int) -> bytes:
    """A few edges, put in, set or taken out, whose sources this partition owns."""
    rows = int(rng.integers(1, 5))
    owned = np.flatnonzero(owners_of(np.arange(32 * partitions), partitions) == number)
    src = rng.choice(owned[:6], rows)
    dst = rng.integers(0, 12, rows)
    kind = rng.choice([Kind.INSERT, Kind.INSERT, Kind.DELETE, Kind.SET], rows).astype(np.uint8)
    weight = np.maximum(rng.integers(-1, 9, rows), kind != Kind.SET) / 4
    return ingest.encode_updates(src, dst, weight, None, kind)
