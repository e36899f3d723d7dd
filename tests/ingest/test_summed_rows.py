"""Rows that share their ends, summed: weights and times, however records are polled and batches are
cut, and over resumes at any place."""

from __future__ import annotations

import json
from base64 import b64encode
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lpma
from ingest import Debezium, Fields, Partition, Pipeline, SqliteLog

PAID = Debezium(Fields("payer", "payee", weight="amount", time="at"), on_repeat="sum")
TOPIC = "paid"

ends = st.none() | st.integers(0, 2)
row = st.fixed_dictionaries({
    "payer": ends, "payee": ends, "amount": st.sampled_from([
        0.1, 0.2, "0.10", "-0.30", 1, 1e9, "99999999999999999.99", "-99999999999999999.98",
        2**60 + 1,
    ]),
    "at": st.integers(1, 9),
})  # fmt: skip
change = st.tuples(st.sampled_from("crudx"), st.integers(1, 4), row)
truncation: tuple[str, int, dict[str, Any]] = ("t", 0, {})
event = change | st.just(truncation)

Rows = dict[int, dict[str, Any]]
Edges = dict[tuple[int, int], tuple[float, int]]


def record(op: str, id: int, row: dict[str, Any]) -> tuple[bytes | None, bytes | None]:
    """Its value, and its key. The rows before are not told."""
    key = json.dumps({"id": id}).encode()
    if op == "x":
        return None, key
    after = None if op in "dt" else {"id": id, **row}
    value = {"op": op, "before": None, "after": after, "source": {"connector": "postgresql"}}
    return json.dumps(value).encode(), None if op == "t" else key


def after(rows: Rows, op: str, id: int, row: dict[str, Any]) -> Rows:
    if op == "t":
        return {}
    left = {other: each for other, each in rows.items() if other != id}
    return left if op in "dx" else {**left, id: row}


def edges_of(rows: Rows, directed: bool) -> Edges:
    found: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for each in rows.values():
        ends = each["payer"], each["payee"]
        if None not in ends:
            found.setdefault(ends if directed else (min(ends), max(ends)), []).append(each)
    sums = {pair: (float(sum(Fraction(str(e["amount"])) for e in of)), max(e["at"] for e in of))
            for pair, of in found.items()}  # fmt: skip
    return {pair: each for pair, each in sums.items() if each[0] > 0}


def edges_in(graph: Any) -> Edges:
    src, dst, weights, times = (each.tolist() for each in graph.snapshot().edges())
    found = dict(zip(zip(src, dst, strict=True), zip(weights, times, strict=True), strict=True))
    return {(u, v): of for (u, v), of in found.items() if graph.directed or u <= v}


@given(st.lists(event, max_size=16), st.integers(1, 5), st.integers(1, 20), st.booleans(),
       st.booleans(), st.randoms(use_true_random=False))  # fmt: skip
@settings(deadline=None)
def test_edges_are_the_sums_of_the_rows(
    events: list[Any], size: int, polled: int, is_alone: bool, directed: bool, random: Any
) -> None:
    """Where another topic is read, too, a truncation takes the edges of this one alone. In an
    undirected graph rows share their edge whichever way they name its ends."""
    table = Debezium(PAID.fields, "delete", "sum")
    states: list[Rows] = [{}]
    for each in events:
        states.append(after(states[-1], *each))
    topics = [TOPIC] if is_alone else [TOPIC, "others"]
    place = Partition(TOPIC, 0)
    with TemporaryDirectory() as directory, SqliteLog(Path(directory) / "log", topics) as log:
        given: dict[str, Any] = {"batch_size": size, "poll_records": polled}
        records = [record(*each) for each in events]
        log.produce_many(TOPIC, [v for v, _ in records], keys=[k for _, k in records])
        graph = lpma.Graph(directed, device="cpu", weight_dtype="float64")
        pipeline = Pipeline(log, graph, Path(directory) / "state", records=table, **given)
        while True:
            done = pipeline.step(drain=True)
            at = pipeline.positions()[place]
            assert at.row == 0
            assert edges_in(pipeline.graph) == edges_of(states[at.offset], directed)
            if at.offset == len(events):
                break
            assert done or not pipeline.source.at_end()
            if random.random() < 0.3:  # killed, maybe after a checkpoint
                if random.random() < 0.5:
                    pipeline.checkpoint_now()
                pipeline.close(checkpoint=False)
                pipeline = Pipeline.resume(Path(directory) / "state", log, **given)
        assert not pipeline.outputs.kept
        pipeline.close()


