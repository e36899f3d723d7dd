"""A topic of an embedded log into a graph, an edge a record: records a second, by form.

Ours is a pipeline with its journal and a checkpoint directory, as in real use. Beside it are the
two loops that one writes by hand, over the same log: each record is decoded by orjson (Python's
json where that is not installed) or msgpack, and becomes an edge of a NetworkX graph, or an entry
in a dictionary of dictionaries. Nothing is checked there, refused or counted. `kafka` does all this
over a broker's log.
"""

from __future__ import annotations

import importlib
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import msgpack

import ingest
import lpma
from ingest.registry.client import Schema

from .. import workloads
from ..report import Report, Setting, rates
from ..stopwatch import WrongAnswer, measure, plain
from .memory_source import RECORD, refuse

ROUNDS, BUDGET_S = 3, 12.0
POLL, BATCH = 10_000, 100_000
OURS, MAPPED = ("src", "dst", "weight", "time"), ("user", "item", "score", "at")  # keys of rows
DEBEZIUM = "Debezium JSON 1 kB"
FORMS = [
    (names, form)
    for names in ("integers", "names")
    for form in (
        "msgpack rows",
        "mapped msgpack rows",
        "JSON rows",
        f"columns, {RECORD:,} a record",
    )
] + [("names", DEBEZIUM)]
AVRO = "Avro rows in Confluent's envelope"
LOOPS = ("networkx", "dictionaries")
STAGES = ("poll", "buffer", "journal", "apply")

Ends = list[tuple[Any, Any]]


class Topic(NamedTuple):
    """A topic that holds records: how ours opens it, and its values as a client of the log gets
    them."""

    source: Callable[[], ingest.KafkaSource | ingest.SqliteLog]
    values: Callable[[], Iterator[bytes]]


Filled = Callable[[list[bytes]], AbstractContextManager[Topic]]


def rows(setting: Setting) -> Report:
    report = Report("rows", "million operations a second from an embedded log, median")
    count = 5_000 if setting.quick else 300_000
    compared(report, setting, _embedded, count, count)
    return report


@contextmanager
def _embedded(records: list[bytes]) -> Iterator[Topic]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "log"
        with ingest.SqliteLog(path) as log:
            log.produce_many("updates", records)

        def values() -> Iterator[bytes]:
            with ingest.SqliteLog(path) as log:
                while polled := log.poll(POLL):
                    yield from (record.value for record in polled)  # type: ignore[misc]

        yield Topic(lambda: ingest.SqliteLog(path), values)


def compared(
    report: Report, setting: Setting, filled: Filled, num_rows: int, num_columnar: int
) -> None:
    """A row of the report for each form of record. filled: a topic with these records."""
    loops = [n for n in LOOPS if setting.wants(n) and (n != "networkx" or find_spec("networkx"))]
    stream = workloads.rmat(18, 0, max(num_rows, num_columnar))
    forms = [*FORMS, ("names", AVRO)] if find_spec("fastavro") else FORMS
    for names, form in forms:
        count = num_columnar if form.startswith("columns") else num_rows
        src, dst = stream.stream(0, count)
        edges: Ends = list(zip(src.tolist(), dst.tolist(), strict=True))
        if names == "names":
            edges = [(f"user-{u}", f"item-{v}") for u, v in edges]
        with filled(list(_records(edges, form, names == "names"))) as topic:
            loads, stages = _loads(form), dict[str, float]()
            runs: dict[str, Callable[[], Any]] = {
                "lpma": partial(
                    _pipeline,
                    topic,
                    _mapping(form),
                    names == "names",
                    stages,
                    _Registry("http://localhost") if form == AVRO else None,
                )
            }
            if loads is not None:
                runs |= {name: partial(_loop, topic, _keys(form), loads, name) for name in loops}
            kernels = {name: plain(run) for name, run in runs.items()}
            timings = measure(
                kernels, partial(_verify, set(edges)), rounds=ROUNDS, budget_s=BUDGET_S
            )
        row = {"vertices": names, "form": form, "records": count}
        row |= rates(timings, count, ("lpma", *LOOPS), LOOPS)
        report.add(row | {f"{name} s": stages[name] for name in STAGES})
    report.notes.append(
        "ratio: lpma to the faster of the two loops. Seconds by stage are of its last run: polled "
        "and taken apart; decoded and cut into batches; journaled; applied."
    )


