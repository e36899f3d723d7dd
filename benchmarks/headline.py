"""What a user asks first: the rows of the page of figures, ours beside the fastest other.

    python -m benchmarks headline [--device cuda] [--only insert-10,core]

Each row is an experiment's own measurement at one size. On the CPU two cores are used, whatever the
machine has; on a CUDA device ours is beside our own controls (controls/) and published figures.
What is found goes into results/MACHINE.json, in the place of what was found there before; page.py
says what that holds. `--quick` runs what is small on small graphs, and keeps nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

from . import machine, page, workloads
from .model import Model
from .report import Report, Setting
from .stopwatch import NAN, Timing, alone, median
from .workloads import Workload

Found = tuple[str, Mapping[str, float]]  # a row, and the milliseconds of each rival
BUSY = 0.5  # a load a core: what others do on the machine shows
LOADED, ANALYSES_S = 2_100_000, 8.0


def headline(setting: Setting) -> Report:
    report = Report(f"headline on {setting.device}", "milliseconds, median")
    described = machine.describe()
    for measure, names in (ON_CPU if setting.device == "cpu" else ON_CUDA).items():
        wanted = [name for name in names if setting.wants(name)]
        rows = {}
        for name, ms in measure(wanted, setting.quick) if wanted else ():
            rows[name] = _kept(name, ms, setting.device, described)
            other, others_ms = page.fastest(rows[name])
            ours = ms[page.OURS]
            report.add({"row": name, "lpma": ours, "fastest other": other, "ms": others_ms,
                        "ratio": others_ms / ours})  # fmt: skip
        if rows and not setting.quick:
            _keep(setting.device, rows, described)
    report.notes.append("`python -m benchmarks page` makes docs/performance.md of what is kept.")
    return report


def _kept(
    name: str, ms: Mapping[str, float], device: str, described: dict[str, Any]
) -> dict[str, Any]:
    samples = {rival: getattr(value, "samples", (value,)) for rival, value in ms.items()}
    on_device = " --device cuda" if device == "cuda" else ""
    others = page.ROWS[name].others if device == "cpu" else ()
    return {
        "ms": {rival: _rounded(value) for rival, value in ms.items()},
        "least": {rival: _rounded(min(taken)) for rival, taken in samples.items()},
        "rounds": {rival: len(taken) for rival, taken in samples.items()},
        "missing": [other for other in others if other != "numpy" and not find_spec(other)],
        "command": f"headline --only {name}{on_device}",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": described["code"]["commit"],
    }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _keep(device: str, rows: dict[str, Any], described: dict[str, Any]) -> None:
    name, title = machine.name(described)
    path = page.RESULTS / f"{name}.json"
    found: dict[str, Any] = {"machine": {}, "notes": [], "cpu": {}, "cuda": {}, "kept": []}
    if path.is_file():
        found = json.loads(path.read_text())
    busy = described["load"] > BUSY * described["cores"]
    note = "Others were working on this machine: expect other figures on a quiet one."
    found["notes"] = [n for n in found["notes"] if n != note] + [note] * busy
    found["machine"] = {"title": title} | described
    found[device] |= rows
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _ms(timings: Mapping[str, Timing]) -> dict[str, float]:
    return {name: timing.median * 1e3 for name, timing in timings.items()}


# On the CPU -------------------------------------------------------------------------------------


def _graph(quick: bool, streamed: int) -> Workload:
    return workloads.rmat(12, 20_000, streamed) if quick else workloads.rmat(18, LOADED, streamed)


def _stores(name: str) -> dict[str, Any]:
    """Ours, and those of a row's rivals that are installed; nothing loaded."""
    from .stores import base, peers

    others = [kind() for kind in peers.available() if kind.name in page.ROWS[name].others]
    return {store.name: store for store in (base.Lpma(), *others)}


def _updates(names: list[str], quick: bool) -> Iterator[Found]:
    from .stores import updates

    cells = [(what, int(size)) for what, size in (name.split("-") for name in names)]
    cells = [cell for cell in cells if not quick or cell[1] <= 1000]
    streamed = updates.streamed(size for what, size in cells if what == "insert")
    stores = list(_stores("insert-10").values())
    race = updates.race(_graph(quick, streamed), cells, stores)
    for (what, size), (_, _, timings) in zip(cells, race, strict=True):
        yield f"{what}-{size}", _ms(timings)


def _mixed(names: list[str], quick: bool) -> Iterator[Found]:
    from .stores import mixed

    size = 500 if quick else 10**4
    _, *others = _stores("mixed").values()
    workload = _graph(quick, (mixed.WARMUP + mixed.ROUNDS) * size)
    yield "mixed", _ms(mixed.race(workload, size, others))


def _edges(names: list[str], quick: bool) -> Iterator[Found]:
    from .stores import queries

    workload, stores = _graph(quick, 0), _stores("edges")
    for store in stores.values():
        store.load(*workload.base(), workload.n)
    yield "edges", _ms(queries.edges(workload, Model(*workload.base()), 10**4, stores))


def _snapshot(names: list[str], quick: bool) -> Iterator[Found]:
    from .stores import csr

    yield "snapshot", _ms(csr.export(_graph(quick, 1 + csr.ROUNDS), _stores("snapshot")))


