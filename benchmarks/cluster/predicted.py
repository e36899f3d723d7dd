"""The cost model of a cluster (`model`) set beside what is measured.

    cluster-model      on the CPU, shards in threads
    gpu-cluster-model  on CUDA devices, shards dealt to them in turn

The constants are measured with one shard, but for an empty superstep, and for how core numbers are
refined, which take two. Then programs are predicted for two, three and four shards, and run: what
they exchange is counted by the workers. `of` is predicted to measured. All take turns, and times
are the least of some, here and there, since other work on the machine only adds to them. Every run
begins with parts of which nothing was derived, and must find what one shard finds.

Of the stream that shards apply (updates a second, an epoch of which the rows are kept, a shard that
is killed) one shard without edges and one with them give the constants; one, two and four shards in
threads are measured. A kill comes after a checkpoint, so nothing is to be replayed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import algorithms
import ingest
from algorithms.sharded import LocalWorkers, Part, ShardedSnapshot
from algorithms.sharded.runtime.rows import joined, packed
from algorithms.sharded.runtime.state import ShardState
from algorithms.triangles.ranked import lister
from algorithms.views.simple import View, induced
from ingest.cluster.cluster import Cluster
from ingest.cluster.partitioned import create_sharded
from lpma.arrays import array_module, device_of, finish, to_host

from .. import device, workloads
from ..keys import Array
from ..report import Report, Setting
from ..stopwatch import Figure, Kernel, WrongAnswer, measure
from . import counts, model, plan
from .counts import Counts, Profile, Refining
from .drawn import Drawn, Place
from .model import Cost, Graph, Machine
from .shards import PATIENCE_S, parts_of, seconds_of_kill, wait_until_applied

SWEEPS = 20  # of PageRank
WIDER = 4  # times the rows, to tell what rows cost
TIMES = 5  # each run, after a first
SHARDS = (1, 2, 3, 4)
PLANNED = Drawn("rmat", 15, 50 << 15)  # the degrees of `plan`, assumption 15

Case = tuple[str, str]  # a program, and what it runs on


@dataclass(frozen=True)
class Run:
    """What one program took at least, and what the workers counted."""

    seconds: Figure
    counted: Counts


def cluster_model(setting: Setting) -> list[Report]:
    """On the CPU; and the stream that shards apply."""
    drawn = Drawn("rmat", 12, 20_000) if setting.quick else Drawn("rmat", 17, 2_000_000)
    return [*reports("cluster-model", setting, Place(), drawn), stream(setting)]


def gpu_cluster_model(setting: Setting) -> list[Report]:
    """On all CUDA devices that there are."""
    drawn = Drawn("rmat", 14, 200_000) if setting.quick else Drawn("rmat", 22, 1 << 25)
    place = Place(tuple(range(device.count())))
    return reports("gpu-cluster-model", setting, place, drawn)


def reports(name: str, setting: Setting, place: Place, drawn: Drawn) -> list[Report]:
    runs = Runs(place, drawn, setting.budget_s / 2)
    calibrated = Calibrated(runs, place)
    constants = Report(name, f"constants, from one shard of {drawn.name} {drawn.scale}")
    for program, cost in calibrated.machine.costs.items():
        row = {"program": program, "ns an entry": cost.entry_s * 1e9, "ns a row": cost.row_s * 1e9}
        constants.add(row)
    constants.notes.append(calibrated.note())
    compared = Report(name, f"predicted and measured; {runs.graph.entries:,.0f} entries")
    for shards in SHARDS:
        for program in PROGRAMS:
            told = calibrated.predicted(program, shards)
            compared.add(_row(program, shards, told, runs[program, str(shards)]))
    compared.notes.append("With one shard all, and with two core numbers, are what was calibrated.")
    (small,) = PLANNED.parts(place, 1)
    return [constants, compared, plan.report(name, counts.profile_of(small))]


def _row(program: str, shards: int, told: model.Prediction, run: Run) -> dict[str, Any]:
    counted, seconds = told.counts, run.seconds
    row: dict[str, Any] = {"program": program, "shards": shards}
    row |= {"supersteps": counted.supersteps, "counted": run.counted.supersteps}
    row |= {"MB": counted.sent / 1e6, "MB counted": run.counted.sent / 1e6}
    row |= {"ms": told.seconds * 1e3, "ms measured": seconds * 1e3}
    return row | {"of": told.seconds / float(seconds)}


class Runs:
    """Every case, measured in turns: each program on one shard to four; on one with more rows
    ("wide"); and PageRank of next to nothing ("tiny", and on two shards "tiny two"). All together
    take budget_s seconds, or one round more."""

    def __init__(self, place: Place, drawn: Drawn, budget_s: float) -> None:
        self._parts = {str(shards): drawn.parts(place, shards) for shards in SHARDS}
        (part,) = self._parts["wide"] = self._parts["1"]
        tiny = Drawn("rmat", 4, 20)
        self._parts |= {"tiny": tiny.parts(place, 1), "tiny two": tiny.parts(place, 2)}
        self._source = int(to_host(part.indptr[1:] - part.indptr[:-1]).argmax())
        self.graph = model.Graph(counts.profile_of(part), part.num_rows)
        self.part = part
        self._found: dict[str, Any] = {}
        self._workers: dict[Case, LocalWorkers] = {}
        self._runs = self._measured(budget_s)
        self.graph = model.Graph(self.graph.profile, part.num_rows, int(self._found["bfs"].max()))

    def __getitem__(self, case: Case) -> Run:
        return self._runs[case]

    def _measured(self, budget_s: float) -> dict[Case, Run]:
        on = [*map(str, SHARDS), "wide"]
        cases = [(program, parts) for program in PROGRAMS for parts in on]
        cases += [("pagerank", "tiny"), ("pagerank", "tiny two")]
        kernels = {"/".join(case): self._kernel(case) for case in cases}
        each_s = budget_s / len(cases)
        timings = measure(kernels, self._verify, rounds=TIMES, budget_s=each_s)
        runs = {}
        for case in cases:
            workers = self._workers[case]
            seconds = timings["/".join(case)].seconds
            runs[case] = Run(least(seconds), Counts(workers.steps, workers.bytes_sent))
        return runs

    def _kernel(self, case: Case) -> Kernel:
        program, parts = case

        def fresh(_: int) -> ShardedSnapshot:
            self._workers[case] = LocalWorkers(self._parts[parts])
            s = ShardedSnapshot.of(self._workers[case])
            if parts == "wide":
                s.num_rows *= WIDER
            return s

        return Kernel(fresh, lambda s: PROGRAMS[program](s, self._source))

    def _verify(self, name: str, _: int, found: Any) -> None:
        """One shard comes first, and is what the others must find."""
        program, parts = name.split("/")
        if parts == "1":
            self._found[program] = found
        elif parts.isdecimal() and not np.allclose(found, self._found[program], 1e-6, 1e-12):
            raise WrongAnswer(f"{program} on {parts} shards differs from one shard's")


class Calibrated:
    """The constants of a place."""

    def __init__(self, runs: Runs, place: Place) -> None:
        self._runs, self.graph = runs, runs.graph
        turn_s, superstep_s = self._supersteps()
        self.machine = Machine(
            devices=max(1, len(place.devices)),
            superstep_s=superstep_s,
            turn_s=turn_s,
            value_s=value_s(runs.part),
            deal_s=deal_s(runs.part),
            ship_s=ship_s(runs.part),
            link_bytes_s=link_bytes_s(place),
            costs={program: self._cost(program, turn_s) for program in PROGRAMS},
        )
        self.refining = self._refining()

    def predicted(self, program: str, shards: int) -> model.Prediction:
        return model.predicted(
            program, self.machine, self.graph, shards, rounds=SWEEPS, refining=self.refining
        )

    def note(self) -> str:
        of = self.machine
        return (
            f"{of.devices} at work; a superstep {of.superstep_s * 1e3:.3g} ms and "
            f"{of.turn_s * 1e3:.3g} a shard; a value {of.value_s * 1e9:.3g} ns, "
            f"dealt {of.deal_s * 1e9:.3g}; an entry shipped "
            f"{of.ship_s * 1e9:.3g} ns; between devices {of.link_bytes_s / 1e9:.3g} GB/s; core "
            f"numbers of two shards {self.refining.supersteps} supersteps, "
            f"{self.refining.passes:.3g} passes, {self.refining.sent:.3g} bytes a pair."
        )

    def _supersteps(self) -> tuple[float, float]:
        """Seconds of an empty superstep: a shard's turn, and the rest, with two."""
        one, two = self._runs["pagerank", "tiny"], self._runs["pagerank", "tiny two"]
        turn_s = float(one.seconds) / one.counted.supersteps
        return turn_s, max(0.0, float(two.seconds) / two.counted.supersteps - 2 * turn_s)

    def _cost(self, program: str, turn_s: float) -> Cost:
        alone, wide = self._runs[program, "1"], self._runs[program, "wide"]
        rows, seconds = self.graph.rows, float(alone.seconds)
        row_s = max(0.0, float(wide.seconds) - seconds) / ((WIDER - 1) * rows)
        left = seconds - rows * row_s - alone.counted.supersteps * turn_s
        return Cost(max(0.0, left) / self.graph.entries, row_s)

    def _refining(self) -> Refining:
        run = self._runs["cores", "2"]
        once = Refining.of_two(run.counted, counts.expected(self.graph.profile, 2))
        tell = partial(model.predicted, "cores", self.machine, self.graph, 2, rounds=0)
        rest_s = tell(refining=Refining(once.supersteps, once.sent, 0.0)).seconds
        pass_s = tell(refining=Refining(once.supersteps, once.sent, 1.0)).seconds - rest_s
        passes = max(0.0, float(run.seconds) - rest_s) / pass_s if pass_s else 0.0
        return Refining(once.supersteps, once.sent, passes)


