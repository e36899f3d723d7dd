"""Questions answered together: as each would be alone, within bounds of rows and of time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import lpma
from ingest.pipeline.graph_requests import GraphView
from ingest.service import answering
from ingest.service.answering import Answer, AnswerTooLarge, Most, Outcome, Question, answer
from ingest.service.query_codecs import page_of
from lpma import Kind
from lpma.names import Names, column_of
from tests.support.oracles import ModelGraph, assert_same, host
from tests.support.stream_model import same_answer

ALL = 1 << 30
KINDS = (Kind.EDGE, Kind.SUCCESSORS, Kind.PREDECESSORS, Kind.DEGREE, Kind.VERTEX, Kind.HOPS)


def question(kind: Kind, u: Any, v: Any = None, after: Any = None, k: int = 0) -> Question:
    future: Any = None  # nothing here waits for it
    return Question(kind, u, v, after, k, time.monotonic() + 60, future)


def asked(graph: Any, *questions: Question, share_s: float = 60.0, **most: int) -> list[Outcome]:
    """share_s: long, for a kernel's first call has nothing to do with what is tested."""
    bounds = Most(**{"bytes": ALL, "rows": ALL, "edges": ALL, **most})
    return answer(GraphView(graph, None, 5, 7, share_s), questions, bounds)


def value(outcome: Outcome) -> Any:
    assert isinstance(outcome, Answer)
    return page_of(outcome).value


def test_together_as_alone(device: str) -> None:
    rng = np.random.default_rng(1)
    graph, model = lpma.Graph(predecessors=True, device=device), ModelGraph(predecessors=True)
    src, dst = rng.integers(0, 40, (2, 600))
    graph.insert(src, dst, time=0)
    model.insert(src, dst)
    questions, expected = [], []
    for _ in range(120):
        kind, rows = KINDS[rng.integers(6)], int(rng.integers(0, 5))
        u, v = (rng.integers(0, 45, rows).tolist() for _ in range(2))
        k = int(rng.integers(1, 3)) if kind is Kind.HOPS else 0
        given = np.array(u, np.uint32) if rng.random() < 0.3 else u
        questions.append(question(kind, given, v if kind is Kind.EDGE else None, None, k))
        call = {
            Kind.EDGE: lambda u, v, k: model.edges(u, v),
            Kind.SUCCESSORS: lambda u, v, k: model.successors(u),
            Kind.PREDECESSORS: lambda u, v, k: model.predecessors(u),
            Kind.DEGREE: lambda u, v, k: model.degree(u),
            Kind.VERTEX: lambda u, v, k: model.has_vertices(u),
            Kind.HOPS: lambda u, v, k: model.hops(u, k),
        }[kind]
        expected.append(call(np.array(u, np.int64), np.array(v, np.int64), k))
    for outcome, answer_alone in zip(asked(graph, *questions), expected, strict=True):
        assert same_answer(value(outcome), answer_alone)
        assert isinstance(outcome, Answer)
        assert (outcome.version, outcome.time) == (5, 7)


def test_one_call_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([1, 2], [2, 3])
    calls: list[int] = []

    def degree(u: Any) -> Any:
        calls.append(len(u))
        return np.zeros(len(u), np.int64)

    monkeypatch.setattr(graph, "degree", degree)
    asked(graph, *(question(Kind.DEGREE, [i % 10]) for i in range(500)))
    assert calls == [10]


def test_long_answers_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "PART_ROWS", 64)
    monkeypatch.setattr(answering, "PART_EDGES", 64)
    rng = np.random.default_rng(2)
    graph = lpma.Graph(device="cpu", predecessors=True)
    graph.insert(*rng.integers(0, 60, (2, 900)))
    every = np.arange(70, dtype=np.uint32)
    for kind, k, expected in (
        (Kind.SUCCESSORS, 0, graph.successors(every)),
        (Kind.PREDECESSORS, 0, graph.predecessors(every)),
        (Kind.HOPS, 2, graph.hops(every, 2)),
    ):
        parts = [question(kind, every[i : i + 7], k=k) for i in range(0, 70, 7)]
        found = [value(outcome) for outcome in asked(graph, *parts)]
        assert np.concatenate([part.ids for part in found]).tolist() == expected.ids.tolist()
        assert_same(value(asked(graph, question(kind, every, k=k))[0]), expected)