def _analyses(names: list[str], quick: bool) -> Iterator[Found]:
    from .algorithms import live

    stream = live.rmat(12 if quick else 18)
    for name in names:
        ms = _ms(live.race(stream, name, ANALYSES_S))
        del ms["views there"]
        yield name, {page.OURS: ms.pop("live")} | ms


def _k_truss(names: list[str], quick: bool) -> Iterator[Found]:
    from .algorithms import graphs
    from .papers import truss

    s = graphs.rmat(9 if quick else 14, "cpu")
    yield "truss", _ms(truss.k_truss(s, page.ROWS["truss"].others))


def _records(names: list[str], quick: bool) -> Iterator[Found]:
    from .streams import records

    count = 2_000 if quick else 100_000
    yield "records", _ms(records.race(count, page.ROWS["records"].others))


# On a CUDA device -------------------------------------------------------------------------------


def _gpu_updates(names: list[str], quick: bool) -> Iterator[Found]:
    from . import workloads_gpu
    from .stores.gpu import updates
    from .stores.gpu.base import make
    from .stores.gpu.race import ROUNDS, run_cell

    updates.warm_up(Setting(only=frozenset(updates.MAIN)))
    loaded, room = (20_000, 10**5) if quick else (10**7, 18 * 10**6)
    stream = workloads_gpu.rmat(14 if quick else 20, loaded, room)
    figures = {"insert": "insert", "delete": "delete", "snapshot": "csr"}
    sizes = {name: int((name + "-100000").split("-")[1]) for name in names}
    for size in sorted(set(sizes.values())):
        rounds = replace(ROUNDS.get(size, ROUNDS[1000]), following=0, pageable=0)
        fitting = rounds.within(stream.streamed // size)
        if fitting is None:
            continue
        cells = {store: run_cell(make(store), stream, size, fitting) for store in updates.MAIN}
        for name in [name for name in names if sizes[name] == size]:
            taken = {s: getattr(cell, figures[name.split("-")[0]]) for s, cell in cells.items()}
            yield name, {s: median(ms) if isinstance(ms, list) else ms for s, ms in taken.items()}


def _gpu_reads(names: list[str], quick: bool) -> Iterator[Found]:
    from . import workloads_gpu
    from .papers.lpma.opera import opera_row
    from .stores.gpu import queries, updates
    from .stores.gpu.base import Ours

    scale, loaded, size = (14, 50_000, 1_000) if quick else (20, 10**7, 10**5)
    stream = workloads_gpu.rmat(scale, loaded, updates.MIXED * size)
    if "mixed" in names:
        yield "mixed", {page.OURS: opera_row(stream, size, updates.MIXED, serial=0)["mixed"]}
    if "edges" in names:
        store, keys = Ours(page.OURS), stream.base()
        store.load(keys, stream.vertices, len(keys))
        yield "edges", {page.OURS: queries.edges(store, stream, keys, size)["device"]}


def _gpu_analyses(names: list[str], quick: bool) -> Iterator[Found]:
    import algorithms

    from .algorithms import triangles
    from .algorithms.graphs import bare, rmat_as_published
    from .papers import kcore, truss

    scale = 12 if quick else 20
    s, graph = rmat_as_published(scale, "cuda"), f"RMAT {scale}"
    if "core" in names:
        right = kcore.expected(s)
        methods = {page.OURS: "cooperative", "the paper's program": "peel"}
        runs = {title: partial(kcore.until_idle, s, method) for title, method in methods.items()}
        yield "core", _ms(kcore.race(runs, right, kcore.ROUNDS))
    if "triangles" in names:
        row = triangles.device_row(graph, s)
        yield "triangles", _published(row["whole"], "GroupTC (published)", row["published"])
    if "pagerank" in names:
        ranks = alone(lambda: algorithms.pagerank(bare(s)), rounds=9, warmup=2)
        yield "pagerank", {page.OURS: ranks * 1e3}
    if "truss" in names:
        ms = truss.device_ms(s, "incidence", algorithms.truss_numbers(s).truss)
        yield "truss", _published(ms, "AccTruss (published)", truss.PUBLISHED_MS.get(graph, NAN))


def _published(ours: float, name: str, ms: float) -> dict[str, float]:
    return {page.OURS: ours} | ({name: ms} if ms == ms else {})


def _gpu_records(names: list[str], quick: bool) -> Iterator[Found]:
    from .streams.gpu_pipeline import memory_s

    yield "records", {page.OURS: memory_s("cuda", 120_000 if quick else 4_000_000) * 1e3}


_UPDATES = ("insert-10", "insert-1000", "insert-100000", "delete-100000", "insert-1000000")
_ANALYSES = ("core", "triangles", "pagerank")
Measure = Callable[[list[str], bool], Iterator[Found]]
# What measures which rows. A row that is here is in page.ROWS.
ON_CPU: dict[Measure, tuple[str, ...]] = {
    _updates: _UPDATES, _mixed: ("mixed",), _edges: ("edges",), _snapshot: ("snapshot",),
    _analyses: _ANALYSES, _k_truss: ("truss",), _records: ("records",),
}  # fmt: skip
ON_CUDA: dict[Measure, tuple[str, ...]] = {
    _gpu_updates: (*_UPDATES, "snapshot"), _gpu_reads: ("mixed", "edges"),
    _gpu_analyses: (*_ANALYSES, "truss"), _gpu_records: ("records",),
}  # fmt: skip
