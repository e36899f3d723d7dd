"""The dictionary of names as it was at one version, and what turns ids into names.

Idea: a dictionary only grows, so what it was is a number of names. A compact snapshot has rows of
its own; the view of it knows the id behind each row."""

from __future__ import annotations

import importlib
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..arguments.convert import as_array
from ..arrays import Array, places_of, to_host
from ..errors import BatchError, VertexError
from .column import MAX_NAME, NEGATIVE, TEXT, Column, Name
from .forms import Form, flattened
from .given import column_of, name_of

MANY = 256  # texts above which pyarrow makes them


class Dictionary(Protocol):
    """What a frozen view reads: `Names`, of dictionary.py."""

    def look_up(self, names: Column, /) -> Array: ...
    def of(self, ids: Array, /) -> Array: ...
    def form(self, ids: Array, /) -> Form: ...


class FrozenNames:
    """What the rows of a snapshot go by: `Snapshot.names`. It never changes, and may be read from
    any thread.

    >>> g = lpma.Graph(names=True, device="cpu")
    >>> g.insert("alice", "bob")
    >>> names = g.snapshot().names
    >>> g.insert("alice", "carol")                  # not in the snapshot
    >>> len(names), names.of([1, 0]).tolist(), names.find("carol")
    (2, ['bob', 'alice'], None)
    """

    def __init__(self, names: Dictionary, count: int, ids: Array | None = None) -> None:
        self._names = names
        self._count = count
        self._device_ids = ids

    @cached_property
    def _ids(self) -> Array | None:
        """uint32, rising: the id behind each row; None: the row itself."""
        return None if self._device_ids is None else np.asarray(to_host(self._device_ids))

    def __len__(self) -> int:
        """How many names there are: of a compact snapshot one for each row."""
        return self._count if self._device_ids is None else len(self._device_ids)

    def of(self, rows: Any) -> Array:
        """The names of these rows, NumPy's on every device: uint64[n] if all are integers and none
        is negative, int64[n] if all fit that, else objects, each an int or a str. rows: integers,
        an array or a list. Raises IndexError on one that is none, BatchError on anything else."""
        rows = places(rows, len(self), "rows")
        return self._names.of(rows if self._ids is None else self._ids[rows])

    def with_rows(self, ids: Array) -> FrozenNames:
        """The same names for other rows. ids: uint32, rising: the id behind each row."""
        return FrozenNames(self._names, self._count, ids)

    @cached_property
    def form(self) -> Form:
        """Of the columns that hold any of these names: see forms.py."""
        return self._names.form(np.arange(self._count) if self._ids is None else self._ids)

    def columns(self, end: str, rows: Array) -> dict[str, Array]:
        """The names of rows as columns that a file of typed columns takes, the first called `end`:
        see forms.py. They have the same names and types whatever the rows."""
        return flattened(end, self.of(rows), self.form)

    def find(self, name: Name) -> int | None:
        """The row of a name; None if no row goes by it. Raises BatchError for what is no name."""
        return self._find(name_of(name, "name"))

    def _find(self, name: Name) -> int | None:
        row = int(self.look_up(column_of(name, "name"))[0])
        return None if row < 0 else row

    def look_up(self, names: Column) -> Array:
        """int64[n]: the rows of names, -1 for each that no row goes by."""
        ids = self._names.look_up(names).astype(np.int64)
        if self._ids is None:
            return np.where(ids < self._count, ids, -1)
        rows: Array = places_of(ids, self._ids)
        return rows

    def row(self, name: Any, what: str = "vertex") -> int:
        """The row of a name. Raises VertexError if no row goes by it; `what` is whose argument it
        is."""
        asked = name_of(name, what)
        row = self._find(asked)
        if row is not None:
            return row
        hint = ""
        if isinstance(asked, int) and self._find(str(asked)) is not None:
            hint = "; the text is there, in quotes"
        elif isinstance(asked, str) and self._find_integer(asked):
            hint = "; the integer is there, without quotes"
        raise VertexError(f"{what}: there is no vertex {asked!r:.60}{hint}")

    def _find_integer(self, text: str) -> bool:
        """Whether the integer that this text spells is a name."""
        is_one = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_NAME))
        return is_one and int(text) <= MAX_NAME and self._find(int(text)) is not None


def places(given: Any, count: int, name: str) -> Array:
    """intp[n]: what is given, integers from 0 to count - 1. Raises IndexError on others, BatchError
    on what is no integer."""
    column = np.atleast_1d(to_host(as_array(given, name)))
    if column.size and column.dtype.kind not in "iu":
        raise BatchError(f"{name}: integers from 0 on, not {column.dtype}")
    if column.size and not 0 <= int(column.min()) <= int(column.max()) < count:
        raise IndexError(f"{name} go from 0 to {count - 1}")
    return column.astype(np.intp, copy=False)


def names_of(ids: Array, kinds: Array, keys: Array, bounds: Array, blob: Array) -> Array:
    """The names of ids in a dictionary with these columns: see `Names.of`."""
    ids = ids.astype(np.intp, copy=False)
    kinds, keys = kinds[ids], keys[ids]
    if not kinds.any():
        return keys
    negative, text = kinds == NEGATIVE, kinds == TEXT
    if not text.any() and not bool((keys[~negative] >> np.uint64(63)).any()):
        return keys.view(np.int64)
    names = np.empty(keys.shape, object)
    whole = ~text
    names[whole] = keys[whole].astype(object)
    names[negative] = keys.view(np.int64)[negative].astype(object)
    names[text] = _texts(keys[text], bounds, blob)
    return names


def _texts(numbers: Array, bounds: Array, blob: Array) -> Any:
    """These texts, as str. Many are gathered in compiled code, and made by pyarrow."""
    if len(numbers) < MANY:
        data, of_text = blob.data, numbers.astype(np.intp)
        places = zip(bounds[of_text].tolist(), bounds[of_text + 1].tolist(), strict=True)
        return [str(data[start:end], "utf-8") for start, end in places]

    pyarrow = importlib.import_module("pyarrow")
    at = numbers.astype(np.intp)
    offsets = np.zeros(len(at) + 1, np.int64)
    np.cumsum(bounds[at + 1] - bounds[at], out=offsets[1:])
    into = np.empty(int(offsets[-1]), np.uint8)
    ends = offsets[1:]
    from .table import copy_texts

    copy_texts(id(numbers), len(at), id(bounds), id(blob), id(ends), id(into))
    buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(into)]
    array = pyarrow.LargeStringArray.from_buffers(len(at), buffers[1], buffers[2])
    return array.to_numpy(zero_copy_only=False)
