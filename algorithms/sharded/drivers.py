"""The public functions of `algorithms` over shards: programs run, and what the shards found is put
together. Arguments are those that the functions have admitted (`algorithms.arguments`).

The results are those of one device, bit for bit where they are integers; ranks differ in the last
bits, since sums are taken in another order. Arrays are NumPy's, over all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from lpma.errors import BatchError, VertexError
from lpma.names import FrozenNames

from .. import arguments
from ..arrays import Array
from ..diversity import Diverse, by_name

MOST_ROWS = int(np.iinfo(np.int32).max)


class ProgramRunner(Protocol):
    """What a driver needs of a ShardedSnapshot."""

    names: FrozenNames | None
    num_rows: int

    def run(self, program: str, **params: Any) -> list[Any]:
        """What a program came to, of each shard."""

    def assembled(self, values: list[Array]) -> Array:
        """One array over all rows of each shard's values for its own."""


def bfs(s: ProgramRunner, source: Any) -> Array:
    _check_rows(s)
    start = arguments.row(s.names, s.num_rows, source, "source")
    found = s.run("bfs", source=start)
    if not found[0][1]:
        raise VertexError(f"source: there is no vertex {source} (no edge has it; nor was it added)")
    return s.assembled([hops for hops, _ in found])


def connected_components(s: ProgramRunner) -> Array:
    _check_rows(s)
    return s.assembled(s.run("connected_components"))


def core_numbers(s: ProgramRunner, method: str) -> Array:
    if not isinstance(method, str) or method not in ("auto", "h-index"):
        raise BatchError(
            "method: over shards core numbers are found by h-indices alone: choose auto or "
            f"h-index, not {arguments.shown(method)}, or give s.gather()"
        )
    return s.assembled(s.run("core_numbers"))


def diversity(s: ProgramRunner, model: str, k: int, method: str) -> Array:
    return s.assembled(s.run("diversity", model=model, k=k, method=method))


def top_diversity(
    s: ProgramRunner, model: str, k: int, t: int, devices: Any, method: str
) -> list[Diverse]:
    if devices is not None:
        raise BatchError(
            "devices: over shards each works on its own device; leave it, or give s.gather()"
        )
    found = s.run("top_diversity", model=model, k=k, t=t, method=method)
    best = sorted((one for part in found for one in part), key=lambda one: (-one[1], one[0]))
    diverse = [Diverse(*one) for one in best[:t]]
    return diverse if s.names is None else [by_name(s.names, one) for one in diverse]


def pagerank(
    s: ProgramRunner, damping: float, tol: float, max_iter: int, weighted: bool
) -> tuple[Array, bool]:
    """The ranks, and whether they changed by less than tol in the last round."""
    _check_rows(s)
    found = s.run("pagerank", damping=damping, tol=tol, max_iter=max_iter, weighted=weighted)
    return s.assembled([ranks for ranks, _ in found]), found[0][1]


def triangle_count(s: ProgramRunner) -> int:
    return sum(s.run("triangle_count"))


def _check_rows(s: ProgramRunner) -> None:
    if s.num_rows > MOST_ROWS:
        raise BatchError(f"{s.num_rows:,} vertices: at most 2^31 - 1 are taken")


DRIVERS: Mapping[str, Callable[..., Any]] = {
    "bfs": bfs,
    "connected_components": connected_components,
    "core_numbers": core_numbers,
    "diversity": diversity,
    "pagerank": pagerank,
    "top_diversity": top_diversity,
    "triangle_count": triangle_count,
}
