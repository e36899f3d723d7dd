"""Markers: found by their first bytes, by nothing else; to a pipeline they are nothing."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ingest
import lpma
from ingest.formats.markers import MAX_EPOCH, encode_marker, marker_of

EPOCHS = st.one_of(st.integers(0, MAX_EPOCH), st.sampled_from([0, 127, 128, 2**32, MAX_EPOCH]))


@given(EPOCHS)
def test_a_marker_is_found_again(epoch: int) -> None:
    data = encode_marker(epoch)
    assert data == msgpack.packb({"epoch": epoch})
    assert marker_of(data) == epoch
    record = ingest.decode_record(data)
    assert (len(record.batch), record.queries, record.producer) == (0, (), None)


@given(st.one_of(st.binary(max_size=30), st.binary(max_size=12).map(b"\x81\xa5epoch".__add__)))
def test_nothing_else_is_one(data: bytes) -> None:
    epoch = marker_of(data)
    try:
        value = msgpack.unpackb(data, strict_map_key=False)
    except Exception:  # noqa: BLE001 - whatever msgpack says of bytes that are none of it
        value = None
    found = value["epoch"] if isinstance(value, dict) and value.keys() == {"epoch"} else None
    is_number = type(found) is int and 0 <= found <= MAX_EPOCH
    assert epoch == (found if is_number else None)


@pytest.mark.parametrize(
    "other",
    [
        ingest.encode_row(1, 2),
        ingest.encode_query("epoch", lpma.Kind.DEGREE, 1),
        msgpack.packb({"epoch": 1, "source": "shop"}),
        msgpack.packb({"epoch": True}),
        msgpack.packb({"epoch": "1"}),
        encode_marker(1)[:-1],
        encode_marker(1) + b"\x00",
        bytearray(encode_marker(1)),
        None,
        ingest.sources.Rejected(b"", "bad"),
    ],
)
def test_what_looks_like_a_marker_is_none(other: object) -> None:
    assert marker_of(other) is None


@pytest.mark.parametrize("epoch", [-1, 2**63, True, 1.5, None])
def test_an_epoch_is_a_number_that_fits(epoch: int) -> None:
    with pytest.raises(ingest.RecordError, match="epoch"):
        encode_marker(epoch)
    with pytest.raises(ingest.RecordError):
        ingest.decode_record(msgpack.packb({"epoch": epoch}))


@pytest.mark.parametrize("names", [False, True])
def test_a_pipeline_that_is_no_shard_reads_over_them(log: ingest.SqliteLog, names: bool) -> None:
    row = ingest.encode_row(1, 2, names=names)
    log.produce_many("updates", [encode_marker(1), row, encode_marker(2), row, encode_marker(3)])
    graph = lpma.Graph(device="cpu", names=names)
    with ingest.Pipeline(log, graph, names=names) as pipeline:
        assert pipeline.run(until="end") == 2
        assert pipeline.outputs.rejected == 0
    assert graph.edges([1], [2]).weights.tolist() == [2.0]  # type: ignore[union-attr]
