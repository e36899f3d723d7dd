"""What tests of tables share: how one is written and read, its topic, and what a graph holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

import numpy as np
from hypothesis import strategies as st

import lpma
from ingest import Debezium, Fields, Partition, Pipeline, SqliteLog

from .database import DAY_MS, QUARTER, Database, Rows, Table
from .envelopes import (
    AMOUNTS,
    CONNECTORS,
    DELETES,
    TIMES,
    WHOLE_DAYS,
    Encoding,
    Message,
    messages,
)
from .expected import OnRepeat, Weights, ends_of, summed

BY_ENDS = Table(key=("payer", "payee"))
BY_SOURCE = Table(key=("payer",))  # each pays one other
BY_ID = Table(key=("id",))
COMPOSITE = Table(key=("region", "id"))


class Case(NamedTuple):
    """A table, how a connector writes it, and how it is read."""

    table: Table = BY_ENDS
    encoding: Encoding = Encoding()
    on_repeat: OnRepeat | None = None
    on_tombstone: Literal["ignore", "delete"] = "ignore"

    @property
    def records(self) -> Debezium:
        table, times = self.table, self.encoding.times
        unit: Any = times if times in ("us", "ns") and not self.encoding.schemas else "ms"
        fields = Fields(table.source, table.target, weight=table.amount, time=table.time,
                        time_unit=unit)  # fmt: skip
        return Debezium(fields, self.on_tombstone, self.on_repeat)

    @property
    def options(self) -> list[str]:
        """The same for `lpma ingest`. REQUIRES: times are as a schema says, or in ms."""
        table = self.table
        named = {"source": table.source, "target": table.target, "weight": table.amount,
                 "time": table.time}  # fmt: skip
        said = [word for role, column in named.items() for word in (f"--{role}", column)]
        repeat = ["--on-repeat", self.on_repeat] if self.on_repeat else []
        return ["--format", "debezium", *said, *repeat, *(["--names"] if table.text_ends else [])]

    @property
    def place(self) -> Partition:
        """A topic that has the table's name, so that truncations are of it."""
        return Partition(f"shop.public.{self.table.name}", 0)

    def log(self, path: str | Path) -> SqliteLog:
        """The embedded log that has this topic."""
        log = SqliteLog(path, topics=(self.place.topic,))
        log.create_topic(self.place.topic)
        return log


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any table in any encoding that says by itself what its values are, `before` whole."""
    table = draw(st.sampled_from([BY_ENDS, BY_SOURCE, BY_ID, COMPOSITE]))
    table = replace(table, text_ends=draw(st.booleans()), nullable=draw(st.booleans()))
    shared = "payer" not in table.key
    repeats: list[OnRepeat | None] = ["sum", "last"] if shared else [None, "sum", "last"]
    return Case(table, draw(encodings()), draw(st.sampled_from(repeats)))


@st.composite
def encodings(draw: st.DrawFn) -> Encoding:
    schemas = draw(st.booleans())
    return Encoding(
        connector=draw(st.sampled_from([name for name in CONNECTORS if name != "mongodb"])),
        schemas=schemas, key_schemas=draw(st.booleans()),
        amounts=draw(st.sampled_from([a for a in AMOUNTS if schemas or a != "decimal"])),
        times=draw(st.sampled_from([t for t in TIMES if schemas or "days" not in t])),
        tombstones=draw(st.booleans()),
    )  # fmt: skip


@st.composite
def sparse_cases(draw: st.DrawFn) -> Case:
    """Topics that say less of a row that was: flattened ones, Postgres' default, MongoDB. Sums
    remember the rows; where the key is the ends, it says which edge there was."""
    table = draw(st.sampled_from([BY_ENDS, BY_ID, COMPOSITE, BY_SOURCE]))
    table = replace(table, text_ends=draw(st.booleans()), nullable=draw(st.booleans()))
    repeat: Any = draw(st.sampled_from([None, "sum"])) if table.key == BY_ENDS.key else "sum"
    encoding = draw(encodings())
    form = draw(st.sampled_from(["flattened", "default", "mongodb"]))
    if form == "flattened":
        mode = draw(st.sampled_from([mode for mode in DELETES if mode != "drop"]))
        told = mode.startswith("rewrite")
        encoding = replace(encoding, flattened=mode, with_op=draw(st.booleans()))
        return Case(table, encoding, repeat, on_tombstone="ignore" if told else "delete")
    if form == "default":
        return Case(table, replace(encoding, connector="postgresql", full=False), repeat)
    encoding = replace(encoding, connector="mongodb", times="ms", full=draw(st.booleans()))
    return Case(replace(table, key=("id",)), encoding, "sum")


def database_of(case: Case, random: Random, **more: Any) -> Database:
    step = DAY_MS if case.encoding.times in WHOLE_DAYS else 1000
    quantum = Decimal(1) if case.encoding.amounts == "integer" else QUARTER
    truncates = case.encoding.flattened is None and case.encoding.connector != "mongodb"
    given = {"step_ms": step, "quantum": quantum, "truncates": truncates, **more}
    return Database(case.table, random, **given)


def topic_of(case: Case, random: Random, transactions: int, **more: Any) -> list[Message]:
    """The rows that a table has, as a snapshot, and then what came."""
    database = database_of(case, random, **more)
    database.run(3)
    database.history.clear()
    database.read_first()
    return list(messages(database.run(transactions), case.table, case.encoding))


def delivered_again(given: list[Message], random: Random) -> Iterator[tuple[Message, bool]]:
    """The same from a connector that starts anew now and then, some time back; and whether all is
    told with it that was told before."""
    at, told = 0, 0
    while at < len(given):
        told = max(told, at + 1)
        yield given[at], at + 1 == told
        at += 1
        if random.randrange(12) == 0:
            at -= random.randrange(min(at, 9) + 1)


def produce(log: SqliteLog, given: list[Message]) -> None:
    keys = [message.key for message in given]
    log.produce_many(log.topics[0], [message.value for message in given], keys=keys)


def opened(
    log: SqliteLog, case: Case, state: Path | None = None, *, directed: bool = True, **given: Any
) -> Pipeline:
    names = case.table.text_ends
    graph = lpma.Graph(directed, device="cpu", weight_dtype="float64", names=names, segment_size=4)
    more: dict[str, Any] = {"records": case.records, "names": names, "batch_interval": 1e6, **given}
    return Pipeline(log, graph, state, **more)


def stepped(pipeline: Pipeline, case: Case) -> Iterator[int]:
    """Step to the end, and say each time before which offset all is in the graph, and nothing
    behind it: a change is never half there."""
    at = 0
    while pipeline.step(drain=True) or not pipeline.source.at_end():
        if position := pipeline.positions().get(case.place):
            assert position.row == 0
            assert position.offset >= at
            at = position.offset
            if at:
                yield at


def _edges_of(graph: Any, values: str) -> dict[Any, Any]:
    s = graph.snapshot()
    src = np.repeat(np.arange(s.num_rows), np.diff(s.indptr))
    ends: list[Any] = [src, np.asarray(s.indices)]
    if graph.names is not None:
        ends = [graph.names.of(ids) for ids in ends]
    pairs = zip(*(ids.tolist() for ids in ends), strict=True)
    return dict(zip(pairs, getattr(s, values).tolist(), strict=True))


def weights_of(graph: Any) -> Weights:
    return _edges_of(graph, "weights")


def times_of(graph: Any) -> dict[Any, int]:
    return _edges_of(graph, "times")


def times_in(rows: Rows, table: Table) -> dict[Any, int]:
    """The newest time of each edge's rows. Not of edges of which a row has none."""
    found: dict[Any, list[int | None]] = {ends: [] for ends in summed(rows, table)}
    for row in rows.values():
        if (ends := ends_of(row, table)) in found:
            found[ends].append(row[table.time])
    return {ends: max(t for t in times if t is not None)
            for ends, times in found.items() if None not in times}  # fmt: skip
