"""What a device must offer: a handful of coarse operations on a store's arrays.

Host logic (strategies, bounds, expansion, batches, statistics) is written once against this
protocol. A backend is not a second store: it sorts a batch, locates it, carries out plans,
answers queries and exports, and knows nothing of why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..stats import Stats

Array = npt.NDArray[Any]

# The keys that a row of a batch gives a store: (src, dst), (dst, src), or both for an undirected
# graph.
FORWARD, REVERSE, BOTH = 0, 1, 2


@dataclass(frozen=True)
class Costs:
    """What global_merge="auto" weighs, in slots moved, measured (docs/notes/batches-cpu.md):
    merging a touched leaf in place; a slot of a larger window, gathered and then spread; a slot of
    a global merge."""

    leaf: float
    window: float
    merge: float


class Located(Protocol):
    """A sorted, located batch: what each key operation does, and the leaves it touches."""

    @property
    def num_touched(self) -> int: ...
    @property
    def tally(self) -> Any: ...
    @property
    def delta(self) -> int: ...
    @property
    def unchanged(self) -> Sequence[int]: ...  # [2 * REASONS], once moved: see unchanged.py
    def on_expanded(self, levels: int) -> Any: ...


class Backend(Protocol):
    """One instance a store. `segments` is the backend's own record of a store's arrays; the
    host reads only its m, num_slots, segment_size and nbytes. A plan is the backend's own too:
    the host reads its `redundant` and `num_rounds`.

    `written` says that a batch has changed what is published before the host commits it: that a
    plan is written there (`withdraw` takes it back), or the batch was merged at once. The host
    clears it when the batch is whole. REQUIRES of `keys`, `locate`, `merge_small`, `plan`,
    `reserve`, `reserve_mixed`, `expand` and `rebuild`: where they raise MemoryError or BatchError
    and `written` is False, all is as it was."""

    name: str
    written: bool
    validates: bool  # whether `locate` checks the rows of unchecked columns
    costs: Costs
    way_out: str  # what to do where `most_levels` are not enough

    @property
    def buffer_bytes(self) -> int: ...

    def most_levels(self, segment_size: int) -> int:
        """The highest m that its arithmetic can number. The host makes none higher."""

    def empty(self, segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool) -> Any: ...
    def build(
        self, segment_size: int, m: int, keys: Array, weights: Array | None, times: Array | None
    ) -> Any: ...
    def expand(self, segments: Any) -> Any: ...
    def shrink(self, segments: Any, most: Array) -> tuple[Any, Array]: ...
    def columns(self, columns: Any, time: Array, weight_dtype: np.dtype[Any] | None) -> Any: ...
    def keys(
        self, batch: Any, columns: Any, lo: int, hi: int, direction: int,
        more: tuple[Array, Array] | None = None,
    ) -> tuple[Any, Any]: ...  # fmt: skip
    def locate(
        self, segments: Any, batch: Any, key: Any, place: Any, versions: bool, strategy: str
    ) -> Any: ...
    def merge_small(
        self, segments: Any, batch: Any, columns: Any, direction: int, strategy: str,
        most_cost: float, stats: Stats,
    ) -> tuple[Any, Any]: ...  # (merged, None), (None, located) or (None, None)  # fmt: skip
    def plan(self, strategy: str, segments: Any, located: Any) -> Any: ...
    def withdraw(self, located: Any) -> None: ...
    def held_above_leaves(self, plan: Any, segments: Any) -> int: ...
    def count_work(self, plan: Any, located: Any, segments: Any, stats: Stats) -> int: ...
    def reserve(self, segments: Any, located: Any, plan: Any, shrinking: int) -> None: ...
    def reserve_mixed(self, segments: Any, rows: int, room: int) -> None: ...
    def move(self, segments: Any, located: Any, plan: Any) -> None: ...
    def rebuild(self, segments: Any, located: Any, m: int) -> Any: ...
    def compact(self, segments: Any, located: Any, strategy: str) -> Any: ...
    def wait(self) -> None: ...
    def changes(self, located: Any, most: int) -> tuple[Array, Array] | None: ...
    def find_edges(
        self, segments: Any, batch: Any, src: Array, dst: Array, limits: Array | None
    ) -> Any: ...
    def count_neighbors(
        self, segments: Any, batch: Any, u: Array, limits: Array | None
    ) -> Array: ...
    def neighbors(
        self, segments: Any, batch: Any, u: Array, limits: Array | None, values: bool
    ) -> Any: ...
    def has_in_edges(self, segments: Any, batch: Any, v: Array, limits: Array | None) -> Array: ...
    def scan_targets(self, segments: Any, batch: Any, v: Array, limits: Array | None) -> Any: ...
    def largest_vertex(self, segments: Any) -> int: ...
    def csr(self, segments: Any, num_vertices: int, num_edges: int, markers: bool) -> Any: ...
    def slots(
        self, segments: Any, values: bool = True
    ) -> tuple[Array, Array | None, Array | None]: ...
    def copy_slots(
        self, segments: Any, keys: Array, weights: Array | None, times: Array | None
    ) -> None: ...  # to the host
    def host_memory(self, size: int) -> Array: ...
    def trim(self, segments: Any, batch: Any) -> None: ...


class Place(Protocol):
    """Where the stores of a graph are. Entered, by one thread at a time, it makes its device the
    current one, for whatever the host's logic does there with arrays."""

    def __enter__(self) -> Any: ...
    def __exit__(self, *error: object) -> None: ...
    def near(self, values: Any) -> Any:
        """What a caller gave, where the stores can read it: on the host, or here."""

    def take_in(self) -> None:
        """The stores' work from now on is after what the caller's stream has under way."""
