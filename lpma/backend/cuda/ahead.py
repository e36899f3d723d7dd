"""Compiling the kernels for a device before they are needed: what `lpma.compile` does for it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import cupy

from ...cpu.compiling import CompileError
from ...cuda import modules
from ...cuda.sources import Options, instances
from ...host import processors
from . import staging, warm
from .usual import usual


def compile_all(number: int, progress: Callable[[float], None] | None = None) -> None:
    """Load the usual kernels on device `number`, by all processors, and wait for them: they are in
    the archive, or CuPy keeps them on disk from now on. And have what stages large batches ready.
    progress: called with the share that is done. Raises CompileError."""
    wanted = [
        (file, options, instance)
        for file, options in usual()
        for instance in ("", *instances(file))
    ]

    def load(module: tuple[str, Options, str]) -> None:
        with cupy.cuda.Device(number):
            modules.load(*module)

    with cupy.cuda.Device(number):
        others = warm.begin()
    try:
        with ThreadPoolExecutor(processors()) as pool:
            for done, _ in enumerate(pool.map(load, wanted), 1):
                if progress is not None:
                    progress(done / len(wanted))
    except modules.FAILURES as error:
        raise CompileError(f"a kernel for the GPU cannot be compiled or loaded: {error}") from error
    staging.compiled.get_ready()
    if others is not None:
        others.join()
