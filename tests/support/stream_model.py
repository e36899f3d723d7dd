"""What the tests of the pipeline share: a model of the graph that can be saved, random records,
and what a stream must lead to."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import ingest
from ingest import SqliteLog
from lpma import Columns, Edges, Kind, Neighbors
from lpma.errors import FormatError
from lpma.file.atomic import Writable
from tests.support.oracles import ModelGraph, host


class SavedImage:
    """The model as it was, in bytes."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def write(self, file: Writable) -> None:
        file.write(self.content)


class SavedModel(ModelGraph):
    """The dictionary model with what a pipeline asks of a graph beside it."""

    density = 0.5
    levels = 0

    def image(self, old: SavedImage | None = None) -> SavedImage:
        content = [
            sorted([*key, *edge] for key, edge in self.state.items()),
            sorted(self.markers),
            self.version,
            self.time,
        ]
        return SavedImage(json.dumps(content).encode())

    @classmethod
    def load(cls, path: Path) -> SavedModel:
        try:
            edges, markers, version, time = json.loads(path.read_text())
        except ValueError as error:
            raise FormatError(f"{path}: not a saved model") from error
        model = cls(predecessors=True)
        model.state = {(u, v): (w, t) for u, v, w, t in edges}
        model.markers, model.version, model.time = set(markers), version, time
        return model

    def content(self) -> tuple[Any, ...]:
        """All that a crash must bring back, times included."""
        return self.state, self.markers, self.version, self.time


def weighted(graph: Any) -> dict[tuple[int, int], float]:
    """(u, v) → weight, of a model or of a graph: what does not depend on when it was applied."""
    if isinstance(graph, ModelGraph):
        return {key: weight for key, (weight, _) in graph.state.items()}
    s = graph.snapshot()
    src = np.repeat(np.arange(s.num_rows), np.diff(host(s.indptr)))
    return {
        (u, v): w
        for u, v, w in zip(src.tolist(), s.indices.tolist(), s.weights.tolist(), strict=True)
    }


def random_records(
    rng: np.random.Generator, count: int, vertices: int = 12, first: int = 0
) -> list[bytes]:
    """Good records of every form, and some bad ones. Queries are named by their places, q0, q1 …
    where the first record's is 0."""
    records = []
    for i in range(first, first + count):
        u, v = (int(x) for x in rng.integers(0, vertices, 2))
        w = int(rng.integers(-8, 9)) / 4
        form = int(rng.integers(0, 10))
        if form < 3:
            rows = int(rng.integers(1, 9))
            src, dst = rng.integers(0, vertices, (2, rows))
            weight = rng.integers(-8, 9, rows) / 4
            kind = rng.choice([0, 0, 0, 0, 1, 2, 3, 11, 11], rows)
            records.append(ingest.encode_updates(src, dst, weight, None, kind))
        elif form < 5:
            records.append(ingest.encode_row(u, v, w, kind=[Kind.INSERT, Kind.SET][i % 2]))
        elif form < 6:
            records.append(rng.bytes(5))
        else:
            records.append(random_query(rng, f"q{i}", u, v))
    return records


def random_query(rng: np.random.Generator, id: str, u: int, v: int) -> bytes:
    kind = Kind(int(rng.integers(Kind.EDGE, Kind.VERTEX + 1)))
    dst = v if kind is Kind.EDGE else None
    steps = int(rng.integers(1, 4)) if kind is Kind.HOPS else None
    return ingest.encode_query(id, kind, u, dst, steps=steps)


def serial(records: Iterable[bytes]) -> tuple[SavedModel, dict[str, Any], list[int]]:
    """The model after all records one by one, each query's answer (None: refused), and which
    records are bad."""
    model = SavedModel(predecessors=True)
    answers: dict[str, Any] = {}
    bad = []
    for number, data in enumerate(records):
        try:
            record = ingest.decode_record(data)
        except ingest.RecordError:
            bad.append(number)
            continue
        model.apply(record.batch)
        for query in record.queries:
            if query.kind is Kind.HOPS and int(query.dst) > 2:
                answers[query.id] = None
            else:
                kind, src, dst = [np.array([x]) for x in (query.kind, query.src, query.dst)]
                asked = Columns.validated(kind, src, dst, None, None)
                answers[query.id] = model.apply(asked)[0]
    return model, answers, bad


def check_outputs(log: Path, answers: dict[str, Any], bad: list[int]) -> None:
    """The replies in the log are these answers, and its dead letters come from these offsets of
    the updates. Either may be there twice; what was said once is said again in the same words:
    same batch, same stamp, same answer with its times."""
    with SqliteLog(log, topics=("replies", "dead-letters")) as reader:
        written = [(r.partition.topic, bytes(r.value)) for r in reader.poll(10**6)]  # type: ignore[arg-type]
    first: dict[str, bytes] = {}
    for data in [data for topic, data in written if topic == "replies"]:
        reply = ingest.decode_reply(data)
        assert same_answer(reply.answer, answers[reply.id])
        assert data == first.setdefault(reply.id, data)
    assert first.keys() == answers.keys(), "no reply is lost"
    letters = [ingest.decode_dead_letter(data) for topic, data in written if topic != "replies"]
    assert {letter.offset for letter in letters} == set(bad)


def same_answer(got: Any, expected: Any) -> bool:
    """Equal but for times, which depend on when an operation was buffered."""
    if isinstance(expected, Edges):
        return same_answer(got.found, expected.found) and same_answer(got.weights, expected.weights)
    if isinstance(expected, Neighbors):
        return same_answer(got.ids, expected.ids) and same_answer(got.weights, expected.weights)
    if expected is None:
        return got is None
    return bool(np.array_equal(got, expected))
