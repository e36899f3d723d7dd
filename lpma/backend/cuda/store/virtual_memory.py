"""Levels that get their memory part by part: an address range, and memory mapped into it.

Source: the CUDA driver's virtual memory management (cuMemAddressReserve, cuMemCreate, cuMemMap),
which CuPy does not offer. Kernels see one array, which never moves while it grows. Within a level
segments lie part by part (layout.py), so what is mapped is where the range begins.

CuPy's pool does not count such memory, but a limit that is set for the pool holds for it too: a
part is refused if the pool and the parts of all levels together would exceed the limit. What the
pool takes later it compares with its own memory only.

Requires: what is not mapped is never read or written. Where the device has no such management, or
a part would not be whole pages of it, an array is an ordinary one, there from the beginning.
"""

from __future__ import annotations

import ctypes
import weakref
from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from ....cuda.driver import Array
from ....cuda.library import NAME
from ....pma.layout import PARTS

_SUPPORTED = 102  # CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
_DEVICE, _PINNED, _READ_WRITE = 1, 1, 3  # of a location, an allocation, an access
_OUT_OF_MEMORY = 2


class _Wanted(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int),
        ("device", ctypes.c_int), ("windows", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8),
    )  # fmt: skip


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location", ctypes.c_int), ("device", ctypes.c_int), ("flags", ctypes.c_int))


@lru_cache(maxsize=1)
def _driver() -> ctypes.PyDLL:
    """Which keeps the interpreter's lock, as a part mostly takes tens of microseconds."""
    return ctypes.PyDLL(NAME)


def _call(name: str, *arguments: Any) -> None:
    """A function of the driver. Raises MemoryError, or RuntimeError for what should not happen."""
    error = getattr(_driver(), name)(*arguments)
    if error == _OUT_OF_MEMORY:
        raise MemoryError(f"{name}: out of memory")
    if error:
        raise RuntimeError(f"{name}: CUDA error {error}")


@lru_cache(maxsize=64)
def is_supported(number: int) -> bool:
    """Whether device `number` can map memory part by part."""
    found = ctypes.c_int(0)
    _call("cuDeviceGetAttribute", ctypes.byref(found), _SUPPORTED, number)
    return bool(found.value)


def _wanted(number: int) -> Any:
    return ctypes.byref(_Wanted(type=_PINNED, location=_DEVICE, device=number))


@lru_cache(maxsize=64)
def page_bytes(number: int) -> int:
    """Memory is mapped in multiples of this."""
    size = ctypes.c_size_t(0)
    _call("cuMemGetAllocationGranularity", ctypes.byref(size), _wanted(number), 0)
    return size.value


class _Range:
    """Addresses for PARTS parts of `part` bytes on a device."""

    def __init__(self, number: int, part: int) -> None:
        self.number, self.part = number, part
        self.handles: list[int] = []  # of the memory for each part
        self.mapped: list[int] = []  # where it is mapped, as far as it is
        at = ctypes.c_uint64(0)
        size = ctypes.c_size_t(PARTS * part)
        zero = ctypes.c_uint64(0)
        _call("cuMemAddressReserve", ctypes.byref(at), size, ctypes.c_size_t(0), zero, zero)
        self.at = at.value
        # At the end of the process the driver gives all back.
        of_all = number, self.at, part, self.handles, self.mapped
        weakref.finalize(self, _free, *of_all).atexit = False

    def back(self, parts: int) -> None:
        """Map memory for the first `parts` parts. If that fails, those that have theirs keep it.
        Raises MemoryError."""
        while len(self.mapped) < parts:
            if len(self.handles) == len(self.mapped):
                self.handles.append(self._created())
            at = self.at + len(self.mapped) * self.part
            self._map(at, self.handles[len(self.mapped)])
            self.mapped.append(at)

    def _created(self) -> int:
        """The handle of memory for a part; CuPy's pool gives back what it does not use, if need
        be."""
        handle, size = ctypes.c_uint64(0), ctypes.c_size_t(self.part)
        arguments = (ctypes.byref(handle), size, _wanted(self.number), ctypes.c_uint64(0))
        try:
            _within_limit(self.number, self.part)
            _call("cuMemCreate", *arguments)
        except MemoryError:
            cupy.get_default_memory_pool().free_all_blocks()
            _within_limit(self.number, self.part)
            _call("cuMemCreate", *arguments)
        return handle.value

    def _map(self, at: int, handle: int) -> None:
        """Have a part's memory at an address; if that fails, nothing is there."""
        address, size = ctypes.c_uint64(at), ctypes.c_size_t(self.part)
        zero, access = ctypes.c_size_t(0), _Access(_DEVICE, self.number, _READ_WRITE)
        _call("cuMemMap", address, size, zero, ctypes.c_uint64(handle), ctypes.c_uint64(0))
        try:
            _call("cuMemSetAccess", address, size, ctypes.byref(access), ctypes.c_size_t(1))
        except BaseException:
            _call("cuMemUnmap", address, size)
            raise


def _free(number: int, at: int, part: int, handles: list[int], mapped: list[int]) -> None:
    """Give back a range that no array has any more, after all that may still use it."""
    try:
        with cupy.cuda.Device(number):
            cupy.cuda.runtime.deviceSynchronize()
    except cupy.cuda.runtime.CUDARuntimeError:
        return  # the device failed: whoever uses it next gets the error
    for address in mapped:
        _call("cuMemUnmap", ctypes.c_uint64(address), ctypes.c_size_t(part))
    for handle in handles:
        _call("cuMemRelease", ctypes.c_uint64(handle))
    _call("cuMemAddressFree", ctypes.c_uint64(at), ctypes.c_size_t(PARTS * part))


_ranges: weakref.WeakValueDictionary[int, _Range] = weakref.WeakValueDictionary()  # by address


def mapped_bytes(number: int) -> int:
    """Memory of device `number` that is taken for levels in parts."""
    held = [reference() for reference in _ranges.valuerefs()]
    return sum(len(r.handles) * r.part for r in held if r is not None and r.number == number)


def _within_limit(number: int, size: int) -> None:
    """Raise MemoryError if so much more is beyond the limit of CuPy's pool, which is the user's.
    REQUIRES: device `number` is the current one."""
    pool = cupy.get_default_memory_pool()
    limit = pool.get_limit()
    if limit and pool.total_bytes() + mapped_bytes(number) + size > limit:
        raise MemoryError(f"{size:,} bytes more than CuPy's pool is limited to, {limit:,}")


def level_column(n: int, dtype: Any, parts: int) -> Array:
    """A column of a level of n slots, on the current device, the first `parts` of PARTS of which
    can be used. Raises MemoryError."""
    size, number = n * np.dtype(dtype).itemsize, cupy.cuda.runtime.getDevice()
    comes_in_parts = parts < PARTS and is_supported(number)
    if not comes_in_parts or size // PARTS % page_bytes(number):
        return cupy.empty(n, dtype)
    held = _Range(number, size // PARTS)
    _ranges[held.at] = held
    memory = cupy.cuda.UnownedMemory(held.at, size, held, number)
    held.back(parts)
    return cupy.ndarray(n, dtype, cupy.cuda.MemoryPointer(memory, 0))


def back(column: Array, parts: int) -> None:
    """Make the first `parts` parts of a level's column usable. Raises MemoryError; what was mapped
    until then stays."""
    held = _ranges.get(column.data.ptr)
    if held is not None:
        held.back(parts)


def held_bytes(column: Array) -> int:
    """The bytes of memory that an array has."""
    held = _ranges.get(column.data.ptr)
    return int(column.nbytes) if held is None else len(held.handles) * held.part
