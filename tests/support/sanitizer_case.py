"""Every kernel of the store once or more, on small inputs: what compute-sanitizer watches.

    compute-sanitizer --tool memcheck --error-exitcode 9 python tests/support/sanitizer_case.py
    compute-sanitizer --tool racecheck --error-exitcode 9 python tests/support/sanitizer_case.py

A number as argument picks one of the configurations, and compares the devices less often: under
racecheck every launch takes long. The three can be run beside each other.
Exit status 1 where the CPU backend's results differ or a kernel of the sources was not launched,
9 where the sanitizer found something. Without the sanitizer it is a quick look at a new machine.
CuPy's memory pool is left out, so that every array has bounds of its own to be watched.
"""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import lpma
from lpma import Batch, Columns, Kind
from lpma.arrays import to_host
from lpma.backend.overlapping import ONE_LAUNCH_ROWS
from lpma.backend.values import BOTH, FORWARD
from lpma.batch.columns import QUERIES
from tests.support.parts import levels_in_parts

Array = npt.NDArray[Any]

SPAN = 400
FAR = 300_000  # vertices without edges before it: the export fills gaps in pieces
CONFIGS: list[dict[str, Any]] = [
    {"strategy": "bottom-up", "global_merge": "never"},
    {"strategy": "top-down", "predecessors": True, "segment_size": 16},
    {
        "strategy": "hybrid",
        "directed": False,
        "weight_dtype": None,
        "times": False,
        "segment_size": 4,
    },
]
LAUNCHED: set[str] = set()


def record_launches() -> None:
    """Note every kernel that is launched from now on."""
    from lpma.cuda import launch

    start = launch.start

    def recorded(name: str, *rest: Any) -> None:
        LAUNCHED.add(name)
        start(name, *rest)

    vars(launch)["start"] = recorded


def kernels_in_sources() -> set[str]:
    folder = Path(lpma.__file__).parent / "backend" / "cuda"
    text = "\n".join(path.read_text() for path in sorted(folder.glob("*.cu")))
    text = re.sub(r"__(launch_bounds|block_size)__\([^)]*\)", "", text)
    return set(re.findall(r"__global__\s+void\s+(\w+)\s*\(", text))


def same(there: Any, here: Any) -> bool:
    """Equal arrays, through dataclasses."""
    if is_dataclass(here):
        names = [field.name for field in fields(here) if field.name != "views"]
        return all(same(getattr(there, name), getattr(here, name)) for name in names)
    there = to_host(there)
    return bool(np.array_equal(there, here)) if isinstance(here, np.ndarray) else there == here


def agree(there: lpma.Graph, here: lpma.Graph, step: str) -> None:
    there.check()
    for compact in (False, True):
        if not same(there.snapshot(compact=compact), here.snapshot(compact=compact)):
            raise SystemExit(f"{there.strategy}: the devices differ after {step}")


def rows(rng: np.random.Generator, n: int) -> Columns:
    """Appends and deletions; times too."""
    kind = (rng.random(n) < 0.2).astype(np.uint8)
    src, dst = rng.integers(0, SPAN, (2, n))
    return Batch.from_columns(kind, src, dst, rng.integers(-4, 20, n) / 4, np.arange(n))


