"""Records that Confluent's own serializers made, against the registry that they asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import ingest
import lpma
from ingest import Fields, Pipeline, SqliteLog
from tests.ingest.registry.test_stream import edges
from tests.support.schema_registry import Registry, served

pytest.importorskip("fastavro", reason="pip install 'lpma-graph[registry]'")
confluent = pytest.importorskip(
    "confluent_kafka.schema_registry", reason="pip install 'confluent-kafka[avro,json,protobuf]'"
)
VALUE = pytest.importorskip("confluent_kafka.serialization").SerializationContext(
    "updates", "value"
)

AVRO = {
    "type": "record",
    "name": "Rating",
    "namespace": "shop",
    "fields": [
        {
            "name": "who",
            "type": {
                "type": "record",
                "name": "User",
                "fields": [
                    {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
                    {"name": "tags", "type": {"type": "map", "values": "string"}},
                ],
            },
        },
        {"name": "item", "type": ["null", "long", "string"]},
        {
            "name": "stars",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "op", "type": {"type": "enum", "name": "Op", "symbols": ["append", "delete"]}},
    ],
}
RATING = {"who": {"id": UUID(int=7), "tags": {"a": "b"}}, "item": 9, "stars": Decimal("4.50"),
          "at": datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC), "op": "append"}  # fmt: skip
OBJECT = {"title": "Rating", "type": "object", "$schema": "http://json-schema.org/draft-07/schema#",
          "properties": {"user": {"type": "string"}, "item": {"type": "string"}}}  # fmt: skip


@pytest.fixture
def registry() -> Iterator[Registry]:
    with served() as found:
        yield found


@pytest.fixture
def client(registry: Registry) -> Any:
    return confluent.SchemaRegistryClient({"url": registry.url})


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteLog]:
    with SqliteLog(tmp_path / "log") as log:
        yield log


def graph_of(log: SqliteLog, registry: Registry, fields: Fields, **settings: Any) -> Any:
    """The graph that the log makes, and the reasons of its dead letters."""
    with Pipeline(
        log, lpma.Graph(names=True, device="cpu"), names=True, records=fields,
        schema_registry=registry.url, **settings,
    ) as pipeline:  # fmt: skip
        pipeline.run("end")
        return pipeline.graph, [letter.reason for letter in pipeline.outputs.kept]


def test_avro(log: SqliteLog, registry: Registry, client: Any) -> None:
    from confluent_kafka.schema_registry.avro import AvroSerializer

    serializer = AvroSerializer(client, json.dumps(AVRO))
    for row in (RATING, RATING | {"item": "nine"}, RATING | {"item": None}):
        log.produce("updates", serializer(row, VALUE))
    log.produce("updates", serializer(RATING | {"op": "delete", "item": "nine"}, VALUE))
    fields = Fields("who.id", "item", "stars", time="at", kind="op", time_unit="s")
    graph, reasons = graph_of(log, registry, fields)
    user = str(UUID(int=7))
    assert edges(graph) == {(user, 9, 4.5)}
    edge = graph.edge(user, 9)
    assert edge is not None
    assert edge.time == 1_700_000_000_123
    assert len(reasons) == 1
    assert reasons[0].startswith("item: expected an integer or text")


def test_an_evolved_schema_is_read_by_the_names_of_fields(
    log: SqliteLog, registry: Registry, client: Any
) -> None:
    from confluent_kafka.schema_registry.avro import AvroSerializer

    parts = [
        {"name": "user", "type": "string"}, {"name": "item", "type": "string"},
        {"name": "stars", "type": ["null", "double"], "default": None},
    ]  # fmt: skip
    for number, fields in enumerate([parts[:2], parts, parts[::-1]]):
        schema = json.dumps({"type": "record", "name": "R", "fields": fields})
        row = {"user": f"u{number}", "item": "i", "stars": 2.0}
        log.produce("updates", AvroSerializer(client, schema)(row, VALUE))
    graph, reasons = graph_of(log, registry, Fields("user", "item", "stars"))
    assert edges(graph) == {("u0", "i", 1.0), ("u1", "i", 2.0), ("u2", "i", 2.0)}
    assert not reasons
    assert len(registry.schemas) == 3


def test_avro_with_references(log: SqliteLog, registry: Registry, client: Any) -> None:
    from confluent_kafka.schema_registry.avro import AvroSerializer

    user = {"type": "record", "name": "User", "namespace": "x", "fields": [
        {"name": "id", "type": "string"}]}  # fmt: skip
    client.register_schema("user", confluent.Schema(json.dumps(user), "AVRO"))
    schema = confluent.Schema(
        json.dumps({"type": "record", "name": "x.R", "fields": [
            {"name": "from", "type": "User"}, {"name": "to", "type": "x.User"}]}),
        "AVRO", [confluent.SchemaReference("x.User", "user", 1)],
    )  # fmt: skip
    serializer = AvroSerializer(client, schema)
    log.produce("updates", serializer({"from": {"id": "a"}, "to": {"id": "b"}}, VALUE))
    graph, reasons = graph_of(log, registry, Fields("from.id", "to.id"))
    assert edges(graph) == {("a", "b", 1.0)}
    assert not reasons


def test_json(log: SqliteLog, registry: Registry, client: Any) -> None:
    from confluent_kafka.schema_registry.json_schema import JSONSerializer

    serializer = JSONSerializer(json.dumps(OBJECT), client)
    log.produce("updates", serializer({"user": "a", "item": "żółć"}, VALUE))
    log.produce("updates", b'{"user": "c", "item": "d"}')  # beside it, without the envelope
    log.produce("updates", ingest.encode_row("e", "f", names=True))
    graph, reasons = graph_of(log, registry, Fields("user", "item"))
    assert edges(graph) == {("a", "żółć", 1.0), ("c", "d", 1.0), ("e", "f", 1.0)}
    assert not reasons


def test_protobuf_is_refused_by_name(log: SqliteLog, registry: Registry, client: Any) -> None:
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
    from google.protobuf.struct_pb2 import Struct

    serializer = ProtobufSerializer(Struct, client, {"use.deprecated.format": False})
    message = Struct()
    message.update({"user": "a", "item": "b"})
    log.produce("updates", serializer(message, VALUE))
    _, (reason,) = graph_of(log, registry, Fields("user", "item"))
    assert "Protobuf, which is not read: JSON and Avro are" in reason
