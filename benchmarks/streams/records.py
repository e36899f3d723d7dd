"""JSON records into a graph, an edge each, from memory: records a second.

Ours is a pipeline with its own decoder, without a checkpoint. The others are what one writes by
hand: records are decoded by orjson, or by Python's json where that is not installed; then NetworkX
has an edge added a record, and a store (stores/peers.py) a batch of as many as ours. Nothing is
checked there, refused or counted.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Collection
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

import ingest
import lpma

from .. import workloads
from ..keys import keys_of
from ..model import Fingerprint, Model
from ..report import Report, Setting, rates
from ..stopwatch import Timing, WrongAnswer, measure, plain
from ..stores import peers
from ..stores.base import Lpma, Store
from .memory_source import MemorySource, refuse

BATCH = 100_000
ROUNDS, BUDGET_S = 3, 12.0
PEERS = ("networkx", "networkit", "scipy", "numpy")


def records(setting: Setting) -> Report:
    report = Report("records", "million JSON records a second into a graph, median")
    count = 5_000 if setting.quick else 300_000
    timings = race(count, [name for name in PEERS if setting.wants(name)])
    report.add({"records": count} | rates(timings, count, ("lpma", *PEERS), PEERS))
    report.notes.append("ratio: lpma to the fastest of the others.")
    return report


def race(count: int, names: Collection[str]) -> dict[str, Timing]:
    """What ours and those of the named that are installed take for `count` records."""
    workload = workloads.rmat(18, 0, count)
    src, dst = workload.stream(0, count)
    edges = zip(src.tolist(), dst.tolist(), strict=True)
    given = [f'{{"src": {u}, "dst": {v}, "weight": 1.0}}'.encode() for u, v in edges]
    loads = importlib.import_module("orjson").loads if find_spec("orjson") else json.loads
    runs: dict[str, Callable[[], Any]] = {"lpma": partial(_pipeline, given)}
    if "networkx" in names and find_spec("networkx"):
        runs["networkx"] = partial(_networkx, given, loads)
    for kind in peers.available():
        if kind.name in names:
            runs[kind.name] = partial(_store, kind, workload.n, given, loads)
    expected = Model(src, dst).fingerprint

    def verify(name: str, _: int, held: Any) -> None:
        if isinstance(held, Store):
            held.verify(expected)
        elif Fingerprint.of(keys_of(*np.array(held.edges(), np.int64).T)) != expected:
            raise WrongAnswer(f"{name}: the graph is not what the records say")

    kernels = {name: plain(run) for name, run in runs.items()}
    return measure(kernels, verify, rounds=ROUNDS, budget_s=BUDGET_S)


def _pipeline(given: list[bytes]) -> Store:
    ours = Lpma()
    ours.graph = lpma.Graph(device="cpu")
    pipeline = ingest.Pipeline(
        MemorySource(given), ours.graph, batch_size=BATCH, batch_interval=10.0, poll_records=10_000,
        records=ingest.Fields(weight="weight"), dead_letters=refuse,
    )  # fmt: skip
    pipeline.run(until="end")
    pipeline.close(checkpoint=False)
    return ours


def _networkx(given: list[bytes], loads: Callable[[bytes], Any]) -> Any:
    import networkx

    graph = networkx.DiGraph()
    for record in given:
        edge = loads(record)
        graph.add_edge(edge["src"], edge["dst"], weight=edge["weight"])
    return graph


def _store(kind: type[Store], n: int, given: list[bytes], loads: Callable[[bytes], Any]) -> Store:
    store = kind()
    for first in range(0, len(given), BATCH):
        edges = [loads(record) for record in given[first : first + BATCH]]
        src, dst = np.array([(edge["src"], edge["dst"]) for edge in edges], np.uint32).T
        if first:
            store.insert(store.prepare(src, dst))
        else:
            store.load(src, dst, n)
    return store
