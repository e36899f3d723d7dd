"""Sets in a stream: the edge becomes exactly this, and nobody sees it half done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import Fields, Pipeline, SqliteLog
from lpma import Kind

EDGES = [(0, 1), (2, 1), (1, 1)]


def streamed(data: list[bytes], graph: lpma.Graph, **options: Any) -> list[ingest.Reply]:
    """The replies of a stream of these records alone."""
    replies: list[ingest.Reply] = []
    with SqliteLog(":memory:") as log:
        log.produce_many("updates", data)
        with Pipeline(log, graph, replies=replies.append, **options) as pipeline:
            pipeline.run("end")
            assert pipeline.outputs.rejected == 0
    graph.check()
    return replies


@pytest.mark.parametrize("directed", [True, False], ids=["directed", "undirected"])
@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_between_two_sets_the_edge_is_always_there(
    device: str, directed: bool, batch_size: int
) -> None:
    """Each query sees the weight that was set last, and every vertex has its neighbours, wherever a
    batch ends; an append or a deletion before a set leaves no trace."""
    rng = np.random.default_rng(batch_size)
    graph = lpma.Graph(device=device, directed=directed)
    src, dst = np.transpose(EDGES)
    graph.insert(src, dst, 9.0)
    weights = dict.fromkeys(EDGES, 9.0)
    records: list[bytes] = []
    expected: dict[str, float] = {}
    for i in range(150):
        u, v = EDGES[int(rng.integers(len(EDGES)))]
        before = [Kind.INSERT, Kind.DELETE, Kind.SET][: int(rng.integers(4))]
        weight = rng.integers(1, 9, len(before) + 1) / 4
        ends = ([u] * len(weight), [v] * len(weight))
        kinds = np.array([*before, Kind.SET], np.uint8)
        records.append(ingest.encode_updates(*ends, weight, None, kinds))
        weights[u, v] = float(weight[-1])
        records.append(ingest.encode_query(f"e{i}", Kind.EDGE, u, v))
        records.append(ingest.encode_query(f"d{i}", Kind.DEGREE, 1))
        expected |= {f"e{i}": weights[u, v], f"d{i}": 1 if directed else 3}
    replies = streamed(records, graph, batch_size=batch_size)
    answers: dict[str, Any] = {reply.id: reply.answer for reply in replies}
    found = {id: a.weights if id[0] == "e" else a for id, a in answers.items()}
    assert {id: float(answer[0]) for id, answer in found.items()} == expected
    assert graph.num_edges == len(EDGES)


@pytest.mark.parametrize("weight", ["float32", "float64", None])
def test_a_weight_of_0_or_less_removes_the_edge(device: str, weight: str | None) -> None:
    graph = lpma.Graph(device=device, weight_dtype=weight)
    graph.insert([1, 2, 3], [2, 3, 4])
    rows = [(1, 2, 0.0), (2, 3, -1.0), (3, 4, 2.5), (5, 6, 0.0), (7, 8, 1e-9)]
    streamed([ingest.encode_row(u, v, w, 7, Kind.SET) for u, v, w in rows], graph)
    src, dst, _ = zip(*rows, strict=True)
    edges = graph.edges(src, dst)
    assert edges.found.tolist() == [False, False, True, False, True]
    assert edges.times is not None
    assert edges.times[2] == 7
    if edges.weights is not None:
        assert edges.weights[2] == 2.5


def test_a_set_that_is_sent_again_does_not_come_back(device: str) -> None:
    graph = lpma.Graph(device=device)
    sent = [ingest.encode_row(1, 2, w, kind=Kind.SET, producer="p", seq=w) for w in (1, 2)]
    streamed([*sent, sent[0]], graph)
    assert graph.edges([1], [2]).weights == 2.0


@pytest.mark.parametrize("names", [False, True], ids=["ids", "names"])
def test_a_topic_may_set_every_edge(device: str, names: bool) -> None:
    """As that of a table does: by its default, or by its own word."""
    graph = lpma.Graph(device=device, names=names)
    rows = [b'{"user": 1, "item": 2, "stars": 5}', b'{"user": 1, "item": 2, "stars": 3}',
            b'{"user": 1, "item": 3}', b'{"user": 4, "item": 3, "op": "put", "stars": 1}',
            b'{"user": 1, "item": 3, "stars": 0}']  # fmt: skip
    fields = Fields(
        "user", "item", "stars", kind="op", kinds={"put": "set"}, default_kind="set",
        default_weight=2.0,
    )  # fmt: skip
    streamed(rows, graph, records=fields, names=names)
    edges = graph.edges([1, 1, 4], [2, 3, 3])
    assert edges.found.tolist() == [True, False, True]
    assert edges.weights is not None
    assert edges.weights[[0, 2]].tolist() == [3.0, 1.0]
