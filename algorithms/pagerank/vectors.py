"""A caller's vector over the vertices: where the surfer jumps to, or first ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lpma.arrays import all_of, any_of, array_module, device_of, on_device, to_host
from lpma.errors import BatchError

from .. import arguments
from ..arrays import Array, beside
from ..views.directed import present

Vector = Mapping[Any, float] | Sequence[float] | Array


def vector_of(s: Any, indptr: Array, given: Vector | None, what: str) -> Array | None:
    """float64[n], of sum 1, on the device of indptr, the rows of s; None stays None.

    given: a number for each row, ignored for rows that are not vertices, or numbers for some
    vertices. what: the argument's name. Raises BatchError unless the numbers are finite, not
    negative and not all 0."""
    if given is None:
        return None
    n = len(indptr) - 1
    vector: Array
    if isinstance(given, Mapping):
        named = np.zeros(n)
        numbers = _doubles(list(given.values()), what)
        if numbers.ndim != 1:
            raise BatchError(f"{what}: one number for a vertex, not {numbers.shape[1:]}")
        named[arguments.vertices(s, n, list(given), what)] = numbers
        vector = beside(indptr, named)
    elif _is_near(indptr, given):
        vector = _doubles(given, what)
    else:
        vector = beside(indptr, _doubles(to_host(given), what))
    if vector.shape != (n,):
        raise BatchError(f"{what}: {n:,} numbers, one for each row, not {vector.shape}")
    with device_of(indptr):
        xp = array_module(indptr)
        if not all_of(xp.isfinite(vector)) or any_of(vector < 0):
            raise BatchError(f"{what}: numbers that are finite and not negative")
        vertices = present(s)
        vector = vector if vertices is None else xp.where(vertices, vector, 0.0)
        most = float(vector.max()) if n else 1.0
        if not most:
            raise BatchError(f"{what}: it is 0 at all vertices")
        shares: Array = vector / most  # first, as a sum may be infinite, or have lost all digits
        return shares / shares.sum()


def _is_near(indptr: Array, given: Any) -> bool:
    """Whether this is an array on the device that the rows are on."""
    return on_device(given) and on_device(indptr) and given.device == indptr.device


def _doubles(numbers: Any, what: str) -> Array:
    array = arguments.array_of(numbers, what)
    if array.dtype.kind in "iufb" or not array.size:
        doubles: Array = array.astype(np.float64)
        return doubles
    raise BatchError(f"{what}: real numbers, one for each row or by vertex, not {array.dtype}")
