"""Arrays beside pages that cannot be touched: a kernel that leaves its array ends the process.

Kernels take addresses, and Numba checks no index: what reads one entry too far gets whatever lies
there, and faults once in a thousand runs. Here each array has pages of its own and lies against one
that cannot be touched:

    after    the array ends where that page begins: no byte behind it can be read or written
    before   the array begins where that page ends: no byte in front of it can be

    python -m tests.support.fence after pytest -n 0 tests/lpma/test_sort.py
    python -m tests.support.fence before tests.support.kernel_workload

run a module like that. At a fault they print which array was left and Python's stack, and die.
`small` and `all_kernels` are what tests run, `breaches` is what must end.

Fenced are the arrays that NumPy makes (its handler of memory is replaced in place, for all threads)
and those that kernels make (the function that compiled code calls for them is replaced, which takes
effect in every kernel that is loaded later). Memory that the store maps by itself, or cuts into
columns, is made of arrays here (`_as_single_arrays`). Arrays are filled with 0xA5, so what reads an
entry before it is written gets nothing that makes sense.

Requires Linux and a C compiler; the layouts of NumPy's handler, version 1, and of Numba's runtime.
"""

from __future__ import annotations

import ctypes
import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

SIDES = ("after", "before")
UNAVAILABLE = 77  # the exit status where there is no fence
_DEFAULT_HANDLER = 306  # in NumPy's table of functions, since 1.22
_MANAGE_MEMORY = 2  # in NRT_api_functions


class Unavailable(Exception):
    """This machine, or what is installed on it, has no fence. The message says why."""


def library(directory: Path) -> Path:
    """fence.c, compiled into `directory`. Raises Unavailable."""
    if not sys.platform.startswith("linux"):
        raise Unavailable(f"the fence needs Linux; this is {sys.platform}")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Unavailable("no C compiler (cc) to build tests/support/fence/fence.c with")
    made, source = directory / "fence.so", Path(__file__).with_name("fence.c")
    flags = ["-O1", "-Wall", "-shared", "-fPIC", "-pthread"]
    command = [compiler, *flags, "-o", str(made), str(source)]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode:
        raise Unavailable(f"{source.name} does not compile here: {built.stderr[:500]}")
    return made


class Fence:
    """From here on, arrays of this process are fenced. Make one before the first kernel is loaded,
    and after `faulthandler.enable()`. Raises Unavailable."""

    def __init__(self, side: str, made: Path) -> None:
        self._library = ctypes.CDLL(str(made))
        self._library.fence_begin.restype = ctypes.c_char_p
        wrong = self._library.fence_begin(SIDES.index(side) == 0)
        if wrong:
            raise Unavailable(f"{wrong.decode()}: vm.overcommit_memory or a limit forbids it")
        self._library.fence_numpy(ctypes.c_void_p(_numpys_handler()))
        self._fence_numba()
        _as_single_arrays()

    @property
    def counts(self) -> tuple[int, int]:
        """How many arrays were fenced until now, and how many were not."""
        return self._library.fence_fenced(), self._library.fence_unfenced()

    def _fence_numba(self) -> None:
        from llvmlite import binding
        from numba.core.registry import cpu_target
        from numba.core.runtime import _nrt_python, rtsys

        rtsys.initialize(cpu_target.target_context)  # or it would undo what follows
        helpers = _nrt_python.c_helpers
        if not {"get_api", "MemInfo_alloc_aligned"} <= set(helpers):
            raise Unavailable(f"Numba's runtime is another: {sorted(helpers)}")
        functions = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p))(helpers["get_api"])()
        self._library.fence_numba(
            ctypes.c_void_p(functions[_MANAGE_MEMORY]),
            ctypes.c_void_p(helpers["MemInfo_alloc_aligned"]),
        )
        ours = ctypes.cast(self._library.fence_numba_alloc, ctypes.c_void_p).value
        binding.add_symbol("NRT_MemInfo_alloc_aligned", ours)


def _numpys_handler() -> int:
    """The address of the handler that all arrays of NumPy's have. Raises Unavailable."""
    multiarray = importlib.import_module("numpy._core.multiarray")
    own = importlib.import_module("numpy._core._multiarray_umath")
    name, version = multiarray.get_handler_name(), multiarray.get_handler_version()
    if (name, version) != ("default_allocator", 1):
        raise Unavailable(f"NumPy's memory has the handler {name!r} of version {version}")
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = pointer(own._ARRAY_API, None)
    slot = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[_DEFAULT_HANDLER]
    capsule = ctypes.cast(slot, ctypes.POINTER(ctypes.py_object))[0]
    handler: int = pointer(capsule, b"mem_handler")
    if ctypes.string_at(handler) != name.encode():
        raise Unavailable(f"NumPy {np.__version__} keeps its handler of memory elsewhere")
    return handler


def _as_single_arrays() -> None:
    """Let the store make an array of each thing, of the size that is asked for, where it maps
    memory, cuts one block into columns or has an entry to spare at the end."""
    from lpma.arrays import address
    from lpma.backend.numba import allocate, snapshot_memory, workspace
    from lpma.backend.numba.backend import NumbaBackend

    for module in (allocate, snapshot_memory):
        vars(module)["LARGE_BYTES"] = 1 << 62  # none is large

    def reserve(block: workspace.Block, n: int) -> None:
        if n <= block.capacity:
            return
        if len(set(block.dtypes)) == 1:
            block.grid = np.empty((len(block.dtypes), n), block.dtypes[0])
            block.columns = list(block.grid)
        else:
            block.columns = [np.empty(0 if t is None else n, t or np.uint8) for t in block.dtypes]
        block.addresses = [address(column) for column in block.columns]
        block.capacity, block.nbytes = n, sum(column.nbytes for column in block.columns)

    with_spare_entries = NumbaBackend.csr_rows

    def csr_rows(*given: Any) -> tuple[Any, Any]:
        indptr, indices = with_spare_entries(*given)
        return indptr.copy(), indices.copy()

    workspace.Block.reserve = reserve  # type: ignore[method-assign, assignment]
    NumbaBackend.csr_rows = staticmethod(csr_rows)  # type: ignore[arg-type]
