"""Expiry against a dictionary with times, and the front against the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lpma
from lpma import Batch, Columns, Graph, Kind
from lpma import expiry as expiry_module
from lpma.arrays import to_host
from lpma.errors import BatchError
from lpma.keys import ends_of
from tests.support.oracles import ModelGraph, agree, assert_same, host
from tests.support.strategies import Burst, Config, batches, configs

FIRST, LAST = -(2**63), 2**63 - 1
KINDS = [Kind.APPEND] * 8 + [Kind.DELETE] * 2 + [Kind.EXPIRE]


def check_front(graph: Graph) -> None:
    """Invariants 1 and 2 of expiry.py, and those of the store."""
    graph.check()
    front = graph._stores.expiry
    if front.horizon is None:
        assert front.nbytes == 0
        return
    parts = [(front._keys, front._times), *front._late]
    keys = np.concatenate([to_host(keys) for keys, _ in parts])
    times = np.concatenate([to_host(times) for _, times in parts])
    assert (np.diff(to_host(front._times)) >= 0).all()
    assert front._held <= front._most
    assert front.nbytes == 16 * len(keys)
    entries = {}
    for u, v, t in zip(*(end.tolist() for end in ends_of(keys)), times.tolist(), strict=True):
        entries[u, v, t] = True
        if not graph.directed:
            entries[v, u, t] = True
    out = graph._stores.out
    held, _, stored = map(to_host, out.backend.slots(out.segments))
    u, v = ends_of(held)
    for edge in zip(u.tolist(), v.tolist(), stored.tolist(), strict=True):
        assert edge[1] == 2**32 - 1 or edge[2] >= front.horizon or edge in entries


def in_step(graph: Graph, model: ModelGraph, stream: list[Columns], opera: bool = True) -> None:
    for batch in stream:
        since = model.version
        assert_same(list(graph.apply(batch, opera)), model.apply(batch))
        agree(graph, model)
        assert_same(graph.changes(since), model.changes(since))
        check_front(graph)


@given(st.data(), configs(times=True), st.booleans())
def test_drawn_streams(device: str, data: st.DataObject, config: Config, opera: bool) -> None:
    stream = data.draw(st.lists(batches(config.queries, expires=True), max_size=6))
    in_step(config.graph(device), config.model(), stream, opera)


def windows(config: Config, seed: int, rounds: int, size: int, span: int, late: int) -> Any:
    """A stream in time, each batch with expiries among its rows: (columns) of each batch."""
    rng = np.random.default_rng(seed)
    kinds = np.array([*KINDS, *config.queries[:3]])
    for now in range(0, 10 * rounds, 10):
        kind = rng.choice(kinds, size)
        kind[rng.random(size) < 0.3] = Kind.APPEND
        time = now + rng.integers(-late, 10, size)
        time[kind == Kind.EXPIRE] -= 50
        weight = rng.integers(-8, 25, size).astype(np.float32) / 4
        yield Batch.from_columns(
            kind, rng.integers(0, span, size), rng.integers(1, span, size) % 200, weight, time
        )


@settings(max_examples=12)
@given(
    configs(times=True), st.integers(0, 2**32), st.sampled_from([3, 40, 150]),
    st.sampled_from([4, 30]), st.sampled_from([0, 5, 60]),
)  # fmt: skip
def test_windows(device: str, config: Config, seed: int, size: int, span: int, late: int) -> None:
    stream = list(windows(config, seed, 12, size, span, late))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expiry_module, "SMALL", 4)
        patch.setattr(expiry_module, "LATE", 2)
        in_step(config.graph(device), config.model(), stream)
