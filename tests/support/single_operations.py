"""Streams of one operation at a time, and counts of which way each went."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import lpma
from lpma.backend.defaults import Defaults
from lpma.engine import opera, single
from lpma.engine.stores import Stores
from tests.support.strategies import Config, ids, times

INSERT, DELETE, ADD, REMOVE = range(4)
SET = int(lpma.Kind.SET)


@dataclass(frozen=True)
class Operation:
    """SingleOperations call of a graph or of its model."""

    kind: int
    u: int
    v: int
    weight: float
    time: int

    def do(self, graph: Any) -> None:
        if self.kind == INSERT:
            graph.insert(self.u, self.v, self.weight, self.time)
        elif self.kind == SET:
            graph.set(self.u, self.v, self.weight, self.time)
        elif self.kind == DELETE:
            graph.delete(self.u, self.v, self.time)
        elif self.kind == ADD:
            graph.add_vertices(self.u, self.time)
        else:
            graph.remove_vertices(self.u, self.time)


WEIGHTS = (1.0, 0.25, 3.0, 0.0, -0.25, -1.0, -7.0, 1e-50, 2.0**24, 1e30, -1e30, 0.1)


def operations() -> st.SearchStrategy[Operation]:
    kinds = st.sampled_from([INSERT] * 8 + [SET] * 3 + [DELETE] * 3 + [ADD] * 2 + [REMOVE])
    return st.builds(Operation, kinds, ids(), ids(), st.sampled_from(WEIGHTS), times())


def many(seed: int, n: int, span: int, deletes: float) -> list[Operation]:
    """Operations from a seed, with few loops and few vertices by themselves."""
    rng = np.random.default_rng(seed)
    kind = np.where(rng.random(n) < deletes, DELETE, INSERT)
    rare = rng.random(n)
    kind[rare < 0.03] = ADD
    kind[rare > 0.85] = SET
    u, v = rng.integers(0, span, (2, n))
    weight, time = rng.integers(-4, 25, n) / 4, rng.integers(0, 50, n)
    rows = (kind, u, v, weight, time)
    return [Operation(*row) for row in zip(*(column.tolist() for column in rows), strict=True)]


class Ways:
    """How many updates went the short way, and how many that of a batch."""

    def __init__(self) -> None:
        self.short = self.batches = 0


@contextmanager
def counted() -> Iterator[Ways]:
    ways, by_itself, apply = Ways(), single.SingleOperations._by_itself, opera.apply

    def short(self: single.SingleOperations, *given: Any) -> bool:
        done = by_itself(self, *given)
        ways.short += done
        return done

    def batch(*given: Any) -> opera.Outcome:
        ways.batches += 1
        return apply(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single.SingleOperations, "_by_itself", short)
        patch.setattr(single, "apply", batch)
        yield ways


def pair(device: str, config: Config) -> tuple[lpma.Graph, lpma.Graph]:
    """Two empty graphs; the second does everything by batches. Their clocks stand still, so that
    the hybrid strategy decides alike."""
    made = [lpma.Graph(device=device, clock=lambda: 0.0, **asdict(config)) for _ in range(2)]
    backend = made[1]._stores.out.backend
    for name in ("find_edge", "find_neighbors", "count_neighbors_of", "update_one"):
        setattr(backend, name, partial(getattr(Defaults, name), backend))
    return made[0], made[1]


def does_singles(stores: Stores) -> bool:
    """Whether the backend has a way of its own for one operation."""
    update: Any = stores.out.backend.update_one  # a method of the backend, or of one of its parts
    return getattr(update, "__func__", None) not in (None, Defaults.update_one)


def short_way(g: lpma.Graph) -> None:
    if not does_singles(g._stores):
        pytest.skip("this backend has none")