PROGRAMS: dict[str, Callable[[Any, int], Any]] = {
    "degrees": lambda s, _: s.degrees(),
    "bfs": algorithms.bfs,
    "components": lambda s, _: algorithms.connected_components(s),
    "pagerank": lambda s, _: algorithms.pagerank(s, tol=0.0, max_iter=SWEEPS),
    "cores": lambda s, _: algorithms.core_numbers(s),
    "triangles": lambda s, _: algorithms.triangle_count(s),
}


EPOCHS, KILLS = 20, 5


@dataclass(frozen=True)
class Measured:
    """At least, of some: since other work on the machine only adds."""

    load_s: float  # from the first write until all is applied
    epoch_s: float
    recovery_s: float


def stream(setting: Setting) -> Report:
    operations = 20_000 if setting.quick else 2_000_000
    src, dst = workloads.rmat(18, 0, operations).stream(0, operations)
    made = Report("cluster-model", f"the stream, predicted and measured; {operations:,} edges")
    graph = Graph(Profile(np.ones(1), np.zeros(1), np.array([operations])), float(src.max()) + 1)
    empty, alone = _measured(src[:1], dst[:1], 1), _measured(src, dst, 1)
    machine = calibrated(graph, empty, alone)
    for shards in (1, 2, 4):
        found = alone if shards == 1 else _measured(src, dst, shards)
        told = {
            "M updates/s": model.updates_per_s(machine, shards) / 1e6,
            "epoch, ms": model.epoch_s(machine, graph, shards) * 1e3,
            "recovery, s": model.recovery_s(machine, graph, shards, 0.0),
        }
        seen = {
            "M updates/s": operations / found.load_s / 1e6,
            "epoch, ms": found.epoch_s * 1e3,
            "recovery, s": found.recovery_s,
        }
        for what, value in told.items():
            row = {"what": what, "shards": shards, "predicted": value, "measured": seen[what]}
            made.add(row | {"of": value / seen[what]})
    return made


