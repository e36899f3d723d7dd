"""Shared arrays, handed out so that callers cannot write to them.

A snapshot, what algorithms cache with it, and later snapshots read the same memory. So callers get
read-only views on the host, and copies on a device, where no array can be read-only.

Numba compiles a kernel for writable arrays, and again for read-only ones. So shared arrays are kept
writable, under names that begin with an underscore, and the package never writes to them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array, on_device


class SharedArray(np.ndarray[Any, Any]):
    """A read-only NumPy array that DLPack's consumers take, too: they get a copy.

    PyTorch, and NumPy's own `__dlpack__` before version 2.1, know no read-only arrays: the first
    would write to the memory, the second raises. Pickled, it is a plain array."""

    __slots__ = ("checked",)
    checked: Any  # what a snapshot keeps of a checked array, for the next that is made of it

    def __array_finalize__(self, other: Any) -> None:
        self.checked = None

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return np.array(self).__reduce_ex__(protocol)

    def __dlpack__(self, **asked: Any) -> Any:
        """A copy of a read-only array, unless `copy=False` is asked for."""
        if self.flags.writeable or asked.get("copy") is False:
            return super().__dlpack__(**asked)
        # The copy is nobody else's, and writable: neither request is needed any more.
        asked.pop("copy", None)
        return np.array(self).__dlpack__(**asked)


def hand_out(array: Any, checked: Any = None) -> Any:
    """What a caller gets of a shared array: a read-only view of it, or on a device a copy, made on
    the current stream. checked: see `SharedArray`."""
    if on_device(array):
        return copied(array)
    # Through a memoryview, since NumPy lets callers make a view of a writable array writable.
    view = np.asarray(memoryview(array).toreadonly()).view(SharedArray)
    view.checked = checked
    return view


def copied(array: Any) -> Any:
    """A copy that may be written to, C-contiguous and no subclass, where the array lies."""
    if not on_device(array):
        return np.array(array, order="C")
    with array.device:
        return array.copy()


def alias_for_kernels(array: Any) -> Any:
    """A caller's array, or a writable alias if it is read-only: for kernels, which only read."""
    if on_device(array) or array.flags.writeable:
        return array
    return np.asarray(_Alias(array))


class _Alias:
    """The memory of an array, said to be writable."""

    def __init__(self, array: Array) -> None:
        self._array = array  # kept alive
        self.__array_interface__ = {
            "version": 3, "shape": array.shape, "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
        }  # fmt: skip