@pytest.mark.parametrize("kind", [Kind.SUCCESSORS, Kind.PREDECESSORS, Kind.HOPS])
def test_an_answer_of_too_many_rows_is_refused_and_others_are_not(kind: Kind) -> None:
    graph = lpma.Graph(device="cpu", directed=False)
    graph.insert([0] * 1000 + [2000], [*range(1, 1001), 2001])
    row = 4 if kind is Kind.HOPS else 16
    small, large = ([2000], [0, 0]) if kind is not Kind.HOPS else ([2000], [0, 5])
    k = 2 if kind is Kind.HOPS else 0
    for order in ([small, large, small], [large, small], [small, small, large]):
        waiting = {i: question(kind, u, k=k) for i, u in enumerate(order)}
        settled: dict[int, Outcome] = {}
        for _ in range(4):  # what was left is asked again
            outcomes = asked(graph, *waiting.values(), bytes=1500 * row)
            for i, outcome in zip(list(waiting), outcomes, strict=True):
                if outcome is not None:
                    settled[i] = outcome
                    del waiting[i]
        assert not waiting
        for i, u in enumerate(order):
            assert isinstance(settled[i], AnswerTooLarge) == (u is large)


def test_what_there_is_no_time_for_is_asked_again_and_then_refused() -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([1, 2, 3], [2, 3, 4])
    for kind in (Kind.HOPS, Kind.SUCCESSORS, Kind.DEGREE):
        heavy, light = question(kind, [1, 2], k=2), question(Kind.VERTEX, [1])
        for _ in range(answering.TRIES - 1):
            assert asked(graph, heavy, light, share_s=-1.0) == [None, None]
        refused, waits = asked(graph, heavy, light, share_s=-1.0)
        assert isinstance(refused, AnswerTooLarge)
        assert waits is None


def test_a_question_is_refused_only_after_a_share_of_its_own() -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([1, 2, 3], [2, 3, 4])
    other, waits = question(Kind.VERTEX, [1]), question(Kind.HOPS, [1, 2], k=2)
    for _ in range(5):
        assert asked(graph, other, waits, share_s=-1.0)[1] is None
    assert waits.tries == 0


def test_out_of_memory_together_is_tried_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([1, 1], [2, 3])
    real = graph.degree

    def degree(u: Any) -> Any:
        if 9 in list(u):
            raise lpma.OutOfMemory("full: ask for less")
        return real(u)

    monkeypatch.setattr(graph, "degree", degree)
    first, full, last = asked(graph, *(question(Kind.DEGREE, [u]) for u in (1, 9, 2)))
    assert isinstance(full, lpma.OutOfMemory)
    assert (value(first).tolist(), value(last).tolist()) == ([2], [0])


def test_names_apart_from_the_graph(device: str) -> None:
    names = Names()
    told = ["ann", "bob", 5, "5"]
    ids = names.assign(column_of(told, "names"))
    graph = lpma.Graph(device=device)
    graph.insert([ids[0]] * 3, ids[1:])
    moment = GraphView(graph, names, 1, 1)
    degree, rows, rest = answer(
        moment._replace(share_s=60.0),
        [
            question(Kind.DEGREE, ["ann", "nobody", 5]),
            question(Kind.SUCCESSORS, ["ann"]),
            question(Kind.SUCCESSORS, ["bob", "ann"], after=[None, 5]),
        ],
        Most(ALL, ALL, ALL),
    )
    assert host(value(degree)).tolist() == [3, 0, 0]
    assert isinstance(rows, Answer)
    assert isinstance(rest, Answer)
    assert rows.names is not None
    assert rows.names.of(value(rows).ids).tolist() == told[1:]
    assert rows.names.of(value(rest).ids).tolist() == ["5"]
    assert value(rest).indptr.tolist() == [0, 0, 1]


def hub(n: int) -> lpma.Graph:
    """0 has n neighbours, and each of them has 0."""
    graph = lpma.Graph(device="cpu", predecessors=True)
    graph.insert([0] * n + [*range(1, n + 1)], [*range(1, n + 1)] + [0] * n)
    return graph


