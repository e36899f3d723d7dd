"""The dictionary in a saved graph that is only read: what ids go by needs no table, which is made
when a name is first looked up."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import FormatError
from .column import Column, Name
from .dictionary import Names
from .files import NamesImage, column_of_file
from .forms import Form, form_of_keys
from .frozen import FrozenNames, names_of, places

Array = npt.NDArray[Any]


class StoredNames:
    """What `Names` says of names that never change. The columns are those of a file; raises
    FormatError if they are no dictionary's."""

    def __init__(self, kinds: Array, keys: Array, ends: Array, blob: Array, file: str) -> None:
        column = column_of_file(kinds, keys, ends, blob)
        if column is None:
            raise FormatError(f"{file}: its columns are no dictionary of names")
        self._column, self._file = column, file

    def __len__(self) -> int:
        return len(self._column)

    def of(self, ids: Any) -> Array:
        """See Names.of."""
        its = self._column
        return names_of(places(ids, len(its), "ids"), its.kinds, its.keys, its.bounds, its.blob)

    def form(self, ids: Array) -> Form:
        """See Names.form."""
        return form_of_keys(self._column.kinds[ids], self._column.keys[ids])

    def frozen(self, ids: Array | None = None, rows: int | None = None) -> FrozenNames:
        """See Names.frozen."""
        return FrozenNames(self, len(self) if rows is None else rows, ids)

    def image(self) -> NamesImage:
        """See Names.image."""
        its = self._column
        return NamesImage(its.kinds, its.keys, its.bounds[1:], its.blob)

    @cached_property
    def _table(self) -> Names:
        ends = self._column.bounds[1:].astype(np.uint64)
        return Names.of_columns(
            self._column.kinds, self._column.keys, ends, self._column.blob, self._file
        )

    def look_up(self, names: Column) -> Array:
        """See Names.look_up."""
        return self._table.look_up(names)

    def find(self, name: Name) -> int | None:
        """See Names.find."""
        return self._table.find(name)
