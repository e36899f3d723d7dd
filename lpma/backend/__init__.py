"""Devices: which ones exist, and the backend that keeps a graph's stores on one.

protocol.py specifies what a backend must do; `numba/` does it on the CPU, `cuda/` on a CUDA device.
`numpy/` does it on the CPU while Numba's kernels are not compiled.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ..arguments.convert import as_cupy_if_on_device
from ..arguments.scalars import shown
from ..arrays import to_host
from ..cpu import columns, ready
from ..dependencies import how_to_install
from ..errors import DeviceError
from ..host import needs_linux
from .protocol import AnyBackend, Place

Result = TypeVar("Result")


class Host:
    """The CPU's Place."""

    def run(self, call: Callable[..., Result], args: tuple[Any, ...]) -> Result:
        return call(*args)

    def localize(self, values: Any) -> Any:
        return to_host(as_cupy_if_on_device(values))

    def wait_for_caller(self) -> None:
        pass


def open_backend(device: str) -> tuple[str, Place, Callable[[], AnyBackend]]:
    """(the device's full name, its place, what makes a backend for each store of a graph). "auto"
    is a CUDA device if there is one and CuPy is installed. Raises DeviceError."""
    if is_cuda(device):
        from .cuda import open_cuda

        return open_cuda(device)
    return "cpu", Host(), cpu_backend(_kernels_wanted and ready.get_ready())


def use_kernels(wanted: bool) -> None:
    """Whether graphs on the CPU are kept by compiled kernels, once these are ready; if not, by
    NumPy alone, and then nothing compiles."""
    global _kernels_wanted
    _kernels_wanted = wanted


_kernels_wanted = True


def cpu_backend(kernels: bool) -> Callable[[], AnyBackend]:
    """What makes a backend for a store on the CPU, with compiled kernels or without. Either is
    imported only here: Numba takes a third of a second."""
    # A store hands its backend only what that backend made: see protocol.Backend.
    if not kernels:
        from .numpy.backend import NumpyBackend

        return cast(Callable[[], AnyBackend], lambda: NumpyBackend(_compiled))
    from .numba.backend import NumbaBackend

    columns.use_kernels()
    return cast(Callable[[], AnyBackend], NumbaBackend)


def _compiled() -> AnyBackend | None:
    """A compiled backend for a store that NumPy has kept so far, once kernels are ready."""
    return cpu_backend(True)() if _kernels_wanted and ready.are_ready() else None


def is_cuda(device: str) -> bool:
    """Whether a graph with this `device` is on a GPU. Raises DeviceError."""
    check_device(device)
    return device.startswith("cuda") or (device == "auto" and no_cuda(0) is None)


def check_device(device: str) -> None:
    """Raises DeviceError if this machine has no such device: for callers that will open it later
    and would rather fail before they read or write anything."""
    if not isinstance(device, str) or not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        raise DeviceError(f"device {shown(device)}: use 'auto', 'cpu', 'cuda' or 'cuda:N'")
    if device.startswith("cuda"):
        why = no_cuda(int(device.partition(":")[2] or 0))
        if why is not None:
            raise DeviceError(f"device {device!r}: {why}; device='cpu' works everywhere")


def compile_for(device: str, progress: Callable[[float], None] | None = None) -> None:
    """Compile the kernels of a CUDA device now; see lpma.compile. REQUIRES: it can be used."""
    from .cuda.launch.warm_up import compile_all

    compile_all(int(device.partition(":")[2] or 0), progress)


def no_cuda_here() -> str | None:
    """Why no CUDA device can be used on this system, whatever is installed; None if one can."""
    return needs_linux("CUDA", "this system has no driver for it")


def no_cuda(number: int) -> str | None:
    """Why CUDA device `number` cannot be used; None if it can."""
    if (why := no_cuda_here()) is not None:
        return why
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        return f"CuPy cannot be imported ({error}): {how_to_install('cuda12', 'cuda13')}"
    try:
        devices = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no CUDA device answers ({error})"
    if not 0 <= number < devices:
        return f"this machine has {devices} CUDA device(s), numbered from 0"
    return None
