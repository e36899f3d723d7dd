"""Compiling ahead of use: `lpma.compile`."""

from __future__ import annotations

from .backend import is_cuda
from .cpu import compiling, ready


def compile(device: str = "cpu", progress: compiling.Progress | None = None) -> None:
    """Compile everything that is otherwise compiled at first use, on all cores, and wait for it: in
    an image that is built, in CI, at the top of a notebook. What is compiled is kept (`lpma doctor`
    says where), so that a second call takes milliseconds.

    device    "cpu", or "cuda", "cuda:N": the kernels of that GPU
    progress  called with the share that is done, from 0.0 to 1.0

    Raises DeviceError, and CompileError where something could not be compiled.

    >>> lpma.compile()
    """
    if is_cuda(device):
        raise NotImplementedError
    compiling.compile_all(progress=progress)
    ready.note_compiled()
