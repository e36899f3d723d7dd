"""Both settings of `global_merge` beside each other: what the default costs, and what it gains.

    nothing   a graph grows from nothing, batch by batch, and is then deleted in batches
    loaded    batches are inserted into a graph that was loaded at once, and then deleted

Two graphs take turns, batch by batch, several times from the beginning. The time of a batch is the
median of its times in these runs; *rate* is that of all batches together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np

from .. import workloads
from ..keys import Array
from ..model import Fingerprint, Model
from ..report import Report, Row, Setting
from ..stopwatch import Kernel, measure
from ..workloads import Workload
from .base import Lpma

RULES = ("auto", "never")
RUNS = 5
MOST_GROWING = 4_000  # batches from nothing
INTO_LOADED = {10**3: 60, 10**4: 30, 10**5: 10, 10**6: 4}
SETTLED = 500_000  # edges from which on bytes an edge are looked at

Pair = tuple[Array, Array]


@dataclass(frozen=True)
class _Course:
    """What one graph goes through."""

    loaded: Pair
    inserted: list[Pair]
    deleted: list[Pair]
    full: Fingerprint  # after the insertions
    last: Fingerprint  # after the deletions


def merges(setting: Setting) -> Report:
    report = Report("merges", f"million edges a second, and the slowest batch; {RUNS} runs")
    for workload, growing in _workloads(setting.quick):
        for size, batches in INTO_LOADED.items():
            if size * 4 > growing:
                continue
            number = min(MOST_GROWING, growing // size)
            batches = min(batches, workload.streamed // size)
            for start, course in (
                ("nothing", _course(workload.src, workload.dst, 0, number, size)),
                ("loaded", _course(workload.src, workload.dst, workload.loaded, batches, size)),
            ):
                for row in _rows(course):
                    report.add({"graph": workload.name, "from": start, "batch": size} | row)
    report.notes.append(
        "ratio: auto to never; above 1 auto is better in *rate*, worse in *slowest*."
    )
    return report


def _workloads(quick: bool) -> Iterator[tuple[Workload, int]]:
    """Graphs, and how many of their edges grow from nothing."""
    if quick:
        yield workloads.rmat(14, 60_000, 60_000), 60_000
        return
    streamed = max(size * batches for size, batches in INTO_LOADED.items())
    yield workloads.rmat(18, 2_100_000, streamed), 4_000_000
    yield workloads.rmat(20, 8_400_000, streamed), 8_000_000


def _course(src: Array, dst: Array, loaded: int, batches: int, size: int) -> _Course:
    """Batches from the edge `loaded` on, and the same edges to be deleted in another order."""
    src, dst = (column.astype(np.uint32) for column in (src, dst))
    rows = np.arange(loaded, loaded + batches * size)
    shuffled = np.random.default_rng(size).permutation(rows)
    inserted, deleted = (
        [(src[part], dst[part]) for part in np.split(order, batches)] for order in (rows, shuffled)
    )
    before = src[:loaded], dst[:loaded]
    model = Model(*before)
    last = model.fingerprint
    full = model.insert(src[rows], dst[rows])
    return _Course(before, inserted, deleted, full, last)


def _rows(course: _Course) -> Iterator[Row]:
    """One for insertions, one for deletions."""
    seconds: dict[tuple[str, str], list[list[float]]] = {}
    held: dict[str, list[float]] = {rule: [] for rule in RULES}
    for run in range(RUNS):
        order = RULES if run % 2 else RULES[::-1]
        stores = {rule: Lpma(rule, global_merge=rule) for rule in order}
        for store in stores.values():
            store.load(*course.loaded, 0)
        for what, batches, after in (
            ("insert", course.inserted, course.full),
            ("delete", course.deleted, course.last),
        ):
            timings = measure(
                {rule: _kernel(store, what, batches, held[rule]) for rule, store in stores.items()},
                lambda rule, _rounds, _result: stores[rule].verify(after),  # noqa: B023  # at once
                rounds=len(batches), warmup=0,
            )  # fmt: skip
            for rule, timing in timings.items():
                seconds.setdefault((what, rule), []).append(timing.seconds)
    edges = sum(len(src) for src, _ in course.inserted)
    for what in ("insert", "delete"):
        took = {rule: np.median(seconds[what, rule], axis=0) for rule in RULES}
        rate = {rule: edges / float(took[rule].sum()) / 1e6 for rule in RULES}
        slowest = {rule: float(took[rule].max()) * 1e3 for rule in RULES}
        yield {
            "what": what, **rate, "ratio": rate["auto"] / rate["never"],
            **{f"slowest {rule}": slowest[rule] for rule in RULES},
            "ratio slowest": slowest["auto"] / slowest["never"],
            **{f"bytes {rule}": median(held[rule] or [float("nan")]) for rule in RULES},
        }  # fmt: skip


def _kernel(store: Lpma, what: str, batches: list[Pair], held: list[float]) -> Kernel:
    """Notes bytes an edge before each insertion, which is not timed."""

    def prepare(i: int) -> Pair:
        graph = store.graph
        if what == "insert" and graph.num_edges >= SETTLED:
            held.append(graph.nbytes / graph.num_edges)
        return store.prepare(*batches[i])

    return Kernel(prepare, store.insert if what == "insert" else store.delete)