def _records(edges: Ends, form: str, names: bool) -> Iterator[bytes]:
    if form.startswith("columns"):
        for first in range(0, len(edges), RECORD):
            u, v = zip(*edges[first : first + RECORD], strict=True)
            yield ingest.encode_updates(list(u), list(v), names=names)
        return
    pack: Callable[[Any], bytes] = _pack_avro if form == AVRO else msgpack.packb
    if form.startswith("JSON"):
        pack = lambda row: json.dumps(row).encode()  # noqa: E731
    if form == DEBEZIUM:
        pack = _inserted
    for at, (u, v) in enumerate(edges):
        row = u, v, 1.0, 1_700_000_000_000 + at
        yield pack(dict(zip(_keys(form), row, strict=True)))


def _inserted(row: dict[str, Any]) -> bytes:
    """A row that was inserted, as Debezium tells it, without its schema."""
    source = {
        "version": "2.7.0.Final", "connector": "postgresql", "name": "shop", "ts_ms": row["at"],
        "snapshot": "false", "db": "shop", "sequence": '["24023119","24023128"]',
        "schema": "public", "table": "scores", "txId": 555, "lsn": 24023128, "xmin": None,
    }  # fmt: skip
    after = {"id": row["at"], **row, "comment": "x" * 480, "status": "new", "reviewed": False}
    content = {"before": None, "after": after, "source": source, "op": "c", "ts_ms": row["at"],
               "transaction": None}  # fmt: skip
    return json.dumps(content, separators=(",", ":")).encode()


# Its schema, as a registry would have it.
SCHEMA: dict[str, Any] = {
    "type": "record", "name": "Row",
    "fields": [
        {"name": "src", "type": "string"}, {"name": "dst", "type": "string"},
        {"name": "weight", "type": ["null", "double"]},
        {"name": "time", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}  # fmt: skip


class _Registry(ingest.SchemaRegistry):
    """A registry that is asked once, and answers at once."""

    def schema(self, id: int) -> Schema:
        return Schema(id, "AVRO", json.dumps(SCHEMA))


def _pack_avro(row: Any) -> bytes:
    out = io.BytesIO(b"\0\0\0\0\1")
    out.seek(5)
    importlib.import_module("fastavro").schemaless_writer(out, _parsed(), row)
    return out.getvalue()


def _load_avro(value: bytes) -> Any:
    read = importlib.import_module("fastavro").schemaless_reader
    return read(io.BytesIO(value[5:]), _parsed())


@cache
def _parsed() -> Any:
    return importlib.import_module("fastavro").parse_schema(SCHEMA)


def _keys(form: str) -> tuple[str, str, str, str]:
    return MAPPED if form.startswith("mapped") or form == DEBEZIUM else OURS


def _mapping(form: str) -> ingest.Fields | ingest.Debezium:
    fields = ingest.Fields(*_keys(form))
    return ingest.Debezium(fields, on_repeat="last") if form == DEBEZIUM else fields


def _loads(form: str) -> Callable[[bytes], Any] | None:
    if form.startswith("columns"):
        return None
    if form == AVRO:
        return _load_avro
    if "msgpack" in form:
        return msgpack.unpackb
    loads = importlib.import_module("orjson").loads if find_spec("orjson") else json.loads
    return (lambda value: loads(value)["after"]) if form == DEBEZIUM else loads


def _pipeline(
    topic: Topic, records: ingest.Fields | ingest.Debezium, names: bool, stages: dict[str, float],
    registry: ingest.SchemaRegistry | None,
) -> lpma.Graph:  # fmt: skip
    graph = lpma.Graph(device="cpu", names=names)
    with (
        topic.source() as source,
        tempfile.TemporaryDirectory() as state,
        ingest.Pipeline(
            source, graph, Path(state) / "state", records=records, names=names,
            batch_size=BATCH, batch_interval=10.0, poll_records=POLL, dead_letters=refuse,
            schema_registry=registry,
        ) as pipeline,
    ):  # fmt: skip
        pipeline.run(until="end")
        stages |= pipeline.stats.stages.seconds()
    return graph


def _loop(
    topic: Topic, keys: tuple[str, str, str, str], loads: Callable[[bytes], Any], name: str
) -> Any:
    src, dst, weight, _ = keys
    networkx = importlib.import_module("networkx") if name == "networkx" else None
    graph: Any = {} if networkx is None else networkx.DiGraph()
    for value in topic.values():
        row = loads(value)
        if networkx is None:
            graph.setdefault(row[src], {})[row[dst]] = row[weight]
        else:
            graph.add_edge(row[src], row[dst], weight=row[weight])
    return graph


def _verify(edges: set[tuple[Any, Any]], name: str, _: int, held: Any) -> None:
    found = held.num_edges if isinstance(held, lpma.Graph) else (
        sum(map(len, held.values())) if isinstance(held, dict) else held.number_of_edges()
    )  # fmt: skip
    if found != len(edges):
        raise WrongAnswer(f"{name}: {found} edges, and the records have {len(edges)}")