def test_a_topic_is_summed_beside_one_that_is_not(tmp_path: Path) -> None:
    """And beside one of vertices; two that are summed add up."""
    last = Debezium(PAID.fields, on_repeat="last")
    users = Debezium(Fields("id", default_kind="add_vertex"))
    records = {"paid": PAID, "owed": PAID, "lent": last, "users": users}
    with SqliteLog(tmp_path / "log", list(records)) as log:
        for topic, src in (("paid", 0), ("owed", 0), ("lent", 7)):
            for id in range(20):
                row = {"payer": src, "payee": 1, "amount": 0.5, "at": id}
                log.produce(topic, record("c", id, row)[0], key=record("c", id, row)[1])
        log.produce_many(
            "users", [record("c", id, {})[0] for id in (8, 9)],
            keys=[record("c", id, {})[1] for id in (8, 9)],
        )  # fmt: skip
        for polled in (1, 500):
            graph = lpma.Graph(device="cpu", weight_dtype="float64")
            with Pipeline(log, graph, records=records, poll_records=polled) as pipeline:
                pipeline.run("end")
                assert not pipeline.outputs.kept
            assert edges_in(graph) == {(0, 1): (20.0, 19), (7, 1): (0.5, 19)}
            assert graph.num_vertices == 5
            log.seek(dict.fromkeys(log.positions(), 0))


@pytest.mark.parametrize("polled", [1, 500])
@pytest.mark.parametrize("form", ["envelope", "flattened", "mongodb"])
def test_rows_of_several_tables_in_a_topic_are_told_apart(
    tmp_path: Path, polled: int, form: str
) -> None:
    """By the table and its schema, over a resume; a table that is truncated takes its own."""
    row = {"id": 1, "payer": 0, "payee": 1, "at": 1}
    with SqliteLog(tmp_path / "log", ["all.pays"]) as log:

        def tell(op: str, schema: str, table: str, amount: float) -> None:
            of = {"db": "shop", "schema": schema, "table": table}
            after = row | {"amount": amount} if op != "t" else None
            value: Any = {"op": op, "after": after, "source": of}
            if form == "mongodb":
                source = {"connector": "mongodb", "db": schema, "collection": table}
                value = {"op": op, "after": json.dumps(after), "source": source}
            elif form == "flattened":
                value = (
                    (after or {}) | {"__op": op} | {f"__{name}": each for name, each in of.items()}
                )
            log.produce("all.pays", json.dumps(value).encode(), key=b'{"id": 1}')

        places = [("public", "pays"), ("old", "pays"), ("public", "gifts")]
        for place, amount in zip(places, (1, 2, 4), strict=True):
            tell("c", *place, amount)
        graph = lpma.Graph(device="cpu", weight_dtype="float64")
        given: dict[str, Any] = {"poll_records": polled}
        with Pipeline(log, graph, tmp_path / "state", records=PAID, **given) as pipeline:
            pipeline.run("end")
            assert edges_in(graph) == {(0, 1): (7.0, 1)}
        tell("u", "public", "gifts", 8)
        tell("u", "old", "pays", 16)
        with Pipeline.resume(tmp_path / "state", log, **given) as pipeline:
            pipeline.run("end")
            assert edges_in(pipeline.graph) == {(0, 1): (25.0, 1)}
            if form != "mongodb":
                tell("t", "old", "pays", 0)
                pipeline.run("end")
                assert edges_in(pipeline.graph) == {(0, 1): (9.0, 1)}
            assert not pipeline.outputs.kept


