"""Whether arrays that a caller brings are compressed sparse rows, on the host or on a device.

Kernels follow `indptr` and `indices` without checking bounds: a wrong number would read or write
other memory. All checks are made in a few passes over the arrays, and their results are read at
once: on a device that is the only wait. Where an error lies is looked for only if there is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments.scalars import is_bool, is_integer
from ..arrays import Array, array_module, count_true, device_of, on_device, row_numbers, to_host
from ..errors import BatchError
from ..pma.keys import HALF
from . import columns

MOST_ROWS = np.iinfo(np.uint32).max


def check_types(arrays: dict[str, Any]) -> None:
    """Raise BatchError unless these arrays of a snapshot have one dimension and the dtypes of its
    attributes, and lie on one device. Optional ones may be None."""
    for name, dtypes, _, _, is_optional in columns.ALL:
        array = arrays[name]
        wanted = " or ".join(np.dtype(dtype).name for dtype in dtypes)
        if array is None and is_optional:
            continue
        if not isinstance(array, np.ndarray) and not on_device(array):
            kind = type(array).__name__
            raise BatchError(f"{name}: give an array of NumPy or CuPy, {wanted}, not a {kind}")
        if array.ndim != 1:
            raise BatchError(f"{name}: expected one dimension, got shape {array.shape}")
        if array.dtype not in dtypes:
            hint = f"{name}.astype(numpy.{wanted.partition(' ')[0]})"
            raise BatchError(f"{name}: expected {wanted}, got {array.dtype}: give {hint}")
    if len({str(array.device) for array in arrays.values() if array is not None}) > 1:
        raise BatchError("the arrays lie on different devices: bring them to one")


def check_lengths(n: int, m: int, arrays: dict[str, Any], names: Any) -> None:
    """Raise BatchError unless the columns of a snapshot of n rows and m entries, and the names of
    its rows, fit it. Each may be None."""
    lengths = {"row": n, "entry of indices": m}
    each_of = {column.name: column.each for column in columns.ALL if column.each}
    for name, each in {**each_of, "names": "row"}.items():
        column = names if name == "names" else arrays[name]
        if column is not None and len(column) != lengths[each]:
            raise BatchError(
                f"{name}: {len(column)}, where there must be one for each {each}, {lengths[each]}"
            )
    added = arrays["added"]
    if added is None or not len(added):
        return
    with device_of(added):
        wrong = added[1:] <= added[:-1]
        flags = _told([_any(added >= n), _any(wrong)])
    if flags[0]:
        raise BatchError(f"added: rows go from 0 to {n - 1}")
    if flags[1]:
        raise BatchError("added: must rise, each row once: give numpy.unique(added)")


def check_facts(num_edges: Any, version: Any, time: Any, directed: Any, left: Any) -> None:
    """Raise BatchError unless these are what the attributes of a snapshot are."""
    for name, value in (("num_edges", num_edges), ("version", version), ("time", time)):
        if not is_integer(value):
            raise BatchError(f"{name}: an integer, not {value!r}")
    if not is_bool(directed):
        raise BatchError(f"directed: True or False, not {directed!r}")
    if left is not None and not (is_integer(left) and 0 <= left <= MOST_ROWS):
        raise BatchError(f"left: None, or an integer from 0 to {MOST_ROWS}, not {left!r}")


def check_rows(indptr: Array, indices: Array) -> None:
    """Raise BatchError unless these are rows of a graph: indptr[n+1] and indices[m], integers of
    one dimension on one device. Rows may be unsorted and have repeats."""
    _check_rows(indptr, indices, is_sorted=False, is_symmetric=False)


def check_graph(indptr: Array, indices: Array, num_edges: int, directed: bool) -> None:
    """Raise BatchError unless these are a snapshot's rows: as `check_rows`, sorted, without
    repeats, with both directions of an undirected edge, and `num_edges` edges."""
    _check_rows(indptr, indices, is_sorted=True, is_symmetric=not directed)
    m = edges = len(indices)
    if not directed:
        with device_of(indices):
            edges = (m + count_true(row_numbers(indptr, m) == indices)) // 2
    if num_edges != edges:
        once = "" if directed else ", where both directions of an edge count once"
        raise BatchError(f"num_edges: {num_edges}, but the rows have {edges}{once}")


def _check_rows(indptr: Array, indices: Array, is_sorted: bool, is_symmetric: bool) -> None:
    n, m = len(indptr) - 1, len(indices)
    if n < 0:
        raise BatchError("indptr: is empty; it has one entry more than there are rows: 0 at least")
    if n > MOST_ROWS:
        raise BatchError(f"indptr: {n:,} rows; at most 2^32 - 1 are taken")
    with device_of(indptr):
        falls = indptr[1:] < indptr[:-1]
        flags = [indptr[0] != 0, indptr[n] != m, _any(falls)]
        beyond = (indices.min() < 0) | (indices.max() >= n) if m else _any(falls[:0])
        flags.append(beyond)
        if is_sorted:
            flags.append(_any(_disorder(indptr, indices)))
        found = _told(flags)
        if found[0] or found[1]:
            ends = f"from {int(indptr[0])} to {int(indptr[n])}"
            raise BatchError(f"indptr: goes {ends}; it must go from 0 to len(indices), {m}")
        if found[2]:
            u = int(falls.argmax())
            raise BatchError(f"indptr: falls after row {u}: each row begins where the last ends")
        if found[3]:
            at = int(((indices < 0) | (indices >= n)).argmax())
            raise BatchError(
                f"indices: entry {at} is {int(indices[at])}; rows go from 0 to {n - 1}"
            )
        if is_sorted and found[4]:
            _refuse_disorder(indptr, indices)
        if is_symmetric and m:
            _check_symmetric(indptr, indices)


def _disorder(indptr: Array, indices: Array) -> Array:
    """bool[max(m - 1, 0)]: whether each entry but the first, if it does not begin a row, does not
    rise above the one before. On a device places out of bounds wrap around, and harm nobody."""
    xp = array_module(indices)
    m = len(indices)
    begins = xp.zeros(m + 1, np.bool_)
    # What is wrong with indptr is told apart; here it must only stay within bounds.
    begins[xp.clip(indptr, 0, m)] = True
    disorder: Array = (indices[1:] <= indices[:-1]) & ~begins[1:m]
    return disorder


def _refuse_disorder(indptr: Array, indices: Array) -> None:
    at = int(_disorder(indptr, indices).argmax()) + 1
    u = int(np.searchsorted(to_host(indptr), at, side="right")) - 1
    before, here = int(indices[at - 1]), int(indices[at])
    if before == here:
        raise BatchError(f"indices: row {u} has {here} twice: an edge is there once")
    raise BatchError(
        f"indices: row {u} is not sorted, {here} comes after {before}: sort each row, and weights "
        "and times with it, as SciPy's sort_indices() does"
    )


def _check_symmetric(indptr: Array, indices: Array) -> None:
    """Raise BatchError unless the rows of an undirected graph have each edge both ways. REQUIRES:
    the rest is as it should be, so that the edges come out ascending."""
    xp = array_module(indices)
    row, other = row_numbers(indptr, len(indices)).astype(np.uint64), indices.astype(np.uint64)
    turned = xp.sort(other << HALF | row)
    wrong = turned != (row << HALF | other)
    if not _told([_any(wrong)])[0]:
        return
    at = int(wrong.argmax())
    ours, theirs = (int(row[at]), int(other[at])), divmod(int(turned[at]), 1 << 32)
    u, v = min(ours, theirs)  # of two sorted lists, the smaller is what the other lacks
    raise BatchError(
        f"indices: {u} and {v} are joined one way only, but directed=False: the rows of an "
        "undirected graph have each edge in both of its rows"
    )


def _any(mask: Array) -> Any:
    """Whether any is True: where the mask lies, not yet read. See `arrays.any_of`."""
    if not on_device(mask):
        return mask.any()
    return mask.view(np.uint8).max() if mask.size else array_module(mask).zeros((), np.uint8)


def _told(flags: list[Any]) -> list[bool]:
    """The flags on the host, all in one copy."""
    if not any(map(on_device, flags)):
        return [bool(flag) for flag in flags]
    xp = array_module(next(filter(on_device, flags)))
    told: list[bool] = to_host(xp.stack([flag.astype(np.bool_) for flag in flags])).tolist()
    return told