def calibrated(graph: Graph, empty: Measured, alone: Measured) -> Machine:
    """The constants of the stream, from a shard without edges and one with all."""
    copied = model.SNAPSHOT_ENTRY * graph.entries + model.SNAPSHOT_ROW * graph.rows
    unlimited = float("inf")
    stands = Machine(1, 0.0, 0.0, 0.0, 0.0, 0.0, unlimited, {}, log_bytes_s=unlimited)
    return replace(
        stands,
        update_s=alone.load_s / graph.entries,
        marker_s=empty.epoch_s,
        copy_bytes_s=copied / max(alone.epoch_s - empty.epoch_s, 1e-6),
        notice_s=empty.recovery_s,
        load_entry_s=max(0.0, alone.recovery_s - empty.recovery_s) / graph.entries,
    )


def _measured(src: Array, dst: Array, shards: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        path, state = str(Path(folder) / "log"), str(Path(folder) / "state")
        with ingest.SqliteLog(path) as log:
            create_sharded(log, "updates", shards)
            with Cluster(path, shards, checkpoint=state) as cluster:
                began = time.perf_counter()
                log.produce_parts(parts_of(src, dst, shards))
                wait_until_applied(cluster, len(src), 0.005)
                load_s = time.perf_counter() - began
            with Cluster(path, shards, checkpoint=state) as cluster:  # from the last checkpoints
                epoch_s = min(_seconds_of_epoch(cluster) for _ in range(EPOCHS))
                recovery_s = min(seconds_of_kill(cluster)[0] for _ in range(KILLS))
    return Measured(load_s, epoch_s, recovery_s)


def _seconds_of_epoch(cluster: Cluster) -> float:
    began = time.perf_counter()
    cluster.snapshot(PATIENCE_S)
    return time.perf_counter() - began


TIMES = 5  # each, after a first


def least(seconds: list[float]) -> Figure:
    return Figure(min(seconds), seconds)


def value_s(part: Part) -> float:
    """Seconds to gather a value from a random place and to put it in another."""
    with device_of(part.indptr):
        xp = array_module(part.indptr)
        n = max(part.num_rows, 1)
        rows = xp.asarray(np.random.default_rng(1).permutation(n).astype(np.uint32))
        values = xp.zeros(n)

        def exchanged() -> float:
            began = time.perf_counter()
            message = values[rows]
            values[rows] = message
            finish(values)
            return time.perf_counter() - began

        exchanged()
        return least([exchanged() for _ in range(TIMES)]) / n


def deal_s(part: Part) -> float:
    """Seconds to deal a row to one of two owners, as `ShardState.by_owner` does."""
    with device_of(part.indptr):
        xp = array_module(part.indptr)
        n = max(part.num_rows, 1)
        rows = xp.arange(n, dtype=np.uint32)
        held = ShardState(replace(part, shard=0, shards=2))
        finish(held.owner)

        def dealt() -> float:
            began = time.perf_counter()
            finish(held.by_owner(rows)[0])
            return time.perf_counter() - began

        dealt()
        return least([dealt() for _ in range(TIMES)]) / n


def ship_s(part: Part) -> float:
    """Seconds to pack an entry of a row, to put it together with others, to keep it, and to rank
    it."""
    with device_of(part.indptr):
        xp = array_module(part.indptr)
        rows = xp.flatnonzero(part.indptr[1:] > part.indptr[:-1]).astype(np.uint32)
        everything = xp.ones(part.num_rows, np.bool_)

        def shipped() -> float:
            began = time.perf_counter()
            message = (rows, *packed(part.indptr, rows, [part.indices]))
            kept = induced(View(*joined(part.num_rows, rows, [message], 1)), everything)
            finish(kept.indices)
            return time.perf_counter() - began

        def ranked() -> float:
            began = time.perf_counter()
            finish(lister(view).rank(view).indices)
            return time.perf_counter() - began

        view = View(part.indptr, part.indices)
        seconds = [(shipped(), 2 * ranked()) for _ in range(TIMES + 1)]  # half of them is ranked
        least = [min(times) for times in zip(*seconds[1:], strict=True)]
        return sum(least) / max(len(part.indices), 1)


def link_bytes_s(place: Place) -> float:
    """Of a copy from one device to another; without limit where messages go by reference."""
    if len(place.devices) < 2:
        return float("inf")
    import cupy

    with cupy.cuda.Device(place.devices[0]):
        there = cupy.zeros(1 << 26, np.uint8)
    with cupy.cuda.Device(place.devices[1]):
        seconds = []
        for _ in range(TIMES + 1):
            cupy.cuda.runtime.deviceSynchronize()
            began = time.perf_counter()
            there.copy()
            cupy.cuda.runtime.deviceSynchronize()
            seconds.append(time.perf_counter() - began)
    return there.nbytes / least(seconds[1:])
