"""Each kernel of the store is compiled for one signature, whatever callers bring.

A kernel that is compiled for a second one costs a second of a user's time in the middle of a
stream. So a process of its own drives every option and every form that arguments take, and lists
the signatures of all kernels afterwards.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import lpma
from lpma import Columns, Kind
from lpma.batch.columns import edge_rows

SEVERAL: dict[str, int] = {}  # kernels that need more than one signature, and how many
FEW, SMALL, LARGE = 3, 500, 40_000  # operations
VERTICES = 1 << 12


def drive(folder: Path) -> None:
    """Use the store in every way there is."""
    forms = (np.int32, np.int64, np.uint32, np.uint64, np.uint8, list, "read-only", "strided")
    for number, (directed, weight, times, strategy) in enumerate(
        product((True, False), ("float32", "float64", None), (True, False),
                ("hybrid", "bottom-up", "top-down"))
    ):  # fmt: skip
        graph = lpma.Graph(
            directed, predecessors=number % 2 == 0, weight_dtype=weight, times=times,
            strategy=strategy, segment_size=(2, 4, 32, 64, 1024)[number % 5], device="cpu",
            global_merge=("auto", "never")[number % 3 == 0],
        )  # fmt: skip
        rng = np.random.default_rng(number)
        for n in (0, FEW, SMALL, LARGE if number % 6 == 0 else SMALL, FEW):
            _update(graph, rng, n, forms[(number + n) % len(forms)])
            _read(graph, rng, n)
        _leave(graph, folder)


def _formed(values: Any, form: Any) -> Any:
    if form == "strided":
        return np.repeat(values, 2)[::2]
    if form == "read-only":
        values = values.astype(np.uint32)
        values.flags.writeable = False
        return values
    return values.tolist() if form is list else (values % 200).astype(form)


def _update(graph: Any, rng: Any, n: int, form: Any) -> None:
    src, dst = (_formed(column, form) for column in rng.integers(0, VERTICES, (2, n)))
    graph.insert(src, dst)
    graph.insert(src, dst, weight=0.5, time=7)
    graph.insert(5, dst if n else 6, weight=np.float32(2))
    graph.insert(1, 2)
    graph.insert(np.int16(1), np.uint64(n), 0.5, time=np.int32(3))
    graph.delete(1, 2, time=4)
    graph.edges(1, 2)
    graph.successors(np.uint8(1))
    graph.degree(1)
    for dtype in (np.float32, np.float64, np.int32):
        graph.insert(src, dst, _formed(np.ones(n), dtype), np.arange(n, dtype=np.int32))
    graph.delete(src[: n // 2], dst[: n // 2])
    graph.delete(np.uint32(5), np.bool_(n > 0).astype(np.uint8), time=np.int16(3))
    graph.add_vertices(src, time=1)
    graph.remove_vertices(src[: min(n, 5)])
    u, v = rng.integers(0, VERTICES, (2, n))
    few = min(n, SMALL)  # queries of many hops are slow
    kind = rng.integers(0, len(Kind), few).astype(np.uint8)
    kind[(kind == Kind.EXPIRE) & (not graph.has_times)] = Kind.DELETE
    if not graph.has_predecessors:
        kind[kind == Kind.PREDECESSORS] = Kind.SUCCESSORS
    steps = np.where(kind == Kind.HOPS, 1 + v[:few] % 2, v[:few])
    graph.apply(Columns.validated(kind, u[:few], steps, None, np.arange(few)))
    if graph.has_times:
        graph.expire(few // 2)
    updates = edge_rows(kind) | (kind == Kind.ADD_VERTEX)
    weights = rng.random(few)
    graph.apply(
        Columns.validated(kind[updates], u[:few][updates], v[:few][updates], weights[updates], 9)
    )
    most = rng.integers(0, 2, n).astype(np.uint8)
    graph.apply(Columns.validated(most, u, v, None, None))
    most[n // 2 : n // 2 + 3] = Kind.SUCCESSORS
    graph.apply(Columns.validated(most, u, v, None, None))


def _read(graph: Any, rng: Any, n: int) -> None:
    ids = rng.integers(0, VERTICES, min(n, SMALL)).astype(np.int32)
    graph.edges(ids, ids[::-1])
    graph.successors(ids)
    if graph.has_predecessors:
        graph.predecessors(ids)
    graph.hops(ids[:20], 2)
    graph.degree(5)
    graph.has_vertices(ids)
    snapshot = graph.snapshot()
    assert snapshot.num_vertices == graph.num_vertices
    graph.snapshot(compact=True)
    graph.changes(max(0, graph.version - 2))
    graph.touched(max(0, graph.version - 2))
    graph.check()


def _leave(graph: Any, folder: Path) -> None:
    graph.save(folder / "graph.lpma")
    again = lpma.Graph.load(folder / "graph.lpma", device="cpu")
    again.image()
    while again.num_edges:  # shrinks on the way
        indptr, indices = again.snapshot().indptr, again.snapshot().indices
        src = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        again.delete(src[: 1 + len(src) // 2], indices[: 1 + len(src) // 2])
    again.check()


def signatures() -> dict[str, list[list[str]]]:
    """Of all functions of the store that are compiled, what they are compiled for."""
    found = {}
    for name, module in sorted(sys.modules.items()):
        if name.split(".")[0] == "lpma":
            for value in vars(module).values():
                if hasattr(value, "overloads") and value.py_func.__module__ == name:
                    kernel = f"{name}.{value.py_func.__name__}"
                    found[kernel] = [[str(kind) for kind in kinds] for kinds in value.overloads]
    return found


def _difference(several: list[list[str]]) -> str:
    """The arguments in which signatures differ."""
    if len(set(map(len, several))) > 1:
        return f"{several}"
    columns = enumerate(zip(*several, strict=True))
    return "; ".join(
        f"argument {i}: {' or '.join(sorted(set(kinds)))}" for i, kinds in columns
        if len(set(kinds)) > 1
    )  # fmt: skip


def test_every_kernel_has_one_signature(tmp_path: Path) -> None:
    program = (
        "import json, sys, pathlib\n"
        "from tests.lpma.test_signatures import drive, signatures\n"
        "drive(pathlib.Path(sys.argv[1]))\n"
        "print(json.dumps(signatures()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
        env={**os.environ, "LPMA_COMPILE": "ahead"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["lpma.backend.numba.fused.apply"], "the store was not kept by kernels"
    wrong = [
        f"{kernel}: {_difference(kinds)}"
        for kernel, kinds in found.items()
        if len(kinds) > SEVERAL.get(kernel, 1)
    ]
    assert not wrong, "compiled more than once:\n" + "\n".join(wrong)