def updates(rng: np.random.Generator) -> list[tuple[str, Columns]]:
    """Batches that make stores grow, merge leaves, windows of a warp, a block and the grid, and
    shrink again."""
    number = np.arange(6000)
    near = Batch.from_columns(0, 7 + number // 2000, number % 2000, None, number)
    flood = rows(rng, 4000)
    flood.src[500:], flood.dst[500:] = 5, 6
    gone = rows(rng, 30_000)
    vertices = np.array([3, 50, FAR, SPAN + 1])
    return [
        ("a first batch", rows(rng, 3000)),
        ("a small batch", rows(rng, 40)),
        ("neighbouring keys", near),
        ("one key", flood),
        ("a large batch", rows(rng, 50_000)),
        ("one of several launches", rows(rng, ONE_LAUNCH_ROWS + 1)),
        ("vertices", Columns.edges(Kind.ADD_VERTEX, vertices, None, None, 4)),
        ("a removal", Columns.edges(Kind.REMOVE_VERTEX, [3, 9], None, None, 5)),
        ("deletions", Columns.edges(Kind.DELETE, gone.src, gone.dst, None, 6)),
        ("nothing", rows(rng, 0)),
    ]


def mixed(rng: np.random.Generator, n: int, predecessors: bool, stays: bool = False) -> Columns:
    """stays: nothing in it keeps a device from answering while the batch lies beside the store."""
    queries = list(QUERIES)
    if not predecessors:
        queries.remove(Kind.PREDECESSORS)
    kinds = [Kind.INSERT] * 20 + [Kind.SET] * 4 + [Kind.DELETE] * 4 + [Kind.ADD_VERTEX] + queries
    kind = rng.choice(kinds, n).astype(np.uint8)
    if stays:
        kind[kind == Kind.VERTEX] = Kind.EDGE
    else:
        kind[n // 2] = Kind.REMOVE_VERTEX
    src, dst = rng.integers(0, 60, (2, n))
    src[: n // 4], dst[: n // 4] = 11, 12  # many operations on one key
    dst[kind == Kind.HOPS] = 2
    return Batch.from_columns(kind, src, dst, rng.integers(-4, 20, n) / 4, np.arange(n))


def query(there: lpma.Graph, here: lpma.Graph, rng: np.random.Generator) -> None:
    u, v = rng.integers(0, SPAN + 50, (2, 300))
    asked: list[tuple[str, tuple[Any, ...]]] = [
        ("edges", (u, v)), ("successors", (u,)), ("degree", (u,)), ("has_vertices", (u,)),
        ("hops", (u[:20], 2)),
    ]  # fmt: skip
    if here.has_predecessors:
        asked.append(("predecessors", (u,)))
    for name, arguments in asked:
        if not same(getattr(there, name)(*arguments), getattr(here, name)(*arguments)):
            raise SystemExit(f"{there.strategy}: the devices differ in {name}")


def one_by_one(there: lpma.Graph, here: lpma.Graph) -> None:
    """Operations on single edges."""
    for graph in (there, here):
        graph.insert(1, 2, 0.5, time=7)
        graph.delete(4, 5, time=7)
    for name, arguments in (("edge", (1, 2)), ("neighbors", (1,)), ("degree", (1,))):
        if not same(getattr(there, name)(*arguments), getattr(here, name)(*arguments)):
            raise SystemExit(f"{there.strategy}: the devices differ in {name} of one")
    agree(there, here, "single operations")


def let_expire(there: lpma.Graph, here: lpma.Graph, cupy: Any) -> None:
    """Nearly all edges at once; then some, of a front that batches add to."""
    number = np.arange(300)
    for before in (280, 40, 281):
        for graph in (there, here):
            place = cupy.asarray if graph is there else np.asarray
            graph.insert(place(number), place(number + before), 1.0, place(number))
            graph.expire(before)
        agree(there, here, f"what is older than {before} expired")


def grow_by_parts(cupy: Any) -> None:
    """A store whose levels come in parts, and whose windows are spread by the batches after."""
    rng = np.random.default_rng(2)
    with levels_in_parts():
        there, here = (lpma.Graph(device=device, segment_size=4) for device in ("cuda", "cpu"))
        for _ in range(40):
            columns = rows(rng, 150)
            there.apply(columns)
            here.apply(columns)
    if not same(there.snapshot(), here.snapshot()):
        raise SystemExit("the devices differ where levels come in parts")
    there.check()


def give_up(g: lpma.Graph) -> None:
    """Prepare a batch, and roll it back."""
    store = g._stores.out
    columns = Columns.edges(Kind.INSERT, np.arange(50), np.arange(50), None, 1)

    def prepare() -> None:
        staged = store.backend.stage(columns, np.array([1]), g.weight_dtype)
        direction = FORWARD if g.directed else BOTH
        rows = store.backend.key_rows(staged, columns, direction)
        store.backend.rollback(store.prepare(staged, rows).located)
        store.end_batch(staged)

    g._lock.write(prepare)
    g.check()


def refuse(g: lpma.Graph, cupy: Any) -> None:
    """Bad rows on the device."""
    for src, weight in ((2**32 - 1, 1.0), (1, np.nan)):
        try:
            g.insert(cupy.asarray([4, src]), cupy.asarray([5, 6]), cupy.asarray([1.0, weight]))
        except lpma.BatchError:
            continue
        raise SystemExit(f"a batch with {src}, {weight} was taken")


def run(config: dict[str, Any], cupy: Any, often: bool) -> None:
    rng = np.random.default_rng(1)
    there, here = (lpma.Graph(device=device, **config) for device in ("cuda", "cpu"))
    for step, columns in updates(rng):
        if columns.edges_only and columns.weight is not None:
            src, dst = cupy.asarray(columns.src), cupy.asarray(columns.dst)
            there.apply(Batch.from_columns(columns.kind, src, dst, columns.weight, columns.time))
        else:
            there.apply(columns)
        here.apply(columns)
        if often:
            agree(there, here, step)
            query(there, here, rng)
    query(there, here, rng)
    one_by_one(there, here)
    for n, stays in ((400, False), (3000, False), (3000, True)):
        columns = mixed(rng, n, here.has_predecessors, stays)
        got, expected = there.apply(columns).on_host(), here.apply(columns)
        if not all(same(got[i], expected[i]) for i in range(columns.num_queries)):
            raise SystemExit(f"{there.strategy}: the devices differ in a mixed batch's answers")
        agree(there, here, "a mixed batch")
    give_up(there)
    refuse(there, cupy)
    agree(there, here, "refusals")
    with tempfile.TemporaryDirectory() as folder:
        there.save(Path(folder) / "graph")
        agree(lpma.Graph.load(Path(folder) / "graph", device="cuda"), here, "loading")
    whole = here.snapshot(compact=True)
    assert whole.ids is not None
    src = whole.ids[np.repeat(np.arange(whole.num_rows), np.diff(whole.indptr))]
    for graph in (there, here):
        graph.delete(src, whole.ids[whole.indices], time=9)
    agree(there, here, "deleting all")
    if here.has_times:
        let_expire(there, here, cupy)
    print(f"{config}: {there.version} batches agree")


def main() -> int:
    import cupy

    cupy.cuda.set_allocator(None)
    record_launches()
    chosen = CONFIGS if len(sys.argv) == 1 else [CONFIGS[int(sys.argv[1])]]
    for config in chosen:
        run(config, cupy, chosen is CONFIGS)
    if chosen is CONFIGS:
        grow_by_parts(cupy)
    expected = kernels_in_sources()
    missing = sorted(expected - LAUNCHED) if chosen is CONFIGS else []
    print(f"{len(LAUNCHED)} kernels launched; not launched: {', '.join(missing) or 'none'}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
