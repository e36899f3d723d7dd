"""The interface between the shards of a graph and whoever drives them.

A graph is spread over S shards. Shard i owns some vertices and holds their rows: a `Part`. A
*program* runs on all shards in lockstep, as a generator on each. A *superstep* is one yield: every
shard gives a message for each shard and one small value, and receives the messages addressed to it
and all values. So all shards make the same decisions: none ends a program before another.

Messages are tuples of arrays on the shard's device. None is an empty one, and costs nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from lpma.arrays import array_module, device_of
from lpma.errors import BatchError, LpmaError
from lpma.time_view import TimeView, rows_in_view

from ...arrays import Array

if TYPE_CHECKING:
    from lpma.names import FrozenNames
    from lpma.snapshot.snapshot import Snapshot

Message = tuple[Array, ...]
Messages = list[Message | None]  # one for each shard, to it or from it

# What a program yields (messages, value), what it is sent (messages, all values), its result.
Steps = Generator[tuple[Messages, Any], tuple[Messages, list[Any]], Any]


@dataclass(frozen=True, eq=False)
class Part:
    """One shard's part of a graph: the rows of the vertices that it owns, as of one epoch.

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
    left           of a bipartite graph without names, how many ids, from 0, are of the left side

    >>> graph = lpma.from_edges([0, 0, 2], [1, 2, 0], device="cpu")
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
    left: int | None = None

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
        in_snapshot: of the graph of reversed edges, as of the same epoch; ignored for a graph with
        names, whose in-edges are found by exchange."""
        other = None
        if in_snapshot is not None and snapshot.names is None:
            other = cls.of(in_snapshot, shard, shards)
        with device_of(snapshot._indptr):
            none = array_module(snapshot._indptr).empty(0, np.uint32)
        return cls(
            shard, shards, snapshot._indptr, snapshot._indices, snapshot._weights, snapshot._times,
            snapshot.version, snapshot.time, directed, None,
            none if snapshot._added is None else snapshot._added, other, snapshot.names,
            snapshot.left if snapshot.names is None else None,
        )  # fmt: skip


def part_in_view(part: Part, view: TimeView) -> Part:
    """What of a part is in a view in time. Raises BatchError if its edges have no times."""
    times = times_of(part)
    with device_of(part.indptr):
        rows = rows_in_view(view, part.indptr, part.indices, part.weights, times)
    columns: dict[str, Any] = dict(
        zip(("indptr", "indices", "weights", "times"), rows, strict=True)
    )
    other = None if part.in_part is None else part_in_view(part.in_part, view)
    return replace(part, **columns, in_part=other)


def times_of(part: Part) -> Array:
    """The times of a part's edges. Raises BatchError if there are none."""
    if part.times is None:
        raise BatchError("since, until, half_life: the edges of the shards have no times")
    return part.times


@dataclass(frozen=True)
class Facts:
    """A summary of a shard's part."""

    num_rows: int
    entries: int
    loops: int  # of an undirected graph; 0 of a directed one
    version: int
    time: int
    directed: bool
    bounds: tuple[int, ...] | None  # as of its Part
    named: bool  # whether its rows go by names that are not yet numbered
    left: int | None = None  # as of its Part


class ProgramPreempted(LpmaError, RuntimeError):
    """Another program was begun on these workers meanwhile, and runs: begin this one again."""


class Control(NamedTuple):
    """What a driver of workers sends each of them with a step."""

    run: str | None  # the run of a program, as passed to `begin`
    said: list[Any]  # each worker's (is_done, value) of the last step; empty at first


@runtime_checkable
class Workers(Protocol):
    """The workers of all shards; worker i holds part i. One program runs at a time: beginning
    another ends it, and its next step raises ProgramPreempted. A call that fails on one worker
    raises; the program must then be begun again."""

    size: int

    def begin(self, program: str, params: dict[str, Any]) -> None:
        """Begin a program of `PROGRAMS` on every worker."""

    def step(self, control: Control) -> list[Any]:
        """One superstep of every worker. Delivers their messages for the next one. Returns each
        worker's (is_done, value)."""

    def results(self) -> list[Any]:
        """Each worker's result of the program. Programs return arrays on the host."""

    def call(self, method: str, *args: Any) -> list[Any]:
        """worker.method(*args) of every worker. An error is raised once all others have finished,
        or are out of reach."""


def run(workers: Workers, program: str, num_rows: int, **params: Any) -> list[Any]:
    """Each worker's result of a program. num_rows: of the whole graph."""
    control = Control(secrets.token_hex(8), [])
    workers.begin(program, {"run": control.run, "num_rows": num_rows, **params})
    while True:
        control = Control(control.run, workers.step(control))
        ended = [is_done for is_done, _ in control.said]
        if all(ended):
            return workers.results()
        assert not any(ended), "workers end a program in the same superstep"
