"""Results over the rows of a snapshot, and the same by its vertices.

An algorithm finds rows: small integers, where the graph lies. What they go by, names or the ids of
a compact snapshot, is looked up only when somebody asks, since millions of names take seconds.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from ..arrays import Array, to_host


class OfRows:
    """A base of named tuples, some fields of which hold rows: a row, an array of rows, or a list or
    tuple of these; −1 is no row. `vertices` is the same with vertices in place of rows."""

    row_fields: ClassVar[tuple[str, ...]]
    is_by_row: ClassVar[bool] = False  # whether all fields have an entry for each row

    _of: Any = None  # what the rows go by, as `go_by` has it

    def of(self, s: Any) -> Self:
        """This result, whose rows are those of a graph."""
        self._of = go_by(s)
        return self

    @property
    def vertices(self) -> Self:
        """The same with vertices in place of rows: names, NumPy's on every device, or the ids of a
        compact snapshot, None for no row. Where rows are the vertices, this result itself."""
        if self._of is None:
            return self
        found: Any = self
        named = {field: _replaced(self._of, getattr(self, field)) for field in self.row_fields}
        replaced: Self = found._replace(**named)
        return replaced


def go_by(s: Any) -> Any:
    """What the rows of a graph go by, for `vertices_of`; None if by themselves."""
    names = getattr(s, "names", None)
    return names if names is not None else getattr(s, "_ids", None)


def vertices_of(of: Any, rows: Any) -> Array:
    """What these rows, an array or a list, go by, on the host; `of`: as by `go_by`."""
    if of is None:
        return np.asarray(to_host(rows))
    rows = np.asarray(to_host(rows))
    found: Array = of.of(rows) if hasattr(of, "of") else to_host(of)[rows]
    return found


def _replaced(of: Any, rows: Any) -> Any:
    if isinstance(rows, list | tuple):
        return type(rows)(_replaced(of, one) for one in rows)
    if np.ndim(rows) == 0:
        return vertices_of(of, [rows]).tolist()[0]
    rows = np.asarray(to_host(rows))
    is_row = rows >= 0
    if is_row.all():
        return vertices_of(of, rows)
    found = np.full(len(rows), None, object)
    found[is_row] = vertices_of(of, rows[is_row])
    return found
