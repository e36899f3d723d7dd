"""Insertions and deletions on the GPU, latency of one batch, beside the flat merge.

Ours with both settings of `global_merge`, and with keys only beside a flat merge of keys only.
Cells come in the order of their weight, so that a small budget still shows what matters. The second
report has mixed batches, as figure16 has them: 3 % of the rows are queries, and *to parts* is the
whole to its updates alone plus its queries alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ... import workloads_gpu
from ...papers.lpma.growth import REAL
from ...papers.lpma.opera import opera_row
from ...report import Report, Setting
from ...workloads_gpu import Stream
from .base import make
from .race import ROUNDS, Rounds, run_cell

SIZES = (10**4, 10**5, 10**6)
MAIN = ("lpma", "flat")
ALL = ("lpma", "lpma-never", "flat")
KEYS = ("lpma-keys", "flat-keys")
MIXED = 14  # mixed batches, of which two warm up
DRAWS = 125_000_000  # RMAT 20, edge factor 120: the paper's Graph500


@dataclass(frozen=True)
class Course:
    """One graph and what runs on it."""

    graph: Callable[[], Stream | None]
    stores: tuple[str, ...]
    sizes: tuple[int, ...] = SIZES


def gpu_updates(setting: Setting) -> list[Report]:
    full = Report("gpu-updates", "milliseconds a batch, median; pinned, until the device is idle")
    warm_up(setting)
    late = []
    for course in _courses(setting.quick):
        if setting.out_of_time():
            late.append("a graph")
            continue
        stream = course.graph()
        if stream is None:
            continue
        for size in course.sizes:
            for name in filter(setting.wants, course.stores):
                if setting.out_of_time():
                    late.append(f"{stream.name} {stream.loaded:,} {name} {size:,}")
                else:
                    _add(full, stream, name, size, setting.quick)
    if late:
        full.notes.append(f"out of time, left out: {'; '.join(late)}")
    full.notes.append(
        "period: batches that follow each other without waiting; CSR: ms for `edges` edges "
        "(flat: indptr and indices only, weights and times are arrays as they are)."
    )
    return [full, _mixed(setting)]


def _courses(quick: bool) -> Iterator[Course]:
    if quick:
        small = (10**3, 10**4)
        yield Course(lambda: workloads_gpu.rmat(14, 50_000, 90_000), (*ALL, *KEYS), small[:1])
        yield Course(lambda: workloads_gpu.uniform(14, 100_000, 900_000), (*ALL, *KEYS), small)
        return
    ten, room = 10**7, 18 * 10**6
    yield Course(lambda: workloads_gpu.rmat(20, ten, room), ALL)
    yield Course(lambda: workloads_gpu.rmat(20, 75 * 10**6, 0, draws=DRAWS), ALL)
    yield Course(lambda: workloads_gpu.uniform(20, ten, room), MAIN)
    yield Course(lambda: workloads_gpu.grid(2650, ten), MAIN)
    yield Course(lambda: workloads_gpu.rmat(20, 75 * 10**6, 0, draws=DRAWS), KEYS)
    yield Course(lambda: workloads_gpu.rmat(20, ten, room), KEYS)
    yield Course(lambda: workloads_gpu.rmat(20, ten, room), MAIN, (10**3,))
    for name in REAL:
        yield Course(lambda name=name: workloads_gpu.real(name), MAIN, (10**3, 10**4))  # type: ignore[misc]


def warm_up(setting: Setting) -> None:
    """Compile every kernel and fill the pools while no clock runs."""
    stream = workloads_gpu.uniform(14, 30_000, 60_000)
    for name in (*ALL, *KEYS):
        for size in (10, 3_000) if setting.wants(name) else ():
            run_cell(make(name), stream, size, Rounds(2, 2, following=2, pageable=1, warmup=1))


def _add(full: Report, stream: Stream, name: str, size: int, quick: bool) -> None:
    rounds = ROUNDS[size]
    if quick:
        rounds = replace(rounds, inserts=10, following=5, pageable=3, deletes=5)
    fitting = rounds.within(stream.streamed // size)
    if fitting is None:
        full.notes.append(f"{stream.name}: too small for batches of {size:,}")
        return
    row = {"graph": stream.name, "loaded": stream.loaded, "store": name, "batch": size}
    full.add(row | run_cell(make(name), stream, size, fitting).figures())


def _mixed(setting: Setting) -> Report:
    """Mixed batches into ours. They need no control: their parts are theirs."""
    report = Report("gpu-updates-mixed", "milliseconds a mixed batch, median, 3 % queries; pinned")
    sizes = (1_000,) if setting.quick else (10**4, 10**5)
    if setting.out_of_time() or not setting.wants("lpma"):
        return report
    scale, loaded = (14, 50_000) if setting.quick else (20, 10**7)
    stream = workloads_gpu.rmat(scale, loaded, MIXED * max(sizes))
    for size in sizes:
        report.add(opera_row(stream, size, MIXED, serial=0))
    return report
