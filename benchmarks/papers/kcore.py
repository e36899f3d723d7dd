"""The k-core paper's Tables II to V: core numbers on a CUDA device, and on the CPU.

Graphs are real ones and RMAT with 16 draws per vertex; RMAT 20 has the 18 million draws with which
the paper's own code was measured on an H200. Every answer is compared with bucket peeling in one
thread, on the host. Medusa's, Gunrock's and GSwitch's programs are not ours to run, and are quoted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

import lpma
from algorithms import core_numbers
from algorithms.views.simple import simple
from lpma import Snapshot
from lpma.arrays import to_host
from lpma.cpu.threads import THREADS

from ..algorithms import libraries
from ..algorithms.graphs import on_host, rmat_as_published, snapshots
from ..keys import Array
from ..report import Report, Setting
from ..stopwatch import NAN, Action, Timing, WrongAnswer, synchronize
from ..stopwatch import on_host as host_clock
from ..stopwatch import race as race_actions
from .published import CORE_GRAPHS, CORE_TABLE_3_MS, CORE_TABLE_5_MB, by_graph

REAL = ("email-Enron", "ego-twitter", "dblp-2010", "uk-2007-05-100k", "wiki-Vote", "road-NY")
QUICK_SCALES, CPU_SCALES, GPU_SCALES = (12,), (18, 20), (18, 19, 20, 21, 22)
BUDGET_S = 20.0
ROUNDS, CPU_ROUNDS, VIEW_ROUNDS = 7, 5, 3

NINE = {
    "Ours": "peel", "SM": "peel-sm", "VP": "peel-vp",
    "BC": "peel-bc", "BC+SM": "peel-bc-sm", "BC+VP": "peel-bc-vp",
    "EC": "peel-ec", "EC+SM": "peel-ec-sm", "EC+VP": "peel-ec-vp",
}  # fmt: skip
OTHERS = {"VETGA": "vector", "h-index": "h-index", "cooperative": "cooperative"}
ON_CPU = {"lpma": "auto", "BZ": "bz", "ParK": "park", "MPM": "h-index", "PKC": "pkc"}
LIBRARIES = ("networkit", "igraph", "networkx")


def graphs(device: str, quick: bool) -> Iterator[tuple[str, Snapshot]]:
    scales = QUICK_SCALES if quick else CPU_SCALES if device == "cpu" else GPU_SCALES
    yield from snapshots(device, (), REAL[:1] if quick else REAL)
    for scale in scales:
        yield f"RMAT {scale}", rmat_as_published(scale, device)


def expected(s: Snapshot) -> Array:
    """By bucket peeling in one thread, on the host."""
    return core_numbers(on_host(s), "bz")


def about(name: str, s: Snapshot, numbers: Array) -> dict[str, Any]:
    """The first columns of a row."""
    most = int(numbers.max(initial=0))
    return {"graph": name, "vertices": s.num_vertices, "edges": s.num_edges, "k max": most}


def race(runs: Mapping[str, Action], right: Array, rounds: int) -> dict[str, Timing]:
    def check(name: str, answer: Any) -> None:
        if not np.array_equal(to_host(answer), right):
            raise WrongAnswer(f"{name}: core numbers are wrong")

    return race_actions(runs, check, rounds=rounds, budget_s=BUDGET_S)


def table2(setting: Setting) -> Report:
    """The paper's nine programs, and ours in one cooperative kernel.

    Milliseconds on the host's clock, launches and the reading back of counts included; the simple
    view is there beforehand. *ratio*: the fastest of the nine to ours."""
    return _on_device("kcore-table2", NINE | {"cooperative": "cooperative"}, setting)


def table3(setting: Setting) -> list[Report]:
    """Programs for the GPU: the paper's own, VETGA's method and h-indices, beside ours."""
    rows = by_graph(CORE_TABLE_3_MS, CORE_GRAPHS)
    quoted = Report("kcore-table3-published", "milliseconds, quoted from the paper", rows)
    return [_on_device("kcore-table3", {"Ours": "peel"} | OTHERS, setting), quoted]


def _on_device(table: str, methods: dict[str, str], setting: Setting) -> Report:
    """One row per graph, with the milliseconds of methods by their names in the table."""
    report = Report(table, "core numbers on the device, milliseconds, median")
    for name, s in graphs("cuda", setting.quick):
        if setting.out_of_time():
            break
        right = expected(s)
        runs = {t: partial(_until_idle, s, m) for t, m in methods.items() if setting.wants(m)}
        timings = race(runs, right, ROUNDS)
        ms = {t: timings[t].median * 1e3 if t in timings else NAN for t in methods}
        others = [value for title, value in ms.items() if title != "cooperative"]
        report.add(about(name, s, right) | ms | {"ratio": min(others) / ms["cooperative"]})
    return report


def _until_idle(s: Snapshot, method: str) -> Any:
    numbers = core_numbers(s, method)
    synchronize()
    return numbers


def table4(setting: Setting) -> Report:
    """Programs for the CPU: ours and other libraries, beside the paper's methods.

    Milliseconds with all of this machine's cores, the graph in the form that suits each program;
    *view* is what it takes us to bring a directed snapshot, which has each edge once, into ours,
    and the last columns what it takes the libraries to read an array of edges. *ratio*: the fastest
    library to ours; *with view*: the same with these preparations on both sides."""
    report = Report("kcore-table4", "core numbers on the CPU, milliseconds, median")
    for name, s in graphs("cpu", setting.quick):
        report.add(_on_cpu(name, s, setting))
    return report


def _on_cpu(name: str, s: Snapshot, setting: Setting) -> dict[str, Any]:
    right = expected(s)
    made, reading = libraries.core_numbers(s, THREADS)
    runs: dict[str, Action] = {
        title: partial(core_numbers, s, m) for title, m in ON_CPU.items() if setting.wants(title)
    }
    runs |= {title: run for title, run in made.items() if setting.wants(title)}
    timings = race(runs, right, CPU_ROUNDS)
    ms = {t: timings[t].median * 1e3 if t in timings else None for t in (*ON_CPU, *LIBRARIES)}
    view = _view_seconds(s) * 1e3
    row = about(name, s, right) | ms | {"view": view}
    row |= {f"{title} reads": 1e3 * reading[title] if title in reading else None
            for title in LIBRARIES}  # fmt: skip
    others = {title: timings[title].median * 1e3 for title in made if title in timings}
    whole = min((ms + 1e3 * reading[title] for title, ms in others.items()), default=NAN)
    ours = timings["lpma"].median * 1e3 if "lpma" in timings else NAN
    row["ratio"] = min(others.values(), default=NAN) / ours
    row["with view"] = whole / (ours + view)
    return row


def _view_seconds(s: Snapshot) -> float:
    """The fastest of a few times, each of a snapshot without a view, which has every edge in one
    direction, so that its simple view must be built."""
    graph = lpma.Graph(weight_dtype=None, times=False, device="cpu")
    graph.insert(*libraries.upper_edges(on_host(s)))
    directed, best = graph.snapshot(), float("inf")
    for _ in range(VIEW_ROUNDS):
        directed.views.clear()
        best = min(best, host_clock(partial(simple, directed))[0])
    return best


def table5(setting: Setting) -> list[Report]:
    """The most device memory in use at once, in megabytes.

    Ours: what CuPy's allocator hands out beyond the graph's own arrays, *CSR*. The paper's numbers
    are the driver's, for the whole process: they are quoted beside ours, but not to be compared
    entry by entry."""
    report = Report("kcore-table5", "peak device memory beyond the graph, megabytes")
    titles = ("Ours", "SM", "VP", "EC", "BC")
    methods = {title: NINE[title] for title in titles} | OTHERS
    for name, s in graphs("cuda", setting.quick):
        if setting.out_of_time():
            break
        row = about(name, s, expected(s)) | {"CSR": (s.indptr.nbytes + s.indices.nbytes) / 1e6}
        row |= {title: peak_bytes(s, method) / 1e6 for title, method in methods.items()}
        report.add(row)
    rows = by_graph(CORE_TABLE_5_MB, CORE_GRAPHS)
    return [report, Report("kcore-table5-published", "megabytes, quoted from the paper", rows)]


def peak_bytes(s: Snapshot, method: str) -> int:
    """The most bytes allocated at once while the method ran, beyond those before."""
    import cupy

    core_numbers(s, method)  # the view, and the kernels
    pool = cupy.get_default_memory_pool()

    class Watch(cupy.cuda.MemoryHook):
        name = "watch"

        def __init__(self) -> None:
            self.before = self.most = pool.used_bytes()

        def malloc_postprocess(self, **_: Any) -> None:
            self.most = max(self.most, pool.used_bytes())

    with Watch() as watch:
        core_numbers(s, method)
    return int(watch.most - watch.before)