@pytest.mark.parametrize("kind", [Kind.SUCCESSORS, Kind.PREDECESSORS, Kind.HOPS, Kind.DEGREE])
def test_one_vertex_asked_for_often_is_read_once(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = hub(200)
    expected: Any = {
        Kind.SUCCESSORS: graph.successors, Kind.PREDECESSORS: graph.predecessors,
        Kind.HOPS: lambda u: graph.hops(u, 2), Kind.DEGREE: graph.degree,
    }[kind]([0, 5, 0, 0, 5])  # fmt: skip
    read: list[int] = []
    for name in ("successors", "predecessors", "hops", "degree", "in_degree"):
        real = getattr(graph, name)

        def counted(u: Any, *k: int, real: Any = real) -> Any:
            read.extend(np.asarray(u).tolist())
            return real(u, *k)

        monkeypatch.setattr(graph, name, counted)
    k = 2 if kind is Kind.HOPS else 0
    outcomes = asked(graph, question(kind, [0, 5, 0], k=k), question(kind, [0, 5], k=k))
    calls = {Kind.SUCCESSORS: 2, Kind.PREDECESSORS: 2, Kind.HOPS: 4, Kind.DEGREE: 1}[kind]
    assert read.count(5) <= calls
    found: list[Any] = [value(outcome) for outcome in outcomes]
    if kind is Kind.DEGREE:
        assert np.concatenate(found).tolist() == expected.tolist()
    else:
        assert np.concatenate([one.ids for one in found]).tolist() == expected.ids.tolist()
        assert_same(value(asked(graph, question(kind, [0, 5, 0, 0, 5], k=k))[0]), expected)


@pytest.mark.parametrize("kind", [Kind.SUCCESSORS, Kind.PREDECESSORS])
def test_repeated_rows_are_counted_before_one_is_read(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = hub(100)

    def read(u: Any) -> Any:
        raise AssertionError("read")

    monkeypatch.setattr(graph, "successors", read)
    monkeypatch.setattr(graph, "predecessors", read)
    refused = asked(graph, question(kind, [0] * 1000), question(kind, [0] * 11), rows=1000)
    assert [type(outcome) for outcome in refused] == [AnswerTooLarge] * 2


def test_edges_walked_are_bounded_and_others_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = hub(1000)
    graph.insert([5000, 5001], [5001, 5002])
    real, largest = graph.hops, 0

    def hops(u: Any, k: int) -> Any:
        nonlocal largest
        found = real(u, k)
        largest = max(largest, len(found.ids))
        return found

    monkeypatch.setattr(graph, "hops", hops)
    light, at_hub, beside, many, last = asked(
        graph, question(Kind.HOPS, [5000], k=2), question(Kind.HOPS, [0], k=2),
        question(Kind.HOPS, [1], k=2), question(Kind.HOPS, [7] * 3 + [0], k=2),
        question(Kind.HOPS, [5000, 5001], k=2), edges=500,
    )  # fmt: skip
    assert [value(light).ids.tolist(), value(last).indptr.tolist()] == [[5001, 5002], [0, 2, 3]]
    refused = [type(outcome) for outcome in (at_hub, beside, many)]
    assert refused == [AnswerTooLarge] * 3
    assert largest <= 500, "nothing large was walked"
    enough = asked(graph, question(Kind.HOPS, [1], k=2), edges=1500)[0]
    assert len(value(enough).ids) == 1001
    deep = asked(graph, question(Kind.HOPS, [5000], k=200), edges=500)[0]
    assert value(deep).ids.tolist() == [5001, 5002]


def test_the_rest_after_a_neighbour_of_repeated_vertices() -> None:
    graph = hub(6)
    first = question(Kind.SUCCESSORS, [0, 0, 0], after=[None, 4, 6])
    found = value(asked(graph, first, question(Kind.SUCCESSORS, [0]))[0])
    assert found.ids.tolist() == [1, 2, 3, 4, 5, 6, 5, 6]
    assert found.indptr.tolist() == [0, 6, 8, 8]
    assert len(found.weights) == 8
