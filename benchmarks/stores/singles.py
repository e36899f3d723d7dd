"""One operation at a time, from Python's numbers: µs a call, beside graph libraries for Python.

Half of the edges asked for are there. `insert` makes new edges, a call each. `neighbors` gives all
of them, as lpma's array or as the library's list. igraph rebuilds its index at every insertion.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from .. import workloads
from ..keys import Array, ends_of, keys_of
from ..model import Model
from ..report import Report, Row, Setting, beside
from ..stopwatch import Kernel, WrongAnswer, measure

CALLS = 200  # a round
ROUNDS = 20
BUDGET_S = 4.0  # for each library and operation
LIBRARIES = ("networkit", "igraph", "networkx")

Call = Callable[..., Any]
Calls = dict[str, Call]  # by operation
Queries = list[tuple[int, ...]]

# What of an answer is compared. lpma gives a degree as an array of one.
_SUMMED: dict[str, Call] = {
    "edge": lambda edge: edge is not None,
    "neighbors": len,
    "degree": lambda degree: np.asarray(degree).reshape(-1)[0],
}


def singles(setting: Setting) -> Report:
    report = Report("small: one at a time", "µs a call, median")
    graph = None if setting.quick else workloads.real("sx-mathoverflow", loaded_share=0.5)
    graph = graph or workloads.rmat(10, 3_000, 5_000)
    model, rng = Model(*graph.base()), np.random.default_rng(1)
    makers = {"lpma": _lpma, "networkit": _networkit, "igraph": _igraph, "networkx": _networkx}
    wanted = [name for name in makers if name == "lpma" or find_spec(name)]
    found = {name: makers[name](graph.n, model.keys) for name in wanted if setting.wants(name)}
    there = rng.choice(model.keys, CALLS // 2)
    drawn = keys_of(*rng.integers(0, graph.n, (2, CALLS - len(there)), dtype=np.uint32))
    edges = rng.permutation(np.concatenate((there, drawn)))
    pairs: Queries = list(zip(*(end.tolist() for end in ends_of(edges)), strict=True))
    vertices: Queries = [(pair[0],) for pair in pairs]
    holds = model.holds(edges).tolist()
    degree = np.bincount((model.keys >> np.uint64(32)).astype(np.int64), minlength=graph.n)
    degrees = [int(degree[u]) for (u,) in vertices]
    asked: list[tuple[str, Queries, list[int]]] = [
        ("has_edge", pairs, holds), ("edge", pairs, holds), ("degree", vertices, degrees),
        ("neighbors", vertices, degrees),
    ]  # fmt: skip
    for what, queries, answers in asked:
        report.add(_race(graph.name, what, queries, answers, found))
    report.add(_insertions(graph, model, found))
    missing = [name for name in LIBRARIES if not find_spec(name)]
    if missing:
        report.notes.append(f"not installed (extra `bench`), left out: {', '.join(missing)}.")
    report.notes.append("ratio: the fastest of the others to lpma.")
    return report


def _race(
    graph: str, what: str, queries: Queries, answers: list[int], found: dict[str, Calls]
) -> Row:
    summed = _SUMMED.get(what, int)

    def verify(name: str, _: int, given: list[Any]) -> None:
        if [int(summed(answer)) for answer in given] != [int(answer) for answer in answers]:
            raise WrongAnswer(f"{name}: {what} answered wrongly")

    def kernel(call: Call) -> Kernel:
        return Kernel(lambda _: queries, lambda asked: [call(*one) for one in asked])

    kernels = {name: kernel(calls[what]) for name, calls in found.items()}
    timings = measure(kernels, verify, rounds=ROUNDS, budget_s=BUDGET_S)
    row: Row = {"graph": graph, "what": what}
    return row | beside(timings, LIBRARIES, 1e6 / len(queries))


def _insertions(graph: workloads.Workload, model: Model, found: dict[str, Calls]) -> Row:
    """The stream behind what is loaded, an edge a call; repeats left out."""
    keys = keys_of(*graph.stream(0, graph.streamed))
    _, first = np.unique(keys, return_index=True)
    keys = keys[np.sort(first)]
    keys = keys[~model.holds(keys)]
    calls = min(CALLS, len(keys) // (ROUNDS + 1))
    rounds = [
        list(zip(*(end.tolist() for end in ends_of(part)), strict=True))
        for part in np.split(keys[: (ROUNDS + 1) * calls], ROUNDS + 1)
    ]
    given = dict.fromkeys(found, 0)

    def kernel(name: str) -> Kernel:
        insert = found[name]["insert"]

        def run(edges: Queries) -> None:
            for u, v in edges:
                insert(u, v)
            given[name] += len(edges)

        return Kernel(lambda i: rounds[i], run)

    def verify(name: str, *_: Any) -> None:
        if found[name]["size"]() != len(model.keys) + given[name]:
            raise WrongAnswer(f"{name}: insertions are lost")

    timings = measure({name: kernel(name) for name in found}, verify, rounds=ROUNDS,
                      budget_s=BUDGET_S)  # fmt: skip
    row: Row = {"graph": graph.name, "what": "insert"}
    return row | beside(timings, LIBRARIES, 1e6 / calls)


def _lpma(n: int, keys: Array) -> Calls:
    import lpma

    g = lpma.Graph(device="cpu")
    g.insert(*ends_of(keys))
    return {
        "has_edge": g.has_edge, "edge": g.edge, "degree": g.degree, "neighbors": g.neighbors,
        "insert": g.insert, "size": lambda: g.num_edges,
    }  # fmt: skip


def _networkit(n: int, keys: Array) -> Calls:
    from networkit import Graph

    g = Graph(n, weighted=True, directed=True)
    g.addEdges(tuple(end.astype(np.uint64) for end in ends_of(keys)))
    return {
        "has_edge": g.hasEdge,
        "edge": lambda u, v: g.weight(u, v) if g.hasEdge(u, v) else None,
        "degree": g.degreeOut,
        "neighbors": lambda u: list(g.iterNeighbors(u)),
        "insert": lambda u, v: g.addEdge(u, v, checkMultiEdge=True),
        "size": g.numberOfEdges,
    }


def _igraph(n: int, keys: Array) -> Calls:
    from igraph import Graph

    g = Graph(n, directed=True)
    g.add_edges(np.column_stack(ends_of(keys)).astype(np.int64))
    g.es["weight"] = 1.0

    def edge(u: int, v: int) -> float | None:
        place = g.get_eid(u, v, error=False)
        return None if place < 0 else g.es[place]["weight"]

    return {
        "has_edge": g.are_adjacent, "edge": edge, "degree": g.outdegree,
        "neighbors": g.successors, "insert": g.add_edge, "size": g.ecount,
    }  # fmt: skip


def _networkx(n: int, keys: Array) -> Calls:
    import networkx

    g = networkx.DiGraph()
    g.add_nodes_from(range(n))
    g.add_edges_from(zip(*(end.tolist() for end in ends_of(keys)), strict=True), weight=1.0)
    return {
        "has_edge": g.has_edge, "edge": g.get_edge_data, "degree": g.out_degree,
        "neighbors": lambda u: list(g.successors(u)), "insert": g.add_edge,
        "size": g.number_of_edges,
    }  # fmt: skip
