"""Compiling ahead of use: `lpma.compile`."""

from __future__ import annotations

from .arguments.scalars import function
from .backend import compile_for, is_cuda
from .cpu import cache, compiling, ready


def compile(device: str = "cpu", progress: compiling.Progress | None = None) -> None:
    """Compile everything that is otherwise compiled at first use, on all cores, and wait for it: in
    an image that is built, in CI, at the top of a notebook. What is compiled is kept (`lpma doctor`
    says where), so that a second call takes milliseconds.

    device    "cpu", or "cuda", "cuda:N": the kernels of that GPU
    progress  called with the share that is done, from 0.0 to 1.0

    Raises DeviceError, and CompileError where something could not be compiled.

    >>> lpma.compile()
    """
    on_gpu = is_cuda(device)
    progress = function(progress, "progress", "the share that is done")
    if cache.is_temporary(cache.directory()):
        raise compiling.CompileError(
            "compiled kernels cannot be kept: set LPMA_CACHE to a directory that can be written"
        )
    compiling.compile_all(progress=_half(progress, 0.0) if on_gpu else progress)
    ready.note_compiled()
    if on_gpu:
        compile_for(device, _half(progress, 0.5))


def _half(progress: compiling.Progress | None, begun: float) -> compiling.Progress | None:
    """What reports the progress of one half of the work, the first or the second."""
    return None if progress is None else lambda done: progress(begun + done / 2)