@pytest.mark.parametrize("polled", [1, 500])
def test_what_does_not_say_its_table_is_a_dead_letter_beside_two(
    tmp_path: Path, polled: int
) -> None:
    row = {"payer": 0, "payee": 1, "amount": 1, "at": 1}
    told: list[dict[str, Any]] = [
        row | {"__op": "c", "__table": table} for table in ("pays", "gifts")
    ]
    told += [row | {"__op": "c"}, row | {"__op": "c", "__table": "pays", "amount": 3}]
    with SqliteLog(tmp_path / "log", ["all"]) as log:
        values = [json.dumps(each).encode() for each in told]
        log.produce_many("all", values, keys=[b'{"id": 1}'] * 4)
        graph = lpma.Graph(device="cpu")
        with Pipeline(log, graph, records=PAID, poll_records=polled) as pipeline:
            pipeline.run("end")
            (letter,) = pipeline.outputs.kept
            assert "the topic has gifts and pays" in letter.reason
        assert edges_in(graph) == {(0, 1): (4.0, 1)}


@pytest.mark.parametrize("polled", [1, 500])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("column", ["payer", "payee", "amount", "at"])
def test_a_value_that_is_not_in_the_log_is_that_of_the_row_before(
    tmp_path: Path, polled: int, directed: bool, column: str
) -> None:
    """Over a resume; also an end, of the row that named its ends the other way round."""
    row = {"payer": 2, "payee": 1, "amount": "0.50", "at": 8}
    new = {"payer": 3, "payee": 4, "amount": "2.25", "at": 9}
    with SqliteLog(tmp_path / "log", [TOPIC]) as log:
        log.produce(TOPIC, record("c", 1, row)[0], key=b'{"id": 1}')
        graph = lpma.Graph(directed, device="cpu", weight_dtype="float64")
        with Pipeline(log, graph, tmp_path / "state", records=PAID) as pipeline:
            pipeline.run("end")
        told = {**new, column: "__debezium_unavailable_value"}
        log.produce(TOPIC, record("u", 1, told)[0], key=b'{"id": 1}')
        log.produce(TOPIC, record("u", 2, told)[0], key=b'{"id": 2}')
        with Pipeline.resume(tmp_path / "state", log, poll_records=polled) as pipeline:
            pipeline.run("end")
            (letter,) = pipeline.outputs.kept  # a row that is not remembered
            assert letter.reason.startswith(f"{column}: the value did not change")
            assert edges_in(pipeline.graph) == edges_of({1: {**new, column: row[column]}}, directed)


@pytest.mark.parametrize("repeat", ["last", "sum"])
def test_a_truncation_in_a_topic_of_several_partitions_is_a_dead_letter(
    tmp_path: Path, repeat: Any
) -> None:
    """A row of the other partition may have come later, and be read before."""
    with SqliteLog(tmp_path / "log", [TOPIC]) as log:
        log.create_topic(TOPIC, 2)
        later = {"payer": 0, "payee": 1, "amount": 1, "at": 9}
        log.produce(TOPIC, record("c", 1, later)[0], partition=1, key=b'{"id": 1}')
        log.produce(TOPIC, record("t", 0, {})[0], partition=0)
        records = Debezium(PAID.fields, on_repeat=repeat)
        with Pipeline(log, lpma.Graph(device="cpu"), records=records) as pipeline:
            pipeline.run("end")
            (letter,) = pipeline.outputs.kept
            assert "needs a topic of one partition" in letter.reason
            assert pipeline.graph.num_edges == 1


AMOUNTS = ("0.10", "0.20", "-0.30", "99999999999999999.99", "-99999999999999999.98",
           "12345678901234567890.123456789012345678")  # fmt: skip


