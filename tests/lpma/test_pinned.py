"""Large batches in pinned memory, whose keys are sent before anybody has looked at them.

What comes of it, nobody sees: whether the batch is applied, refused or turns out to be another kind
of batch. The CPU backend is the oracle."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import lpma
from lpma import BatchError, Kind
from lpma.arguments.convert import MAX_WEIGHT
from lpma.backend.overlapping import ONE_LAUNCH_ROWS
from tests.support.oracles import assert_same

pytestmark = pytest.mark.gpu

SPAN = 3000
SIZES = (ONE_LAUNCH_ROWS, ONE_LAUNCH_ROWS + 1, 200_000)


def filled(rng: np.random.Generator, n: int, kind: Any = 0) -> lpma.Columns:
    batch = lpma.pinned_batch(n)
    batch.src[:], batch.dst[:] = rng.integers(0, SPAN, (2, n))
    batch.kind[:] = kind
    assert batch.weight is not None
    assert batch.time is not None
    batch.weight[:] = rng.integers(-2, 20, n) / 4
    batch.time[:] = rng.integers(0, 1000, n)
    return batch


def overwrite(batch: lpma.Columns) -> None:
    """Once it is applied, or refused, a batch's memory is the caller's again."""
    for column in (batch.kind, batch.src, batch.dst, batch.weight, batch.time):
        assert column is not None
        column[:] = 1


def both(**options: Any) -> tuple[lpma.Graph, lpma.Graph]:
    return lpma.Graph(device="cuda", **options), lpma.Graph(device="cpu", **options)


@pytest.mark.parametrize("directed", [True, False])
def test_batches_of_all_kinds(cupy: Any, directed: bool) -> None:
    """One after the other, with refused ones and queries in between."""
    rng = np.random.default_rng(directed)
    there, here = both(directed=directed)
    for turn in range(12):
        n = SIZES[turn % 3]
        kinds = [0, 1, rng.integers(0, 2, n), rng.choice([0, 0, 0, Kind.DEGREE], n)][turn % 4]
        batch = filled(rng, n, kinds)
        refused = filled(rng, n, kinds)
        refused.kind[n // 2] = 200
        with pytest.raises(BatchError, match="kind"):
            there.apply(refused)
        overwrite(refused)
        expected, got = here.apply(batch), there.apply(batch)
        overwrite(batch)
        assert len(got) == len(expected)
        for number in range(min(50, len(expected))):
            assert_same(got[number], expected[number], f"batch {turn}, query {number}")
        assert_same(there.snapshot(), here.snapshot(), f"batch {turn}")
    there.check()
    assert there.version == here.version == 12


def test_a_query_that_cannot_be_answered(cupy: Any) -> None:
    """It is found when the keys are on their way; nothing is changed, the next batch is whole."""
    rng = np.random.default_rng(5)
    there, here = both()
    for graph in (there, here):
        graph.insert([1, 2], [2, 3], time=0)
    asking = filled(rng, SIZES[2])
    asking.kind[-1] = Kind.PREDECESSORS
    with pytest.raises(BatchError, match="predecessors=True"):
        there.apply(asking)
    overwrite(asking)
    assert_same(there.snapshot(), here.snapshot())
    batch = filled(rng, SIZES[2])
    here.apply(batch)
    there.apply(batch)
    overwrite(batch)
    assert_same(there.snapshot(), here.snapshot())


@pytest.mark.parametrize("n", [100, *SIZES])
@pytest.mark.parametrize("of", ["pinned float32", "device float32", "device float64"])
def test_the_largest_weights(cupy: Any, n: int, of: str) -> None:
    """The limit is of the column's own type, as on the host: the float next to it is larger."""
    where, dtype = of.split()
    there, here = both(weight_dtype=dtype)
    batch = filled(np.random.default_rng(n), n)
    assert batch.weight is not None
    weights = batch.weight if where == "pinned" else batch.weight.astype(dtype)

    def give(graph: lpma.Graph, weight: Any) -> None:
        weights[n // 2] = weight
        if where == "pinned":
            graph.apply(batch)
        else:
            array = cupy.asarray if graph is there else np.asarray
            graph.insert(array(batch.src), array(batch.dst), array(weights), 7)

    largest = weights.dtype.type(MAX_WEIGHT)
    for weight in (largest, -largest):
        give(there, weight)
        give(here, weight)
    for weight in (np.nextafter(largest, weights.dtype.type(np.inf)), np.nan):
        for graph in (there, here):
            with pytest.raises(BatchError, match="weight: finite values"):
                give(graph, weight)
    assert_same(there.snapshot(), here.snapshot())


def test_what_a_graph_was_sent_goes_with_it(cupy: Any) -> None:
    """At once: in a circle it would keep a device's memory until the garbage collector runs."""
    g = lpma.Graph(device="cuda")
    for n in (10, 20_000, SIZES[2]):
        g.apply(filled(np.random.default_rng(n), n))
    assert g.num_edges > 0
    backend: Any = g._stores.out.backend
    sent = weakref.ref(backend.upload)
    gc.disable()
    try:
        del g, backend
        assert sent() is None
    finally:
        gc.enable()


def test_a_batch_that_does_not_come_takes_no_turn(cupy: Any) -> None:
    """The other block's batch may be on its way yet, and be declined: then it is read once more."""
    backend: Any = lpma.Graph(device="cuda")._stores.out.backend
    blocks = backend.upload._blocks
    first = blocks.next()
    assert blocks.next() is first
    blocks.taken()
    second = blocks.next()
    assert second is not first
    assert blocks.next() is second
    blocks.taken()
    assert blocks.next() is first
