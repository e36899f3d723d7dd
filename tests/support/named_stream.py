"""Streams whose vertices have names and whose operations have times: random ones, and what a plain
reading of them, row after row, leads to."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import ingest
from ingest import Fields
from lpma import Edges, Kind, Neighbors
from lpma.batch.columns import OF_EDGES, WEIGHTED
from tests.support.stream_model import SavedModel

JSON = Fields("user", "item", time="at", kind="what")
NAMES: list[int | str] = [
    0, 5, "5", -5, 2**64 - 5, 2**63, -(2**63), 2**32 - 1, "alice", "bö", "x" * 64, 17, 18, "17",
]  # fmt: skip
UNKNOWN = 10**6  # the id of a name that nothing has inserted


def random_records(rng: np.random.Generator, count: int) -> list[bytes]:
    """Rows, columns of every kind of name, JSON, queries, repeats and bad records."""
    records: list[bytes] = []
    integers = [name for name in NAMES if isinstance(name, int)]
    for i in range(count):
        form = int(rng.integers(0, 12))
        known = [0, 5, 2**40, 2**63] if form == 0 else integers if form == 1 else NAMES
        src, dst = ([known[k] for k in rng.integers(0, len(known), 6)] for _ in range(2))
        at = (10 * i + rng.integers(-60, 30, 6)).tolist()
        rows = int(rng.integers(1, 7))
        if form < 4:
            time = at[:rows] if rng.random() < 0.8 else None
            kind = rng.choice([0, 0, 0, 1, 2, 3, 11], rows).astype(np.uint8)
            origin: Any = {"producer": "p", "seq": int(rng.integers(0, i + 1))} if form == 3 else {}
            data = ingest.encode_updates(
                src[:rows], dst[:rows], None, time, kind, names=True, **origin
            )
            records.append(data)
        elif form < 6:
            records.append(ingest.encode_row(src[0], dst[0], None, at[0], names=True))
        elif form < 8:
            what = ["append", "delete", "remove_vertex", "set"][int(rng.integers(0, 4))]
            value: dict[str, Any] = {"user": src[0], "at": at[0], "what": what}
            if what != "remove_vertex":
                value["item"] = dst[0]
            records.append(json.dumps(value).encode())
        elif form < 9:
            records.append(b'{"user": [1]}' if i % 2 else rng.bytes(5))
        else:
            asked = ["nobody", *NAMES][int(rng.integers(0, len(NAMES) + 1))]
            kind_ = Kind([Kind.EDGE, Kind.SUCCESSORS, Kind.DEGREE, Kind.VERTEX, Kind.HOPS][i % 5])
            other = dst[0] if kind_ is Kind.EDGE else None
            steps = 2 if kind_ is Kind.HOPS else None
            data = ingest.encode_query(f"q{i}", kind_, asked, other, steps=steps, names=True)
            records.append(data)
    return records


@dataclass
class Expected:
    """What a stream leads to. A row is (kind, src, dst, time or None)."""

    names: list[Any] = field(default_factory=list)  # in the order in which they were inserted
    edges: dict[tuple[Any, Any], float] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    letters: dict[int, int] = field(default_factory=dict)  # offset → late rows; 0: a bad record
    operations: int = 0


def serial(records: list[bytes], late: str = "apply", max_lateness: int = 0) -> Expected:
    """All records of one partition in order."""
    out, model = Expected(), SavedModel(predecessors=True)
    newest: int | None = None
    seen = -1

    def number(name: Any) -> int:
        if (type(name), name) not in known:
            known[type(name), name] = len(known)
            out.names.append(name)
        return known[type(name), name]

    def known_number(name: Any) -> int:
        return known.get((type(name), name), UNKNOWN)

    known: dict[Any, int] = {}
    for offset, data in enumerate(records):
        try:
            record = ingest.decode_record(data, names=True, fields=JSON)
        except ingest.RecordError:
            out.letters[offset] = 0
            continue
        if record.seq is not None:
            if record.seq <= seen:
                continue
            seen = record.seq
        if record.queries:
            (query,) = record.queries
            ids = [known_number(name) for name in (query.src, query.dst)]
            out.answers[query.id] = _answer(model, query, ids, out.names)
            out.operations += 1
            continue
        assert record.names is not None
        times: list[int | None] = [None] * len(record.batch)
        if record.batch.time is not None:
            times = record.batch.time.tolist()
        weights = [1.0] * len(record.batch)
        if record.batch.weight is not None:  # as of a list of numbers that a mutation made
            weights = record.batch.weight.tolist()
        rows = list(zip(record.batch.kind.tolist(), record.names.src.tolist(),
                        record.names.dst.tolist(), times, weights, strict=True))  # fmt: skip
        kept, behind = [], 0
        reached = newest
        for row in rows:
            if row[3] is not None:
                reached = row[3] if reached is None else max(reached, row[3])
                if late != "apply" and row[3] < reached - max_lateness:
                    behind += 1
                    continue
            kept.append(row)
        if behind:
            out.letters[offset] = behind
        if late == "reject" and behind:
            continue
        newest = reached
        for kind, src, dst, _, weight in kept:
            to_id = number if kind in (*WEIGHTED, Kind.ADD_VERTEX) else known_number
            u = to_id(src)
            v = to_id(dst) if kind in OF_EDGES else 0
            if kind == Kind.INSERT:
                model.insert(u, v, weight, 0)
            elif kind == Kind.DELETE:
                model.delete(u, v, 0)
            elif kind == Kind.SET:
                model.set(u, v, weight, 0)
            else:
                (model.add_vertices if kind == Kind.ADD_VERTEX else model.remove_vertices)([u], 0)
            out.operations += 1
    out.edges = {
        (out.names[u], out.names[v]): weight for (u, v), (weight, _) in model.state.items()
    }
    return out


def _answer(model: SavedModel, query: Any, ids: list[int], names: list[Any]) -> Any:
    u, v = ids
    if query.kind is Kind.EDGE:
        return bool(model.edges([u], [v]).found[0])
    if query.kind is Kind.DEGREE:
        return int(model.degree([u])[0])
    if query.kind is Kind.VERTEX:
        return bool(model.has_vertices([u])[0])
    found = model.successors([u]) if query.kind is Kind.SUCCESSORS else model.hops([u], query.dst)
    return [names[i] for i in found.ids.tolist()]


def said(reply: ingest.Reply) -> Any:
    """The reply's answer, as `Expected.answers` has it."""
    answer: Any = reply.answer
    if isinstance(answer, Edges):
        return bool(answer.found[0])
    if isinstance(answer, Neighbors):
        return answer.ids.tolist()
    return int(answer[0]) if reply.kind is Kind.DEGREE else bool(answer[0])


def named_edges(pipeline: ingest.Pipeline) -> dict[tuple[Any, Any], float]:
    """(name, name) → weight of a pipeline's graph, which is a SavedModel."""
    graph, vertices = pipeline.graph, pipeline.vertices
    assert isinstance(graph, SavedModel)
    assert vertices is not None
    names = vertices.of(np.arange(len(vertices))).tolist()
    return {(names[u], names[v]): weight for (u, v), (weight, _) in graph.state.items()}
