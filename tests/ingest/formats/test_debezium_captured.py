"""Records that databases' connectors wrote, as people published them: each leaves the edges that
its table has then.

`data/debezium` has them with values of ours: a line is a record's key and value, and the edges
(source, target, weight, time) that are there after it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lpma
from ingest import DeadLetter, Debezium, Fields, Partition, Pipeline, SqliteLog
from tests.support.cdc.cases import times_of, weights_of

CAPTURED = Path(__file__).parents[2] / "support/data/debezium"
READ_AS = {
    "flattened-rewrite": Debezium(
        Fields("buyer", "seller", "price", "order_date"), on_repeat="sum"
    ),
    "mongodb-2.4-with-pre-images": Debezium(Fields("from", "to", "km", "at"), on_repeat="sum"),
    "mysql-1.9": Debezium(
        Fields("caller", "callee", "minutes", "began", time_unit="s"), on_repeat="sum"
    ),
    "mysql-3.2-decimal": Debezium(
        Fields("customer_id", "product_id", "price", "order_time"), on_repeat="last"
    ),
    "oracle-1.6-variable-scale": Debezium(Fields("F_SRC", "F_DST", "F_W", "F_AT")),
    "oracle-3.0-text": Debezium(Fields("MERCHANT", "GATEWAY", "FEE", "SINCE"), on_repeat="last"),
    "postgres-0.9": Debezium(Fields("lender", "borrower", "weight")),
    "postgres-2.7-full-truncate": Debezium(
        Fields("payer", "payee", "amount", "at"), on_repeat="sum"
    ),
    "postgres-3.0-key-is-the-ends": Debezium(Fields("follower", "followed", "weight", "since")),
    "sqlserver-2.4": Debezium(Fields("from_id", "to_id", "qty", "sent"), on_repeat="sum"),
}


def test_every_capture_is_read() -> None:
    assert {path.stem for path in CAPTURED.glob("*.jsonl")} == set(READ_AS)


@pytest.mark.parametrize("name", READ_AS)
def test_a_captured_topic_is_its_table(name: str) -> None:
    lines = [json.loads(line) for line in (CAPTURED / f"{name}.jsonl").read_text().splitlines()]
    topic = topic_of(lines[0]["value"])
    with SqliteLog(":memory:", topics=(topic,)) as log:
        log.create_topic(topic)
        keys, values = ([_bytes(line[part]) for line in lines] for part in ("key", "value"))
        log.produce_many(topic, values, keys=keys)
        graph = lpma.Graph(device="cpu", weight_dtype="float64", names=True)
        letters: list[DeadLetter] = []
        given: Any = {"records": READ_AS[name], "names": True, "dead_letters": letters.append}
        pipeline = Pipeline(log, graph, poll_records=1, **given)
        at = 0
        while at < len(lines):
            pipeline.step(drain=True)
            at = log.positions()[Partition(topic, 0)]
            if at:
                check(graph, lines[at - 1]["edges"])
                assert not letters
        pipeline.close()


def topic_of(value: Any) -> str:
    """As a connector calls it, by the table."""
    source = value.get("payload", value).get("source", {})
    return ".".join(["server", source.get("schema") or "db", source.get("table", "orders")])


def check(graph: lpma.Graph, edges: list[Any]) -> None:
    weights, times = weights_of(graph), times_of(graph)
    assert weights == pytest.approx({(u, v): weight for u, v, weight, _ in edges})
    assert times.items() >= {((u, v), time) for u, v, _, time in edges if time is not None}


def _bytes(value: Any) -> bytes | None:
    return None if value is None else json.dumps(value, ensure_ascii=False).encode()
