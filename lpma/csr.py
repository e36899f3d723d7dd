"""The arrays of a snapshot, and what is derived from them: what exports and analyses read.

Snapshot (snapshot.py) adds the exports, which read nothing else.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import late, presence, states
from .arrays import array_module, count_true, device_of

if TYPE_CHECKING:
    from .names import FrozenNames

Array = npt.NDArray[Any]  # or cupy.ndarray


@dataclass(frozen=True, eq=False)
class Csr:
    """A graph in compressed sparse rows. `Snapshot` says what the fields are."""

    indptr: Array
    indices: Array
    weights: Array | None
    times: Array | None
    num_edges: int
    version: int
    time: int
    directed: bool = True
    ids: Array | None = None
    added: Array | None = None
    names: FrozenNames | None = None
    views: dict[str, Any] = field(default_factory=dict, repr=False)  # derived, cached by algorithms

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What an instance lacks: rows and columns that are made late, or nothing of this
            name."""
            with suppress(KeyError):
                if name in late.NAMES:
                    return late.filled_in(self)[name]
                if name in states.NAMES:
                    return states.filled_in(self)[name]
            raise AttributeError(f"{type(self).__name__} has no {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        """To be pickled, or copied: a copy follows no other snapshot."""
        views = {name: view for name, view in self.views.items() if name != states.KEY}
        states.filled_in(self)
        return late.filled_in(self) | {"views": views}

    @property
    def num_rows(self) -> int:
        """Rows: 1 + the largest id present (or the number of ids, when compact)."""
        link = states.link_of(self)
        return len(self.indptr) - 1 if link is None else link.state.rows.num_rows

    @cached_property
    def present(self) -> Array:
        """bool[n], on the snapshot's device: whether each row is a vertex. One pass over `indices`
        at the first call, kept from then on; do not write to it."""
        with device_of(self.indptr):
            if self.added is None:
                every: Array = array_module(self.indptr).ones(self.num_rows, np.bool_)
                return every
            return presence.of_rows(self.indptr, self.indices, not self.directed, self.added)

    @cached_property
    def num_vertices(self) -> int:
        """Vertices: the rows that are `present`."""
        with device_of(self.indptr):
            return count_true(self.present)
