"""Everything that a GPU's first minutes need, compiled beforehand by other processes.

CuPy makes a kernel for every operation on arrays and every choice of their types when it is first
asked for: a tenth of a second each, two dozen for a first batch, as many again for an algorithm.
In threads of one process their compilation takes turns, since the compiler's front end has a lock.
So `lpma.compile` starts a few processes, which share the work: they make the calls on arrays of a
few entries and load the algorithms' files, and CuPy keeps what it compiles on disk. The store's own
files, which the compiler mostly optimizes, are compiled by threads of its own process meanwhile.

When all is done a stamp is left beside CuPy's kernels, named after all that they depend on. A call
that is missing, or that nothing needs any more, costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from ....cpu.compiling import CompileError
from ....cuda import modules
from ....cuda.archive import cache_path
from ....cuda.calls import HALF, N, cast, masked, put_masked, search, take, zeros
from ....cuda.sources import ROOT, Options, given, instances
from ....host import processors
from ..upload import staging
from .options import prebuilt_kernels

Call = Callable[[], object]

MOST = 8  # processes
BYTES = 1 << 30  # of the device's free memory for each: its context takes half of this
LISTS = ("lpma.backend.cuda.launch.warm_up", "algorithms.views.warm_cuda")  # modules with calls()
CALLS = "lpma.cuda.calls"  # what they are written in

I64, U32, U64 = np.int64, np.uint32, np.uint64


def compile_all(number: int, progress: Callable[[float], None] | None = None) -> None:
    """What `lpma.compile` does for device `number`: load the prebuilt kernels there, by all
    processors, and wait for them: they are in the archive, or CuPy keeps them on disk from now on.
    And have what stages large batches ready. progress: called with the share that is done. Raises
    CompileError."""
    wanted = [
        (file, options, instance)
        for file, options in prebuilt_kernels()
        for instance in ("", *instances(file))
    ]

    def load(module: tuple[str, Options, str]) -> None:
        with cupy.cuda.Device(number):
            modules.load(*module)

    with cupy.cuda.Device(number):
        stamp = _stamp()
        workers = [] if stamp.exists() else _start_workers(number)
    try:
        with ThreadPoolExecutor(processors()) as pool:
            for done, _ in enumerate(pool.map(load, wanted), 1):
                if progress is not None:
                    progress(done / len(wanted))
        staging.compiled.get_ready()
        failed = [worker for worker in workers if worker.wait()]
    except modules.FAILURES as error:
        raise CompileError(f"a kernel for the GPU cannot be compiled or loaded: {error}") from error
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    if workers and not failed:
        with suppress(OSError):
            stamp.touch()


def _start_workers(number: int) -> list[subprocess.Popen[bytes]]:
    """Processes that make all calls for a device, the current one; none where CuPy does not keep
    what it compiles."""
    if os.environ.get("CUPY_CACHE_IN_MEMORY", "0") not in ("", "0"):
        return []
    free, _ = cupy.cuda.runtime.memGetInfo()
    count = min(MOST, processors() // 2, free // BYTES)
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    try:
        return [
            subprocess.Popen(
                [sys.executable, "-P", "-m", LISTS[0], str(number), str(index), str(count)],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": paths}, start_new_session=True,
            )
            for index in range(count)
        ]  # fmt: skip
    except OSError:
        return []  # those that began end, since nobody holds their pipes


def _stamp() -> Path:
    """A file that is there once everything was compiled for devices like the current one."""
    lists = [
        Path(str(spec.origin)).read_text() for name in (*LISTS, CALLS) if (spec := find_spec(name))
    ]
    files = [given(file, options)[0] for file, options in prebuilt_kernels()]
    device = cupy.cuda.Device().compute_capability
    versions = [cupy.__version__, str(cupy.cuda.nvrtc.getVersion()), device]
    digest = hashlib.sha256("\0".join([*versions, *lists, *files]).encode()).hexdigest()[:16]
    return cache_path() / f"lpma-{digest}"


def main() -> None:
    """One of `count` workers on a device: every count-th of the calls, beginning with `index`. It
    ends with the process that started it, whose pipe is then closed."""
    device, index, count = map(int, sys.argv[1:4])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with cupy.cuda.Device(device):
        for call in list(everything())[index::count]:
            with suppress(*modules.FAILURES):
                call()
        cupy.cuda.get_current_stream().synchronize()


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def everything() -> Iterator[Call]:
    """What to call, in about the order in which programs come to need it."""
    for name in LISTS:
        if find_spec(name):
            yield from importlib.import_module(name).calls()
    for file, options in prebuilt_kernels():
        if file.startswith("algorithms/"):
            for instance in instances(file) or [""]:
                yield partial(modules.load, file, options, instance)


def calls() -> Iterator[Call]:
    """The operations on CuPy's arrays in a store's batches, queries and snapshots."""
    dtype: Any
    for dtype in (U64, I64):
        yield partial(cupy.arange, N, dtype=dtype)
    yield lambda: zeros(U64) << HALF
    yield lambda: zeros(U64) | zeros(U32)
    yield lambda: zeros(U64) >> HALF
    yield lambda: zeros(U64) & U64(1)
    for before, after in ((U64, I64), (U64, U32), (I64, U64)):
        yield partial(cast, before, after)
    for dtype in (I64, U64):
        yield partial(masked, dtype)
        yield partial(take, dtype, I64)
        yield partial(search, dtype)
        yield partial(cast, dtype, dtype)
    yield lambda: zeros(I64) > 0
    yield lambda: zeros(I64) == 0
    yield lambda: zeros(U64)[1:] != zeros(U64)[:-1]
    yield partial(cupy.ones, N, np.bool_)
    yield partial(cast, np.bool_, np.bool_)
    yield partial(put_masked, I64, 1)


if __name__ == "__main__":
    main()