@pytest.mark.parametrize("polled", [1, 500])
@pytest.mark.parametrize("encoding", ["double", "string", "decimal", "variable"])
def test_decimals_are_summed_as_a_database_does(tmp_path: Path, polled: int, encoding: Any) -> None:
    """SQLite has no decimals: Python's are the oracle. Over a resume, and without rows in turn."""
    name = "org.apache.kafka.connect.data.Decimal"
    type = {"field": "amount", "type": "bytes", "name": name, "parameters": {"scale": "18"}}
    schema = {"fields": [{"field": "after", "fields": [type]}]} if encoding == "decimal" else None

    def told(id: int, amount: str | None) -> bytes:
        after = None if amount is None else {"payer": 0, "payee": 1, "at": 1}
        if after is not None:
            unscaled = int(Fraction(amount) * 10**18)  # type: ignore[arg-type]
            wide = b64encode(unscaled.to_bytes(20, "big", signed=True)).decode()
            after["amount"] = {"double": float(amount), "string": amount, "decimal": wide,  # type: ignore
                               "variable": {"scale": 18, "value": wide}}[encoding]  # fmt: skip
        payload = {"op": "d" if amount is None else "c", "after": after, "source": {}}
        return json.dumps({"schema": schema, "payload": payload}).encode()

    amounts = list(map(repr, map(float, AMOUNTS))) if encoding == "double" else list(AMOUNTS)
    given: dict[str, Any] = {"poll_records": polled}
    with SqliteLog(tmp_path / "log", [TOPIC]) as log:
        graph = lpma.Graph(device="cpu", weight_dtype="float64")
        log.create_topic(TOPIC)
        Pipeline(log, graph, tmp_path / "state", records=PAID).close()
        left: dict[int, str] = {}
        turns = [*enumerate(amounts), *((id, None) for id in (5, 0, 3, 4, 1, 2))]
        for number, (id, amount) in enumerate(turns):
            log.produce(TOPIC, told(id, amount), key=json.dumps({"id": id}).encode())
            left = {other: each for other, each in left.items() if other != id}
            left |= {} if amount is None else {id: amount}
            total = float(sum((Fraction(each) for each in left.values()), Fraction()))
            if number % 2 or total == 0:
                with Pipeline.resume(tmp_path / "state", log, **given) as pipeline:
                    pipeline.run("end")
                    assert not pipeline.outputs.kept
                    expected = {(0, 1): (total, 1)} if total > 0 else {}
                    assert edges_in(pipeline.graph) == expected


@pytest.mark.parametrize("repeat", ["last", "sum"])
@pytest.mark.parametrize("topic", ["all", "shop.all"])
def test_a_truncation_in_a_topic_of_another_name_is_a_dead_letter(
    tmp_path: Path, repeat: Any, topic: str
) -> None:
    """Such a topic may hold several tables."""
    row = {"id": 1, "payer": 0, "payee": 1, "amount": 0.5, "at": 1}
    with SqliteLog(tmp_path / "log", [topic]) as log:
        for op, table in (("c", "gifts"), ("t", "pays")):
            value = {"op": op, "after": row if op == "c" else None, "source": {"table": table}}
            log.produce(topic, json.dumps(value).encode(), key=b'{"id": 1}')
        records = Debezium(PAID.fields, on_repeat=repeat)
        with Pipeline(log, lpma.Graph(device="cpu"), records=records) as pipeline:
            pipeline.run("end")
            assert [letter.kind for letter in pipeline.outputs.kept] == ["unserved"]
            assert pipeline.graph.num_edges == 1


def test_a_truncation_that_becomes_a_dead_letter_forgets_no_row(tmp_path: Path) -> None:
    """A graph without times lets nothing expire, and then the rows are what they were."""
    table = Debezium(Fields("payer", "payee", weight="amount"), on_repeat="sum")
    row = {"payer": 0, "payee": 1, "amount": 0.5}
    events = [record(*each) for each in (("c", 1, row), truncation, ("c", 2, row))]
    with SqliteLog(tmp_path / "log", [TOPIC]) as log:
        log.produce_many(TOPIC, [v for v, _ in events], keys=[k for _, k in events])
        graph = lpma.Graph(device="cpu", times=False)
        given: dict[str, Any] = {"records": table, "poll_records": 1}
        with Pipeline(log, graph, **given) as pipeline:
            pipeline.run("end")
            assert [letter.kind for letter in pipeline.outputs.kept] == ["unserved"]
            edge = graph.edge(0, 1)
            assert edge is not None
            assert edge.weight == 1.0
