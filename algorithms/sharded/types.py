"""What the shards of one graph and whoever drives them agree on.

A graph is spread over S shards. Shard i owns some vertices and holds their rows: a `Part`. A
*program* runs on all shards in lockstep, as a generator on each. A *superstep* is one yield: every
shard hands out a message for each shard and one small value; then every shard receives what the
others addressed to it, and all values. So each shard knows what all know, and all of them make the
same decisions: none ends a program before another.

Messages are tuples of arrays, where the shard's arrays lie. None is an empty one, and costs
nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from lpma.arrays import array_module, device_of
from lpma.errors import LpmaError

if TYPE_CHECKING:
    from lpma.names import FrozenNames
    from lpma.snapshot.snapshot import Snapshot

Array = npt.NDArray[Any]  # or cupy.ndarray
Message = tuple[Array, ...]
Messages = list[Message | None]  # one for each shard, to it or from it

# What a program yields (messages, value), what it is sent (messages, all values), its result.
Steps = Generator[tuple[Messages, Any], tuple[Messages, list[Any]], Any]


@dataclass(frozen=True, eq=False)
class Part:
    """What one shard holds of a graph: the rows of the vertices that it owns, as of one epoch.

    shard, shards  its number, and how many there are
    indptr         int64[n+1], over all rows that the shard knows of; a row that it does not own is
                   empty. n may differ from shard to shard
    indices        uint32[m], sorted within a row
    weights        float32[m] or float64[m]; None for an unweighted graph
    times          int64[m]; None for a graph without times
    version, time  of the shard's graph
    directed       whether the whole graph is. Of an undirected one the rows of both ends of an edge
                   hold it, each at its owner
    bounds         who owns row v: shard i if bounds[i] ≤ v < bounds[i + 1]; None: by its hash,
                   `lpma.sharding.owners_of(v, shards)`
    added          uint32, ascending: the vertices added by themselves
    in_part        the same of the transposed graph, if the shard keeps it; of a directed graph
    names          what the rows go by; None: by their ids. A part with names has ids of its own
                   until `number_names` gives its rows numbers that all shards share

    >>> graph = lpma.Graph(device="cpu")
    >>> graph.insert([0, 0, 2], [1, 2, 0])
    >>> part = algorithms.sharded.Part.of(graph.snapshot(), shard=0, shards=1)
    >>> part.num_rows, part.indices.tolist()
    (3, [1, 2, 0])
    """

    shard: int
    shards: int
    indptr: Array
    indices: Array
    weights: Array | None
    times: Array | None
    version: int
    time: int
    directed: bool = True
    bounds: tuple[int, ...] | None = None
    added: Array = field(default_factory=lambda: np.empty(0, np.uint32))
    in_part: Part | None = None
    names: FrozenNames | None = None

    @property
    def num_rows(self) -> int:
        """The rows that the shard knows of: 1 + the largest id in its part."""
        return len(self.indptr) - 1

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        shard: int,
        shards: int,
        *,
        directed: bool = True,
        in_snapshot: Snapshot | None = None,
    ) -> Part:
        """The part that a shard's own graph makes.

        snapshot: of its graph, a directed one, not compact. directed: whether the whole graph is.
        in_snapshot: of the graph of the turned edges, as of the same epoch. A graph with names is
        given without it: its in-edges are found by exchange."""
        other = None
        if in_snapshot is not None and snapshot.names is None:
            other = cls.of(in_snapshot, shard, shards)
        with device_of(snapshot._indptr):
            none = array_module(snapshot._indptr).empty(0, np.uint32)
        return cls(
            shard, shards, snapshot._indptr, snapshot._indices, snapshot._weights, snapshot._times,
            snapshot.version, snapshot.time, directed, None,
            none if snapshot._added is None else snapshot._added, other, snapshot.names,
        )  # fmt: skip


@dataclass(frozen=True)
class Facts:
    """What a shard tells about its part."""

    num_rows: int
    entries: int
    loops: int  # of an undirected graph; 0 of a directed one
    version: int
    time: int
    directed: bool
    bounds: tuple[int, ...] | None  # as of its Part
    named: bool  # whether its rows go by names that are not yet numbered


class Overtaken(LpmaError, RuntimeError):
    """Another program was begun on these workers meanwhile, which goes on: begin this one again."""


class Control(NamedTuple):
    """What whoever drives workers tells each of them with a step."""

    run: str | None  # which run of a program it is: as `begin` was told
    said: list[Any]  # each worker's (is_done, value) of the last step; empty at first


@runtime_checkable
class Workers(Protocol):
    """The workers of all shards, as whoever drives them sees them: worker i holds part i.

    One program runs at a time: beginning another ends it, and its next step raises Overtaken. A
    call that fails on one worker raises, and the program is to be begun anew."""

    size: int

    def begin(self, program: str, params: dict[str, Any]) -> None:
        """Begin a program of `PROGRAMS` on every worker."""

    def step(self, control: Control) -> list[Any]:
        """One superstep of every worker. Brings their messages to each other for the next one.
        control: a Control, for every worker. Returns each worker's (is_done, value)."""

    def results(self) -> list[Any]:
        """What the program came to, of each worker. Programs return arrays of the host."""

    def call(self, method: str, *args: Any) -> list[Any]:
        """worker.method(*args) of every worker. An error is raised when no other is at it any more,
        unless it is out of reach."""
