"""What a snapshot knows of the one before it: see `follow`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy.typing as npt

from .rows import Batches, Rows, net

Array = npt.NDArray[Any]

KEY = "followed"  # in a snapshot's views: its Link


@dataclass(eq=False)
class State:
    """The rows of one version, and of what is derived from them what the next may follow."""

    version: int
    rows: Rows
    views: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Since:
    """An earlier state, and the keys that batches touched since."""

    before: State
    batches: Batches

    @cached_property
    def changes(self) -> tuple[Array, Array]:
        """The keys, uint64, each once, ascending, without vertex markers; and whether each is an
        edge now."""
        return net(self.batches)


class Link(NamedTuple):
    """The state of a snapshot, and how it came from an earlier one; None: it was made anew."""

    state: State
    since: Since | None


def link_of(s: Any) -> Link | None:
    """How a snapshot follows another; None if it has no state."""
    link: Link | None = s.views.get(KEY)
    return link
