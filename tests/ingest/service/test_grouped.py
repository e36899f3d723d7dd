"""Questions answered together: as each would be alone, within bounds of rows and of time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import lpma
from ingest.interludes import Moment
from ingest.service import grouped
from ingest.service.encoding import page_of
from ingest.service.grouped import Answer, AnswerTooLarge, Outcome, Question, answer
from lpma import Kind
from lpma.names import Names, column_of
from tests.support.oracles import ModelGraph, assert_same, host
from tests.support.stream_model import same_answer

ALL = 1 << 30
KINDS = (Kind.EDGE, Kind.SUCCESSORS, Kind.PREDECESSORS, Kind.DEGREE, Kind.VERTEX, Kind.HOPS)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel's first call may take long, and has nothing to do with what is tested."""
    monkeypatch.setattr(grouped, "PAUSE_S", 60.0)


def question(kind: Kind, u: Any, v: Any = None, after: Any = None, k: int = 0) -> Question:
    future: Any = None  # nothing here waits for it
    return Question(kind, u, v, after, k, time.monotonic() + 60, future)


def asked(graph: Any, *questions: Question, max_bytes: int = ALL) -> list[Outcome]:
    return answer(Moment(graph, None, 5, 7), questions, max_bytes)


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
    asked(graph, *(question(Kind.DEGREE, [1]) for _ in range(500)))
    assert calls == [500]


def test_long_answers_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped, "PART_ROWS", 64)
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
            outcomes = asked(graph, *waiting.values(), max_bytes=1500 * row)
            for i, outcome in zip(list(waiting), outcomes, strict=True):
                if outcome is not None:
                    settled[i] = outcome
                    del waiting[i]
        assert not waiting
        for i, u in enumerate(order):
            assert isinstance(settled[i], AnswerTooLarge) == (u is large)


def test_what_time_is_left_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that was begun is finished; others are asked again."""
    monkeypatch.setattr(grouped, "PAUSE_S", -1.0)
    monkeypatch.setattr(grouped, "FIRST_PART", 1)
    graph = lpma.Graph(device="cpu")
    graph.insert([1, 2, 3], [2, 3, 4])
    outcomes = asked(graph, *(question(Kind.HOPS, [i, i], k=2) for i in range(4)))
    assert isinstance(outcomes[0], Answer)
    assert outcomes[-1] is None
    late = [question(Kind.HOPS, [1] * 9, k=2), question(Kind.HOPS, [1], k=2)]
    for one in late:
        one.until = 0.0  # passed: nobody waits for it
    assert asked(graph, *late) == [None, None]


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
    moment = Moment(graph, names, 1, 1)
    degree, rows, rest = answer(
        moment,
        [
            question(Kind.DEGREE, ["ann", "nobody", 5]),
            question(Kind.SUCCESSORS, ["ann"]),
            question(Kind.SUCCESSORS, ["bob", "ann"], after=[None, 5]),
        ],
        ALL,
    )
    assert host(value(degree)).tolist() == [3, 0, 0]
    assert isinstance(rows, Answer)
    assert isinstance(rest, Answer)
    assert rows.names is not None
    assert rows.names.of(value(rows).ids).tolist() == told[1:]
    assert rows.names.of(value(rest).ids).tolist() == ["5"]
    assert value(rest).indptr.tolist() == [0, 0, 1]
