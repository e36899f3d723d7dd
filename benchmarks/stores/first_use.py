"""What a newcomer waits for: the first use with nothing compiled, and with everything.

Each sample is a process of its own. With nothing compiled, the cache that it is given is empty: on
the CPU ours (lpma/cpu/cache.py), on a GPU CuPy's. What is timed on the CPU is the README's first
example, the longest call in a stream of batches of all sizes that goes on until the kernels have
taken over, and a whole `lpma demo`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ..report import Report, Setting
from ..stopwatch import median

REPEATS = 5
COLD_REPEATS = 3

# Prints the seconds from the process's first line to the end of the example.
EXAMPLE = """
import time
began = time.perf_counter()
import lpma
imported = time.perf_counter() - began
g = lpma.Graph(device="cpu")
g.insert([0, 0, 1], [1, 2, 2])
g.delete(0, 2)
g.successors([0, 1])
b = lpma.Batch()
b.insert(2, 3)
q = b.hops(0, 3)
b.remove_vertex(2)
assert list(g.apply(b)[q].ids) == [1, 2, 3]
s = g.snapshot()
s.to_scipy()
g.save(PATH)
print(imported, time.perf_counter() - began)
"""

# The example again, and then batches of all sizes and kinds, until the kernels have been there for
# some seconds. Prints the longest call's seconds, its size, and when the kernels took over.
STREAM = (
    EXAMPLE
    + """
import numpy as np
rng = np.random.default_rng(0)
kinds = [lpma.Kind.INSERT] * 6 + [lpma.Kind.DELETE] * 2 + [lpma.Kind.EDGE, lpma.Kind.SUCCESSORS]
longest, size, over, ready = 0.0, 0, 0.0, None
while ready is None or time.perf_counter() - began < ready + 5:
    n = int(10 ** rng.uniform(0, 5.5))
    u, v = rng.integers(0, 1 << 16, (2, n))
    kind = rng.choice(kinds, n).astype(np.uint8) if rng.random() < 0.5 else 0
    batch = lpma.Batch.from_columns(kind, u, v, np.ones(n), np.arange(n))
    for call in (lambda: g.apply(batch), lambda: g.edges(u, v), g.snapshot):
        before = time.perf_counter()
        call()
        spent = time.perf_counter() - before
        if spent > longest:
            longest, size = spent, n
    if ready is None and not g._stores.is_provisional:
        ready = time.perf_counter() - began
print(longest, size, ready)
"""
)

ON_GPU = """
import time
import numpy as np, cupy, lpma, algorithms
cupy.cuda.runtime.free(0)
rng = np.random.default_rng(1)
began = time.perf_counter()
g = lpma.Graph(device="cuda")
g.insert(*rng.integers(0, 200, (2, 1000)))
g.successors([0, 1, 2])
b = lpma.Batch()
b.insert(2, 3)
q = b.hops(0, 2)
g.apply(b)[q]
g.snapshot()
cupy.cuda.runtime.deviceSynchronize()
stored = time.perf_counter() - began
h = lpma.Graph(device="cuda", directed=False)
h.insert(*(rng.integers(0, 300, (2, 30000)) + [[0], [300]]))
s = h.snapshot()
cupy.cuda.runtime.deviceSynchronize()
began = time.perf_counter()
ALGORITHM
cupy.cuda.runtime.deviceSynchronize()
print(stored, time.perf_counter() - began)
"""
ALGORITHMS = {
    "core numbers": "algorithms.core_numbers(s)",
    "PageRank": "algorithms.pagerank(s)",
    "triangles": "algorithms.triangle_count(s)",
    "trusses": "algorithms.truss_numbers(s)",
    "structural diversity": "algorithms.top_diversity(s, 'truss', 4, 10)",
    "bicliques": "algorithms.count_bicliques(s, 3, 3)",
    "components": "algorithms.connected_components(s)",
}


def first_use(setting: Setting) -> Report:
    report = Report("first-use", "seconds, each in a new process")
    _run(EXAMPLE, {"LPMA_COMPILE": "ahead"})  # fills the cache, if it is not full yet
    warm = [_run(EXAMPLE) for _ in range(1 if setting.quick else REPEATS)]
    report.add({"what": "import lpma", "seconds": median(s[0] for s in warm)})
    seconds = median(s[1] for s in warm)
    report.add({"what": "README's first example, all compiled", "seconds": seconds})
    cold = [_run_cold(EXAMPLE) for _ in range(1 if setting.quick else COLD_REPEATS)]
    report.add({"what": "the same, nothing compiled", "seconds": median(s[1] for s in cold)})
    if not setting.quick:
        longest, size, ready = _run_cold(STREAM)[2:]
        what = f"longest call in a stream after it ({size:.0f} rows)"
        report.add({"what": what, "seconds": longest})
        report.add({"what": "until the kernels have taken over", "seconds": ready})
        report.add({"what": "lpma compile, nothing compiled", "seconds": _command("compile")})
        report.add({"what": "lpma demo, nothing compiled", "seconds": _command("demo")})
    return report


def gpu_first_use(setting: Setting) -> Report:
    report = Report("gpu-first-use", "seconds on one GPU, each in a new process")
    for what, call in list(ALGORITHMS.items())[: 2 if setting.quick else None]:
        script = ON_GPU.replace("ALGORITHM", call)
        with tempfile.TemporaryDirectory() as empty:
            cold = _run(script, {"CUPY_CACHE_DIR": empty})
            warm = _run(script, {"CUPY_CACHE_DIR": empty})
        report.add({
            "first algorithm": what, "store": cold[0], "algorithm": cold[1],
            "store, cached": warm[0], "algorithm, cached": warm[1],
        })  # fmt: skip
    report.notes.append("store: insert, successors, a mixed batch, a snapshot; after the import.")
    return report


def _run_cold(script: str) -> list[float]:
    with tempfile.TemporaryDirectory() as empty:
        return _run(script, {"NUMBA_CACHE_DIR": empty})


def _run(script: str, environment: dict[str, str] | None = None) -> list[float]:
    """The numbers that a script prints."""
    with tempfile.TemporaryDirectory() as folder:
        script = script.replace("PATH", repr(str(Path(folder) / "g.lpma")))
        output = subprocess.run(
            [sys.executable, "-c", script], env=_environment(environment or {}),
            stdout=subprocess.PIPE, text=True, check=True,
        ).stdout  # fmt: skip
    return [float(word) for word in output.split()]


def _command(name: str) -> float:
    """Seconds that a whole command takes, with an empty cache."""
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as here:
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", "from ingest.cli import main; main()", name], cwd=here,
            env=_environment({"NUMBA_CACHE_DIR": empty}), stdout=subprocess.DEVNULL, check=True,
        )  # fmt: skip
        return time.perf_counter() - began


def _environment(given: dict[str, str]) -> dict[str, str]:
    paths = os.pathsep.join(os.path.abspath(path) for path in sys.path if path)
    return {**os.environ, "PYTHONPATH": paths, **given}
