"""Who writes to an answer of a graph changes no later answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lpma
from tests.support.spoiling import arrays_in, plain, spoil

VERTICES = [3, 4, 5, 3]


def graph(device: str, directed: bool, names: bool) -> lpma.Graph:
    g = lpma.Graph(directed, device=device, names=names, predecessors=directed)
    src, dst = np.random.default_rng(6).integers(0, 12, (2, 50))
    g.insert(src, dst, src + 1.0, time=dst)
    g.delete(src[:5], dst[:5], time=9)
    g.add_vertices([70, 71], time=9)
    return g


def batch() -> lpma.Batch:
    made = lpma.Batch()
    for v in VERTICES:
        made.edge(v, 4), made.successors(v), made.degree(v), made.hops(v, 2)
    return made


ANSWERS: dict[str, Callable[[Any], Any]] = {
    "edges": lambda g: g.edges(VERTICES, [4, 5, 3, 4]),
    "successors": lambda g: g.successors(VERTICES),
    "successors of one": lambda g: g.successors(3),
    "predecessors": lambda g: g.predecessors(VERTICES),
    "hops": lambda g: g.hops(VERTICES, 2),
    "degree": lambda g: g.degree(VERTICES),
    "in-degree": lambda g: g.in_degree(VERTICES),
    "has vertices": lambda g: g.has_vertices(VERTICES),
    "neighbors": lambda g: g.neighbors(3),
    "changes": lambda g: g.changes(1),
    "touched": lambda g: g.touched(1),
    "level densities": lambda g: g.level_densities(),
    "snapshot": lambda g: g.snapshot(),
    "compact snapshot": lambda g: g.snapshot(compact=True),
    "numpy": lambda g: g.snapshot().to_numpy(),
    "dlpack": lambda g: g.snapshot().to_dlpack(),
    "edge index": lambda g: g.snapshot().to_edge_index(),
    "stats": lambda g: g.stats,
}


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_shares_nothing_with_the_next(
    device: str, name: str, directed: bool, names: bool
) -> None:
    ask = ANSWERS[name]
    g, right = graph(device, directed, names), plain(ask(graph(device, directed, names)))
    for _ in range(3):
        answer = ask(g)
        assert plain(answer) == right
        spoil(answer)
    everything = {
        other: plain(ask(g)) for other, ask in ANSWERS.items() if other != "level densities"
    }
    untouched = graph(device, directed, names)
    assert everything == {other: plain(ANSWERS[other](untouched)) for other in everything}
    g.check()


def test_names_that_were_handed_out_are_apart(device: str) -> None:
    g: Any = lpma.from_edges(["a", "b", "c"], ["b", "c", "a"], device=device)
    for read in (lambda: g.names.of([0, 1, 2]), lambda: g.snapshot().names.of([0, 1, 2])):
        names = read()
        names[:] = "x"
        assert read().tolist() == ["a", "b", "c"]
    numbers: Any = lpma.Graph(names=True, device=device)
    numbers.insert([7, 8], [8, 9])
    found = numbers.names.of([0, 1, 2])
    found[:] = 1
    assert numbers.names.of([0, 1, 2]).tolist() == [7, 8, 9]


def test_the_answers_of_a_batch_are_apart(device: str) -> None:
    g, right = graph(device, True, False), graph(device, True, False).apply(batch())
    answers = g.apply(batch())
    for number in range(len(answers)):
        assert plain(answers[number]) == plain(right[number])
        for array in arrays_in(answers[number]):
            array[...] = 0
    again = g.apply(batch())
    assert [plain(again[n]) for n in range(len(right))] == [
        plain(right[n]) for n in range(len(right))
    ]


def test_a_query_that_the_batch_had_not(device: str) -> None:
    batch = lpma.Batch()
    batch.edge(1, 2)
    answers = lpma.Graph(device=device).apply(batch)
    assert answers[-1].found.tolist() == [False]  # type: ignore[union-attr]
    for number in (1, -2):
        with pytest.raises(IndexError, match=f"query {number}: the batch had 1"):
            answers[number]
