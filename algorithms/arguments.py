"""Arguments of the public functions that are not options of their own, admitted at the door.

Numbers, words and truths are admitted as they are declared (`options`); here is what refers to a
graph: vertices, values for every row, devices. A public function passes each through one of these
before it does anything. What comes out is of one type and within its range: programs behind the
door check nothing. What is refused is refused with a BatchError that begins with the argument's
name. A vertex is a row or, in a Snapshot with names, a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from lpma.arguments.convert import as_cupy_if_on_device
from lpma.arguments.scalars import choice as choice
from lpma.arguments.scalars import function as function
from lpma.arguments.scalars import integer as integer
from lpma.arguments.scalars import is_integer
from lpma.arguments.scalars import limit as limit
from lpma.arguments.scalars import shown as shown
from lpma.arrays import all_of, array_module, device_of, on_device, to_host
from lpma.backend import no_cuda
from lpma.errors import BatchError, DeviceError, VertexError
from lpma.names import column_of
from lpma.snapshot.snapshot import Snapshot

from .arrays import Array
from .options import MOST
from .views.directed import present

if TYPE_CHECKING:
    from lpma.names import FrozenNames


def choices(value: Any, name: str, words: Iterable[str]) -> list[str]:
    """A list of known words from a list, or from a single word. Raises BatchError."""
    known = list(words)
    if isinstance(value, str):
        return [choice(value, name, known)]
    try:
        given = iter(() if isinstance(value, bytes | bytearray | memoryview) else value)
    except TypeError:
        given = iter(())
    chosen = [choice(one, name, known) for one in given]
    if not chosen:
        raise BatchError(f"{name}: some of {', '.join(known)}, not {shown(value)}")
    return chosen


# -- vertices -------------------------------------------------------------------------------------


def names_of(s: Any) -> FrozenNames | None:
    """The names of a graph's rows; None if it has none."""
    return s.names if isinstance(s, Snapshot) else None


def row(names: FrozenNames | None, n: int, vertex: Any, name: str) -> int:
    """The row of one vertex, of n rows; it need not be `present`. Raises VertexError if there is
    none, and BatchError for what is no vertex of any graph."""
    if names is not None:
        return names.row(vertex, name)
    if is_integer(vertex) and 0 <= vertex < n:
        return int(vertex)
    error = VertexError if is_integer(vertex) else BatchError
    raise error(f"{name}: {_known(None, n)}, not {shown(vertex)}")


def vertex(s: Any, n: int, given: Any, name: str) -> int:
    """The row of one vertex of a graph of n rows. Raises as `row` does, and VertexError unless it
    is one of the vertices: in a Snapshot, a row that is `present`."""
    return int(_present(s, n, np.array([row(names_of(s), n, given, name)]), [given], name)[0])


def vertices(s: Any, n: int, given: Any, name: str) -> Array:
    """int64[k], on the host: the rows of vertices in an array or a list. Raises as `vertex`."""
    return _present(s, n, _rows(s, n, given, name), given, name)


def vertices_beside(near: Array, s: Any, given: Any, name: str) -> Array:
    """As `vertices`, on the device of `near`, int64[n+1], the graph's row starts. Rows given as an
    array on that device stay there."""
    n = len(near) - 1
    if not on_device(near):
        return vertices(s, n, given, name)
    with device_of(near):
        xp = array_module(near)
        if on_device(given) and given.device == near.device and names_of(s) is None:
            _check_integers(given, name)
            rows = given.astype(np.int64)  # an unsigned one beyond int64 comes out below 0
        else:
            rows = xp.asarray(_rows(s, n, given, name))
        return _present(s, n, rows, given, name)


def _rows(s: Any, n: int, given: Any, name: str) -> Array:
    """int64[k]; a number below 0 or from n on is no row."""
    names = names_of(s)
    if names is not None:
        column = column_of(given, name)
        if column.is_scalar:
            raise BatchError(f"{name}: a list or an array of names, not {shown(given)}")
        return names.look_up(column)
    ids = to_host(array_of(given, name))
    _check_integers(ids, name)
    return np.where(ids < n, ids, n).astype(np.int64)  # an unsigned one may be beyond int64


def _check_integers(ids: Array, name: str) -> None:
    if ids.ndim != 1 or (ids.dtype.kind not in "iu" and ids.size):
        raise BatchError(
            f"{name}: a list or an array of integers, rows of the graph, not {_form(ids)}"
        )


def _present(s: Any, n: int, rows: Array, given: Any, name: str) -> Array:
    """The rows, wherever they lie. Raises VertexError unless all are vertices."""
    vertices = present(s)  # which rows are; None: all
    with device_of(rows if vertices is None else vertices):
        known = (rows >= 0) & (rows < n)
        if vertices is not None and all_of(known):
            known = vertices[array_module(vertices).asarray(rows)]
        if not all_of(known):
            at = int(to_host(known).argmin())
            wrong = next(islice(iter(to_host(given)), at, None), None)
            wrong = wrong.item() if isinstance(wrong, np.generic) else wrong
            raise VertexError(f"{name}: {_known(names_of(s), n)}, not {shown(wrong)}")
    return rows


def _known(names: FrozenNames | None, n: int) -> str:
    if names is not None:
        return "the name of a vertex that is there"
    return f"a vertex that is there, from 0 to {n - 1}" if n else "no vertex is there"


# -- arrays ---------------------------------------------------------------------------------------


def array_of(given: Any, name: str) -> Array:
    """An array of any shape and type, on the device where it lies. Raises BatchError."""
    given = as_cupy_if_on_device(given)
    if on_device(given):
        return given
    if isinstance(given, str | bytes | Mapping | set | frozenset):
        raise BatchError(f"{name}: a list or an array, not {shown(given)}")
    try:
        if isinstance(given, np.ndarray) and np.ma.is_masked(given):
            raise BatchError(f"{name}: some values are masked: leave these out")
        return np.asarray(given)
    except (BatchError, MemoryError):
        raise
    except Exception as error:
        raise BatchError(f"{name}: cannot be read as an array ({error})") from error


def _form(array: Array) -> str:
    """An array's dtype and shape, for a message."""
    return f"{array.dtype}{list(array.shape)}"


def items(given: Any, name: str) -> list[Any]:
    """The entries of a list, a tuple or a one-dimensional array. Raises BatchError."""
    if isinstance(given, list | tuple | range):
        return list(given)
    array = array_of(given, name)
    if array.ndim != 1:
        raise BatchError(f"{name}: a list or an array, not {shown(given)}")
    entries: list[Any] = to_host(array).tolist()
    return entries


# -- devices --------------------------------------------------------------------------------------


def devices(given: Any, name: str = "devices") -> list[int] | None:
    """The numbers of one or more CUDA devices, in order; None stays None. A device listed twice
    takes two shares. Raises BatchError, and DeviceError if a device cannot be used."""
    if given is None:
        return None
    numbers = items(given, name)
    if not numbers or not all(map(is_integer, numbers)):
        raise BatchError(f"{name}: a list of the numbers of one device or more, not {shown(given)}")
    for one in numbers:
        why = no_cuda(int(one)) if 0 <= one <= MOST else "no device has this number"
        if why is not None:
            raise DeviceError(f"{name}: device {one}: {why}")
    return [int(one) for one in numbers]
