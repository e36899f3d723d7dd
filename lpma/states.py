"""What a snapshot knows of the one before it: see `follow`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy.typing as npt

Array = npt.NDArray[Any]

KEY = "followed"  # in a snapshot's views: its Link


@dataclass(eq=False)
class State:
    """The rows of one version, and of what is derived from them what the next may follow."""

    version: int
    indptr: Array
    indices: Array
    views: dict[str, Any] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return self.indptr.nbytes + self.indices.nbytes


class Since(NamedTuple):
    """An earlier state, and the keys that batches touched since, each once, ascending."""

    before: State
    keys: Array  # uint64, without vertex markers
    there: Array  # bool: whether each is an edge now


class Link(NamedTuple):
    """The state of a snapshot, and how it came from an earlier one; None: it was made anew."""

    state: State
    since: Since | None


def link_of(s: Any) -> Link | None:
    """How a snapshot follows another; None if it has no state."""
    link: Link | None = s.views.get(KEY)
    return link
