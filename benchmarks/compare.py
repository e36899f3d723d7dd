"""Two trees of this project beside each other: what a change gained or cost.

    python -m benchmarks compare --base DIR [--device cuda] [--only insert-1,truss] [--quick]

Every measurement starts a process for each tree and has the two take turns, round by round; it does
so PAIRS times with fresh processes, since where memory lies differs from process to process. The
trees must give the same answers. Only public names are used (see compare_worker.py), so that DIR
may be an older checkout. NumPy, Numba and msgpack suffice, plus CuPy for a device.

*ratio* is base to this tree, by medians: above 1 this tree is faster. *pairs* has the least and the
largest ratio of a single pair of processes; if they lie on both sides of 1, no difference is shown.
If other work shares the machine, two more ratios say more: *least*, of the fastest rounds, and
*processor*, of the processor time of all threads (on a device, of the host's).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from .compare_worker import CASES
from .machine import ROOT, code
from .report import Report, Setting
from .stopwatch import Action, Figure, Kernel, WrongAnswer, measure, median, plain

PAIRS, QUICK_PAIRS = 3, 1
STARTS = 5  # of a process, for each pair
TREES = ("base", "this")

# `benchmarks` is this tree's in both processes; all else is the tree's that PYTHONPATH names.
_WORKER = """
import importlib.util, sys
folder, *arguments = sys.argv[1:]
spec = importlib.util.spec_from_file_location("benchmarks", folder + "/__init__.py")
sys.modules["benchmarks"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["benchmarks"])
from benchmarks.compare_worker import main
main(*arguments)
"""
# What is timed, measured from inside: starting Python itself is the same for both.
_STARTS = {
    "import": """
import time
start, before = time.perf_counter(), time.process_time()
import lpma, algorithms, ingest
print(time.perf_counter() - start, time.process_time() - before)
""",
    "first call": """
import sys, time
import lpma
start, before = time.perf_counter(), time.process_time()
graph = lpma.Graph(device=sys.argv[1])
graph.insert([1, 2, 3], [2, 3, 4])
graph.delete(3, 4)
assert len(graph.successors([1, 2]).ids) == 2
assert len(graph.snapshot().indices) == 2
print(time.perf_counter() - start, time.process_time() - before)
""",
}


def compare(setting: Setting) -> Report:
    if setting.base is None:
        raise SystemExit("compare: --base DIR is missing: the tree to compare this one with")
    trees = dict(zip(TREES, (setting.base.resolve(), ROOT), strict=True))
    for folder in trees.values():
        if not (folder / "lpma" / "__init__.py").is_file():
            raise SystemExit(f"compare: {folder} has no lpma/__init__.py")
    names = (*CASES, *_STARTS)
    if unknown := setting.only.difference(names):
        raise SystemExit(f"compare: no {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    report = Report("compare", f"milliseconds on {setting.device}, median; ratio: base to this")
    for name in filter(setting.wants, names):
        pairs = []
        for number in range(QUICK_PAIRS if setting.quick else PAIRS):
            # The tree that goes first alternates from pair to pair.
            order = TREES if number % 2 == 0 else TREES[::-1]
            pairs.append(_pair({tree: trees[tree] for tree in order}, name, setting))
        report.add(_row(name, pairs))
    for tree, folder in trees.items():
        report.notes.append(f"{tree}: {json.dumps(code(folder))}")
    return report


@dataclass
class _Taken:
    """What the rounds of one tree took, including the warm-up."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def note(self, both: Sequence[float]) -> tuple[float, None]:
        self.wall.append(both[0])
        self.processor.append(both[1])
        return both[0], None


def _pair(trees: Mapping[str, Path], name: str, setting: Setting) -> dict[str, _Taken]:
    """Both trees in turns, each in a process of its own."""
    taken = {tree: _Taken() for tree in trees}

    def reported(action: Action) -> tuple[float, Any]:
        return cast(tuple[float, Any], action())  # the processes have clocks of their own

    if name in _STARTS:
        rounds = 1 if setting.quick else STARTS
        starts = {
            tree: _start(folder, name, setting, taken[tree]) for tree, folder in trees.items()
        }
        measure(starts, lambda *_: None, rounds=rounds, clock=reported)
        return taken
    answers: dict[str, Any] = {}

    def verify(tree: str, _: int, __: Any) -> None:
        answers[tree] = workers[tree].ask("answer")
        if answers[tree] != next(iter(answers.values())):
            raise WrongAnswer(f"{name}: the trees give different answers: {answers}")

    with _workers(trees, name, setting) as workers:
        kernels = {tree: _rounds(worker, taken[tree]) for tree, worker in workers.items()}
        rounds = 2 if setting.quick else CASES[name].rounds
        measure(kernels, verify, rounds=rounds, clock=reported)
    return taken


def _rounds(worker: _Worker, taken: _Taken) -> Kernel:
    return Kernel(lambda _: worker.ask("prepare"), lambda _: taken.note(worker.ask("run")))


class _Worker:
    """A process that measures what it is told to, when it is told to."""

    def __init__(self, folder: Path, name: str, setting: Setting) -> None:
        size = "quick" if setting.quick else "full"
        self.folder = folder
        self.process = subprocess.Popen(
            [*_python(_WORKER), str(ROOT / "benchmarks"), name, setting.device, size],
            env=_environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, question: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(question, file=self.process.stdin, flush=True)
        reply = self.process.stdout.readline()
        if not reply:
            raise SystemExit(f"compare: the process of {self.folder} ended; see above")
        return json.loads(reply)


@contextmanager
def _workers(
    trees: Mapping[str, Path], name: str, setting: Setting
) -> Iterator[dict[str, _Worker]]:
    workers: dict[str, _Worker] = {}
    try:
        for tree, folder in trees.items():
            workers[tree] = _Worker(folder, name, setting)
            loaded = Path(workers[tree].ask("where"))
            if not loaded.is_relative_to(folder):
                raise SystemExit(f"compare: {folder} was to be measured, and {loaded} was loaded")
        yield workers
    finally:
        for worker in workers.values():
            worker.process.kill()
            worker.process.communicate()


def _start(folder: Path, name: str, setting: Setting, taken: _Taken) -> Kernel:
    command = [*_python(_STARTS[name]), setting.device]

    def run() -> tuple[float, None]:
        found = subprocess.run(
            command, env=_environment(folder), stdout=subprocess.PIPE, text=True, check=True
        )
        return taken.note([float(seconds) for seconds in found.stdout.split()[-2:]])

    return plain(run)


def _python(program: str) -> list[str]:
    return [sys.executable, "-P", "-c", program]  # -P: nothing from the folder it is started in


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(folder)}


def _row(name: str, pairs: list[dict[str, _Taken]]) -> dict[str, Any]:
    def all_of(tree: str, clock: str) -> Figure:
        """Milliseconds of every pair's rounds, except the warm-up."""
        return median(1e3 * seconds for pair in pairs for seconds in getattr(pair[tree], clock)[1:])

    base, this = (all_of(tree, "wall") for tree in TREES)
    ratios = [median(pair["base"].wall[1:]) / median(pair["this"].wall[1:]) for pair in pairs]
    return {
        "what": name, "base": base, "this": this, "ratio": base / this,
        "pairs": f"{min(ratios):.3g} – {max(ratios):.3g}",
        "least": min(base.samples) / min(this.samples),
        "processor": all_of("base", "processor") / all_of("this", "processor"),
        "rounds": len(base.samples),
    }  # fmt: skip
