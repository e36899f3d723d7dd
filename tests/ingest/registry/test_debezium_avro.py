"""Changes of a table in Avro, values and keys in Confluent's envelope, as Debezium's converter
writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lpma
from ingest import Debezium, Fields, Pipeline, SqliteLog
from ingest.errors import AllRecordsBad
from tests.support.schema_registry import avro, enveloped, served
from tests.support.waiting import wait_for

pytest.importorskip("fastavro", reason="pip install 'lpma-graph[registry]'")

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2,
           "connect.name": "org.apache.kafka.connect.data.Decimal",
           "connect.parameters": {"scale": "2"}}  # fmt: skip
MICROS = {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}
ROW = {"type": "record", "name": "Value", "fields": [
    {"name": "id", "type": "long"}, {"name": "payer", "type": "string"},
    {"name": "payee", "type": ["null", "string"], "default": None},
    {"name": "amount", "type": DECIMAL}, {"name": "at", "type": MICROS}]}  # fmt: skip
SOURCE = {"type": "record", "name": "Source", "fields": [
    {"name": "connector", "type": "string"}, {"name": "ts_ms", "type": "long"}]}  # fmt: skip
ENVELOPE = {"type": "record", "name": "Envelope", "namespace": "shop.payments", "fields": [
    {"name": "before", "type": ["null", ROW], "default": None},
    {"name": "after", "type": ["null", "Value"], "default": None},
    {"name": "source", "type": SOURCE}, {"name": "op", "type": "string"},
    {"name": "ts_ms", "type": ["null", "long"], "default": None}]}  # fmt: skip
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}


def row(id: int, payer: str, payee: str | None, cents: int) -> dict[str, Any]:
    amount = cents.to_bytes(4, "big", signed=True)
    return {"id": id, "payer": payer, "payee": payee, "amount": amount, "at": 5_000_000}


@pytest.mark.parametrize("on_repeat", ["sum", "last"])
def test_a_table_in_avro_is_the_graph(on_repeat: Any, tmp_path: Path) -> None:
    table = Debezium(Fields("payer", "payee", weight="amount", time="at"), on_repeat=on_repeat)
    ann, bob = row(1, "ann", "bob", 150), row(2, "ann", "bob", 25)
    moved = row(2, "ann", "cat", 25)
    changes = [("c", None, ann), ("r", None, bob), ("u", bob, moved), ("d", ann, None)]
    expected = [{("ann", "bob"): 1.5}, {("ann", "bob"): 1.75 if on_repeat == "sum" else 0.25},
                {("ann", "cat"): 0.25} | ({("ann", "bob"): 1.5} if on_repeat == "sum" else {}),
                {("ann", "cat"): 0.25}]  # fmt: skip
    with served() as registry, SqliteLog(tmp_path / "log") as log:
        value, key = registry.add(ENVELOPE), registry.add(KEY, subject="updates-key")
        for op, before, after in changes:
            source = {"connector": "postgresql", "ts_ms": 6}
            content = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 7}
            of = (after or before)["id"]  # type: ignore[index]
            log.produce("updates", enveloped(value, avro(ENVELOPE, content)),
                        key=enveloped(key, avro(KEY, {"id": of})))  # fmt: skip
        log.produce("updates", None, key=enveloped(key, avro(KEY, {"id": 1})))
        graph = lpma.Graph(names=True, device="cpu")
        with Pipeline(log, graph, records=table, names=True, poll_records=1, batch_size=1,
                      schema_registry=registry.url) as pipeline:  # fmt: skip
            for weights in expected:
                assert wait_for(lambda: pipeline.step(drain=True))
                columns: Any = graph.snapshot().edges()
                src, dst, found, times = columns
                assert dict(zip(zip(src.tolist(), dst.tolist(), strict=True), found.tolist(),
                                strict=True)) == weights  # fmt: skip
                assert set(times.tolist()) == {5000}
            pipeline.run("end")
            assert not pipeline.outputs.kept
            assert pipeline.stats.skipped == {"tombstone": 1}
    with served() as registry, SqliteLog(tmp_path / "log") as log:
        registry.add(ENVELOPE)
        registry.add(KEY, subject="updates-key")
        graph = lpma.Graph(names=True, device="cpu")
        with Pipeline(log, graph, records=table, names=True, schema_registry=registry.url) as p:
            p.run("end")
            assert (graph.num_edges, p.outputs.rejected) == (1, 0)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"time": "source.ts_us"}, "records has the field 'source.ts_us'"),
        ({"weight": "amuont"}, "amuont: the row has no such column: it has id, payer, payee, am"),
        ({"time": "when"}, "when: the row has no such column: it has id, payer, payee, am"),
    ],
)
def test_what_the_mapping_names_and_no_record_has(
    fields: dict[str, Any], said: str, flat: bool, tmp_path: Path
) -> None:
    ann = row(1, "ann", "bob", 150)
    content = {"before": None, "after": ann, "op": "c", "ts_ms": 7,
               "source": {"connector": "postgresql", "ts_ms": 6}}  # fmt: skip
    table = Debezium(Fields("payer", "payee", **fields), on_repeat="sum")
    with served() as registry, SqliteLog(tmp_path / "log") as log:
        value, key = registry.add(ROW if flat else ENVELOPE), registry.add(KEY, subject="k")
        told = avro(ROW, ann) if flat else avro(ENVELOPE, content)
        for _ in range(2):
            log.produce("updates", enveloped(value, told), key=enveloped(key, avro(KEY, {"id": 1})))
        graph = lpma.Graph(names=True, device="cpu")
        with (
            Pipeline(log, graph, records=table, names=True, stop_if_first_bad=1000,
                     schema_registry=registry.url) as pipeline,
            pytest.raises(AllRecordsBad, match=said),
        ):  # fmt: skip
            pipeline.run("end")
        assert graph.version == 0
