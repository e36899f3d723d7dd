"""Markers: the records that cut a stream of several partitions into epochs.

Idea: a shard reads partitions of its own, so what several shards have applied at one moment is no
state that the stream ever had. A marker of the same number in every partition says where each shard
is to look up: everything before it belongs to the epoch, nothing after it does. Source: Chandy and
Lamport, "Distributed snapshots" (ACM TOCS 1985, doi:10.1145/214451.214456), through the log.

    marker := { "epoch": 0 … 2^63 − 1 }      ms since 1970 at which it was begun; they rise

It says nothing about the graph: to a pipeline that is no shard it is a record without operations.
"""

from __future__ import annotations

import msgpack

from ..errors import RecordError
from ..types import Values
from .msgpack import integer, only_fields, unpack

MAX_EPOCH = 2**63 - 1
MARKER_FIELDS = frozenset({"epoch"})
_HEAD = b"\x81\xa5epoch"  # a map of one entry, in its shortest encoding
_MAX_BYTES = len(_HEAD) + 9


def encode_marker(epoch: int) -> bytes:
    """The marker of `epoch`, in ms since 1970. Raises RecordError if it is no such number.

    >>> ingest.decode_record(ingest.formats.markers.encode_marker(1700000000000)).batch.src
    array([], dtype=uint32)
    """
    integer({"epoch": epoch}, "epoch", 0, MAX_EPOCH)
    data: bytes = msgpack.packb({"epoch": epoch})
    return data


def marker_of(data: object) -> int | None:
    """The epoch of a record that is a marker as `encode_marker` writes it; None of any other. Costs
    a look at the first bytes.

    >>> markers = ingest.formats.markers
    >>> markers.marker_of(markers.encode_marker(7)), markers.marker_of(ingest.encode_row(1, 2))
    (7, None)
    """
    if type(data) is not bytes or len(data) > _MAX_BYTES or not data.startswith(_HEAD):
        return None
    try:
        return read_marker(unpack(data, _MAX_BYTES))
    except RecordError:
        return None


def markers_in(value: object) -> list[tuple[int, int]]:
    """(place, epoch) of each marker in the value of a `Polled`: one record, or many, whose bytes
    are searched at once.

    >>> markers = ingest.formats.markers
    >>> values = [ingest.encode_row(1, 2), markers.encode_marker(7)]
    >>> markers.markers_in(ingest.types.Values.of(values))
    [(1, 7)]
    """
    if not isinstance(value, Values):
        epoch = marker_of(value)
        return [] if epoch is None else [(0, epoch)]
    if value.data.find(_HEAD, value.starts[0], value.stops[-1]) < 0:
        return []
    found = ((place, marker_of(record)) for place, record in enumerate(value))
    return [(place, epoch) for place, epoch in found if epoch is not None]


def read_marker(fields: dict[object, object]) -> int:
    """The epoch that these fields give. Raises RecordError."""
    only_fields(fields, MARKER_FIELDS)
    return integer(fields, "epoch", 0, MAX_EPOCH)
