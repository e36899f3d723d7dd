"""The cost model of a cluster (`cluster_model`) set beside what is measured.

    cluster-model      on the CPU, shards in threads
    gpu-cluster-model  on CUDA devices, shards dealt to them in turn

The constants are measured with one shard, but for an empty superstep, and for how core numbers are
refined, which take two. Then programs are predicted for two, three and four shards, and run: what
they exchange is counted by the workers. `of` is predicted to measured. Times are the least of
some, here and there, since other work on the machine only adds to them. Every run begins with parts
of which nothing was derived, and must find what one shard finds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import algorithms
from algorithms.sharded import LocalWorkers, Part, ShardedSnapshot
from lpma import Graph
from lpma.arrays import array_module, device_of, finish, to_host
from lpma.owners import owners_of

from .. import workloads
from ..keys import Array
from ..report import Report, Setting
from ..stopwatch import Figure, WrongAnswer
from . import cluster_counts as counts
from . import cluster_model as model
from . import cluster_plan
from .cluster_counts import Counts, Refining
from .cluster_model import Cost, Machine

SWEEPS = 20  # of PageRank
WIDER = 8  # times the rows, to tell what rows cost
TIMES = 5  # each run, after a first
SHARDS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Place:
    """Where shards lie: `devices` are numbers of CUDA devices; none: on the host."""

    devices: tuple[int, ...] = ()

    def name_of(self, shard: int) -> str:
        return f"cuda:{self.devices[shard % len(self.devices)]}" if self.devices else "cpu"

    @contextmanager
    def current(self, shard: int) -> Iterator[None]:
        here: Any = nullcontext()
        if self.devices:
            import cupy

            here = cupy.cuda.Device(self.devices[shard % len(self.devices)])
        with here:
            yield


@dataclass(frozen=True)
class Drawn:
    """A graph to be drawn wherever a shard lies."""

    name: str
    scale: int
    edges: int

    def ends(self, on_device: bool) -> tuple[Array, Array]:
        """Both directions of every edge, without loops."""
        if on_device:
            from ..gpu import streams

            keys = getattr(streams, self.name)(self.scale, 0, self.edges).keys
            src, dst = (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)
        else:
            src, dst = getattr(workloads, self.name)(self.scale, 0, self.edges).stream(
                0, self.edges
            )
        src, dst = src[src != dst], dst[src != dst]
        xp = array_module(src)
        return xp.concatenate((src, dst)), xp.concatenate((dst, src))

    def parts(self, place: Place, shards: int) -> list[Part]:
        return [self._part(place, shard, shards) for shard in range(shards)]

    def _part(self, place: Place, shard: int, shards: int) -> Part:
        with place.current(shard):
            src, dst = self.ends(bool(place.devices))
            own = owners_of(src, shards) == shard
            src, dst = src[own], dst[own]
            graph = Graph(device=place.name_of(shard))
            for start in range(0, len(src), 1 << 24):
                graph.insert(src[start : start + (1 << 24)], dst[start : start + (1 << 24)])
            return Part.of(graph.snapshot(), shard, shards, directed=False)


PLANNED = Drawn("rmat", 15, 50 << 15)  # the degrees of `cluster_plan`, assumption 15


@dataclass(frozen=True)
class Run:
    """What one program took at least, what the workers counted, what it found."""

    seconds: Figure
    counted: Counts
    found: Any


def cluster_model(setting: Setting) -> list[Report]:
    """On the CPU."""
    drawn = Drawn("rmat", 12, 20_000) if setting.quick else Drawn("rmat", 17, 2_000_000)
    return reports("cluster-model", setting, Place(), drawn)


def gpu_cluster_model(setting: Setting) -> list[Report]:
    """On all CUDA devices that there are."""
    import cupy

    drawn = Drawn("rmat", 14, 200_000) if setting.quick else Drawn("rmat", 22, 1 << 25)
    place = Place(tuple(range(int(cupy.cuda.runtime.getDeviceCount()))))
    return reports("gpu-cluster-model", setting, place, drawn)


def reports(name: str, setting: Setting, place: Place, drawn: Drawn) -> list[Report]:
    calibrated = Calibrated(place, drawn)
    constants = Report(name, f"constants, from one shard of {drawn.name} {drawn.scale}")
    for program, cost in calibrated.machine.costs.items():
        row = {"program": program, "ns an entry": cost.entry_s * 1e9, "ns a row": cost.row_s * 1e9}
        constants.add(row)
    constants.notes.append(calibrated.note())
    compared = Report(name, f"predicted and measured; {calibrated.graph.entries:,.0f} entries")
    for shards in SHARDS:
        parts = drawn.parts(place, shards) if shards > 1 else calibrated.parts
        for program in PROGRAMS:
            if setting.out_of_time():
                break
            run = calibrated.run(program, parts)
            calibrated.check(program, run)
            compared.add(_row(program, shards, calibrated.predicted(program, shards), run))
    compared.notes.append("With one shard all, and with two core numbers, are what was calibrated.")
    (small,) = PLANNED.parts(Place(), 1)
    return [constants, compared, cluster_plan.report(name, counts.profile_of(small))]


def _row(program: str, shards: int, told: model.Prediction, run: Run) -> dict[str, Any]:
    return {
        "program": program,
        "shards": shards,
        "supersteps": told.counts.supersteps,
        "counted": run.counted.supersteps,
        "MB": told.counts.sent / 1e6,
        "MB counted": run.counted.sent / 1e6,
        "ms": told.seconds * 1e3,
        "ms measured": run.seconds * 1e3,
        "of": told.seconds / float(run.seconds),
    }


class Calibrated:
    """The constants of a place, and what one shard finds there."""

    def __init__(self, place: Place, drawn: Drawn) -> None:
        self.parts = drawn.parts(place, 1)
        (part,) = self.parts
        self.source = int(to_host(part.indptr[1:] - part.indptr[:-1]).argmax())
        self.alone = {program: self.run(program, self.parts) for program in PROGRAMS}
        reached = int(self.alone["bfs"].found.max())
        self.graph = model.Graph(counts.profile_of(part), part.num_rows, reached)
        turn_s, superstep_s = self._supersteps(place)
        costs = {program: self._cost(program, turn_s) for program in PROGRAMS}
        flat = self._flat(place, drawn)
        self.machine = Machine(
            devices=max(1, len(place.devices)),
            superstep_s=superstep_s,
            turn_s=turn_s,
            value_s=_value_s(part),
            ship_s=2 * float(flat) / self.graph.entries,
            link_bytes_s=_link_bytes_s(place),
            costs=costs,
        )
        self.refining = self._refining(drawn.parts(place, 2))

    def run(self, program: str, parts: list[Part], rows: int = 0) -> Run:
        """A program on parts of which nothing was derived. rows: of the graph, if more."""
        seconds, found = [], None
        for _ in range(TIMES + 1):
            workers = LocalWorkers(parts)
            s = ShardedSnapshot.of(workers)
            s.num_rows = max(rows, s.num_rows)
            began = time.perf_counter()
            found = PROGRAMS[program](s, self.source)
            seconds.append(time.perf_counter() - began)
        return Run(_least(seconds[1:]), Counts(workers.steps, workers.bytes_sent), found)

    def predicted(self, program: str, shards: int) -> model.Prediction:
        return model.predicted(
            program, self.machine, self.graph, shards, rounds=SWEEPS, refining=self.refining
        )

    def check(self, program: str, run: Run) -> None:
        expected = self.alone[program].found
        if not np.allclose(run.found, expected, rtol=1e-6, atol=1e-12):
            raise WrongAnswer(f"{program} differs from one shard's")

    def note(self) -> str:
        of = self.machine
        return (
            f"{of.devices} at work; a superstep {of.superstep_s * 1e3:.3g} ms and "
            f"{of.turn_s * 1e3:.3g} a shard; a value {of.value_s * 1e9:.3g} ns; an entry shipped "
            f"{of.ship_s * 1e9:.3g} ns; between devices {of.link_bytes_s / 1e9:.3g} GB/s; core "
            f"numbers of two shards {self.refining.supersteps} supersteps, "
            f"{self.refining.passes:.3g} passes, {self.refining.sent:.3g} bytes a pair."
        )

    def _supersteps(self, place: Place) -> tuple[float, float]:
        """Seconds of an empty superstep: a shard's turn, and the rest, with two."""
        tiny = Drawn("rmat", 4, 20)
        rounds = {}
        for shards in (1, 2):
            run = self.run("pagerank", tiny.parts(place, shards))
            rounds[shards] = float(run.seconds) / run.counted.supersteps
        return rounds[1], max(0.0, rounds[2] - 2 * rounds[1])

    def _cost(self, program: str, turn_s: float) -> Cost:
        alone = self.alone[program]
        rows = self.graph.rows
        wide = self.run(program, self.parts, WIDER * int(rows))
        row_s = max(0.0, float(wide.seconds) - float(alone.seconds)) / ((WIDER - 1) * rows)
        left = float(alone.seconds) - rows * row_s - alone.counted.supersteps * turn_s
        return Cost(max(0.0, left) / self.graph.entries, row_s)

    def _flat(self, place: Place, drawn: Drawn) -> Figure:
        """Seconds of triangles where there are next to none: what their preparation costs."""
        flat = Drawn("uniform", drawn.scale, drawn.edges)
        return self.run("triangles", flat.parts(place, 1)).seconds

    def _refining(self, parts: list[Part]) -> Refining:
        run = self.run("cores", parts)
        shape = counts.expected(self.graph.profile, 2)
        once = Refining.of_two(run.counted, shape)
        tell = partial(model.predicted, "cores", self.machine, self.graph, 2, rounds=0)
        least = tell(refining=Refining(once.supersteps, once.sent, 0.0)).seconds
        pass_s = tell(refining=Refining(once.supersteps, once.sent, 1.0)).seconds - least
        passes = max(0.0, float(run.seconds) - least) / pass_s if pass_s else 0.0
        # `passes_of` has two shards grow once.
        return Refining(once.supersteps, once.sent, passes)


PROGRAMS: dict[str, Callable[[Any, int], Any]] = {
    "degrees": lambda s, _: s.degrees(),
    "bfs": algorithms.bfs,
    "components": lambda s, _: algorithms.connected_components(s),
    "pagerank": lambda s, _: algorithms.pagerank(s, tol=0.0, max_iter=SWEEPS),
    "cores": lambda s, _: algorithms.core_numbers(s),
    "triangles": lambda s, _: algorithms.triangle_count(s),
}


def _least(seconds: list[float]) -> Figure:
    return Figure(min(seconds), seconds)


def _value_s(part: Part) -> float:
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
        return _least([exchanged() for _ in range(TIMES)]) / n


def _link_bytes_s(place: Place) -> float:
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
    return there.nbytes / _least(seconds[1:])
