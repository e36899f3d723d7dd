"""The programs of the structural diversity paper, and ours, on the graphs that both are run on.

Programs bear the paper's names; ours are called `lpma`:

CPU-Div      extraction in one thread           MCPU-Div     in all threads
GPU-Div      extraction on one device           MGPU-Div     on all devices, nobody steals
MGPU-Div-E   exhausted stealing                 MGPU-Div-D   dynamic global stealing (Algorithm 9)
lpma         listing on the CPU                 lpma-gpu     on one device
lpma-gpus    on all devices

Programs that this machine cannot run are left out: with one device, all those for several. Every
run starts from an undirected snapshot on the program's device, whose simple view is already built,
and ends with the winners' contexts. CPU-Div and MCPU-Div take a graph only if its ego networks have
at most MOST_EDGES edges together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import algorithms
from algorithms.diversity import search as find_best
from algorithms.diversity.methods import workers
from algorithms.diversity.model import Scorer
from algorithms.views.simple import simple
from lpma import Snapshot

from .. import device
from ..algorithms.graphs import on_host, rmat_as_published, snapshots
from ..report import Report, Setting
from ..stopwatch import Timing, WrongAnswer
from ..stopwatch import race as race_actions

REAL = ("wiki-Vote", "email-Enron", "facebook-combined", "ego-twitter", "uk-2007-05-100k")
QUICK_SCALES, CPU_SCALES, GPU_SCALES = (10,), (16,), (16, 18, 20)
MOST_EDGES = 50_000_000
ROUNDS, BUDGET_S = 5, 15.0
K, T = 4, 100  # the paper's

Best = list[tuple[int, int]]


@dataclass(frozen=True)
class Program:
    """A method on one worker, or on all that there are."""

    method: str
    device: str
    all_workers: bool
    stealing: str = "global"


PROGRAMS = {
    "CPU-Div": Program("extract", "cpu", False),
    "MCPU-Div": Program("extract", "cpu", True),
    "lpma": Program("listing", "cpu", True),
    "GPU-Div": Program("extract", "cuda", False),
    "MGPU-Div": Program("extract", "cuda", True, "none"),
    "MGPU-Div-E": Program("extract", "cuda", True, "exhausted"),
    "MGPU-Div-D": Program("extract", "cuda", True),
    "lpma-gpu": Program("listing", "cuda", False),
    "lpma-gpus": Program("listing", "cuda", True),
}


@dataclass(frozen=True)
class Graph:
    """A graph on each device that some program works on."""

    name: str
    on: Mapping[str, Snapshot]
    triangles: int

    @property
    def ego_edges(self) -> int:
        """Of all ego networks together."""
        return 3 * self.triangles


def devices() -> int:
    """The number of CUDA devices here."""
    if device.why_none():
        return 0
    import cupy

    return int(cupy.cuda.runtime.getDeviceCount())


def runnable(names: Sequence[str], setting: Setting) -> dict[str, Program]:
    """The programs of these names that are wanted and that this machine can run."""
    count = devices()
    return {
        name: PROGRAMS[name]
        for name in names
        if setting.wants(name)
        and (PROGRAMS[name].device == "cpu" or count > int(PROGRAMS[name].all_workers))
    }


def graphs(programs: Mapping[str, Program], quick: bool) -> Iterator[Graph]:
    """Simple undirected graphs, on the devices of these programs; none without a program."""
    kinds = {program.device for program in programs.values()}
    if not kinds:
        return
    scales = QUICK_SCALES if quick else GPU_SCALES if "cuda" in kinds else CPU_SCALES
    there = "cuda" if "cuda" in kinds else "cpu"
    for name, found in snapshots(there, (), () if quick else REAL):
        yield _graph(name, found, there, kinds)
    for scale in scales:
        yield _graph(f"RMAT {scale}", rmat_as_published(scale, there), there, kinds)


def _graph(name: str, s: Snapshot, there: str, kinds: set[str]) -> Graph:
    on = {there: s} | ({"cpu": on_host(s)} if "cpu" in kinds else {})
    return Graph(name, on, algorithms.triangle_count(s))


def takes(program: Program, graph: Graph) -> bool:
    """Whether the program is run on the graph: extraction on the host takes no large one."""
    by_cpu = program.device == "cpu" and program.method == "extract"
    return not by_cpu or graph.ego_edges <= MOST_EDGES


def scorers_of(program: Program, s: Snapshot, model: str, k: int) -> list[Scorer]:
    """A scorer for each of the program's workers."""
    view = simple(s)  # nothing derived from it earlier is at hand
    if program.device == "cuda":
        numbers = range(devices()) if program.all_workers else [0]
        return workers(program.method, view, model, k, list(numbers))
    found = workers(program.method, view, model, k)
    return found if program.all_workers else found[:1]


def search(program: Program, s: Snapshot, model: str, k: int, t: int) -> Best:
    """What `algorithms.top_diversity` does, with the program's stealing; the contexts are found,
    but not returned."""
    best = find_best(scorers_of(program, s, model, k), t, program.stealing)
    return [(found.vertex, found.score) for found in best]


def race(runs: Mapping[str, Callable[[], Any]], rounds: int = ROUNDS) -> dict[str, Timing]:
    """The times of each program; all must give the same answer."""
    answers: list[Any] = []

    def check(name: str, answer: Any) -> None:
        answers.append(answer)
        if not np.array_equal(answer, answers[0]):
            raise WrongAnswer(f"{name}: another answer than {next(iter(runs))}'s")

    return race_actions(runs, check, rounds=rounds, budget_s=BUDGET_S)


def race_searches(
    programs: Mapping[str, Program], graph: Graph, model: str, k: int, t: int
) -> dict[str, float | None]:
    """The median seconds of each program's search; None if it does not take the graph."""
    runs = {
        name: _search(program, graph, model, k, t)
        for name, program in programs.items()
        if takes(program, graph)
    }
    timings = race(runs)
    return {name: timings[name].median if name in timings else None for name in programs}


def _search(program: Program, graph: Graph, model: str, k: int, t: int) -> Callable[[], Best]:
    return lambda: search(program, graph.on[program.device], model, k, t)


def sweep(
    report: Report, names: Sequence[str], settings: Sequence[tuple[str, int, int]], setting: Setting
) -> Report:
    """A row for every graph and (model, k, t), with the seconds of every program."""
    programs = runnable(names, setting)
    for graph in graphs(programs, setting.quick):
        for model, k, t in settings:
            if setting.out_of_time():
                return report
            row: dict[str, Any] = {"graph": graph.name, "model": model, "k": k, "t": t}
            report.add(row | with_ratios(race_searches(programs, graph, model, k, t)))
    return report


def with_ratios(seconds: Mapping[str, float | None]) -> dict[str, float | None]:
    """Also the ratios of those that were run: what threads, devices and listing gain."""
    pairs = {
        "threads": ("CPU-Div", "MCPU-Div"), "devices": ("GPU-Div", "MGPU-Div-D"),
        "listing": ("MCPU-Div", "lpma"), "listing-gpu": ("GPU-Div", "lpma-gpu"),
    }  # fmt: skip
    found = dict(seconds)
    for title, (slow, fast) in pairs.items():
        if slow in seconds and fast in seconds:
            a, b = seconds[slow], seconds[fast]
            found[title] = a / b if a is not None and b is not None else None
    return found
