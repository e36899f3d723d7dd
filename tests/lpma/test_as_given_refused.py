"""What is refused of batches of plain arrays, which a device takes as they are (admission.py): the
errors are those of the host, and the graph is as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lpma
from lpma import Batch, BatchError, Kind
from lpma.arguments.convert import NO_VERTEX
from lpma.backend.cuda.upload import staging
from tests.support.plain_arrays import LARGE, N, assert_same_graph, by_the_slow_way, held, rows

BAD = [
    ("src", "int64", -1), ("dst", "int64", -(2**63)), ("dst", "int64", NO_VERTEX),
    ("src", "int64", 2**32), ("src", "int64", 2**63 - 1), ("src", "int32", -1),
    ("dst", "int32", -(2**31)), ("src", "int16", -7), ("src", "uint32", NO_VERTEX),
    ("src", "uint64", 2**64 - 1), ("weight", "float32", np.nan), ("weight", "float32", np.inf),
    ("weight", "float64", -2e30),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def kernel(device: str) -> None:
    staging.compiled.get_ready()


@pytest.mark.parametrize("n, where", [(N, 0), (N, N - 1), (LARGE, LARGE - 1)])
@pytest.mark.parametrize("name, dtype, value", BAD)
@pytest.mark.parametrize("predecessors", [False, True])
def test_one_bad_row(
    device: str, name: str, dtype: str, value: Any, n: int, where: int, predecessors: bool
) -> None:
    if predecessors and where == 0:
        return
    src, dst, weight, time = rows(6, n)
    given = {"src": src, "dst": dst, "weight": weight, "time": time}
    g = lpma.Graph(device=device, predecessors=predecessors)
    g.insert(src[:100], dst[:100], 1.0, 0)
    before = held(g), g.version
    given[name] = given[name].astype(dtype)
    given[name][where] = value
    for _ in range(3):  # more than there are blocks
        with pytest.raises(BatchError) as here:
            g.insert(**given)
    with pytest.raises(BatchError) as there:
        Batch.from_columns(Kind.INSERT, *given.values())
    assert str(here.value) == str(there.value)
    assert g.version == before[1]
    for now, then in zip(held(g), before[0], strict=True):
        np.testing.assert_array_equal(now, then)
    g.check()
    given[name][where] = 1  # and the next batch is none the worse for it
    g.insert(**given)
    first = Kind.INSERT, src[:100], dst[:100], np.ones(100), np.zeros(100, np.int64)
    second = (
        Kind.INSERT,
        *(a if a.dtype.kind == "f" else a.astype(np.int64) for a in given.values()),
    )
    assert_same_graph(g, by_the_slow_way(first, second, predecessors=predecessors))


@pytest.mark.parametrize("name", ["src", "dst", "weight", "time"])
@pytest.mark.parametrize("dtype", ["bool", "object", "U3", "complex128", "M8[ms]", "m8[ms]"])
def test_types_that_are_refused_or_read(device: str, name: str, dtype: str) -> None:
    given = dict(zip(("src", "dst", "weight", "time"), rows(7), strict=True))
    given[name] = given[name].astype(np.int64).astype(dtype)
    outcomes = []
    for where in (device, "cpu"):
        g = lpma.Graph(device=where)
        try:
            g.insert(**given)
            outcomes.append((g.num_edges, ""))
        except BatchError as error:
            outcomes.append((g.num_edges, str(error)))
    assert outcomes[0] == outcomes[1]


def test_lengths_that_differ(device: str) -> None:
    src, dst, weight, time = rows(9)
    g = lpma.Graph(device=device)
    for columns in (
        (src, dst[1:], 1.0, 0), (src, dst, weight[1:], 0), (src, dst, weight, time[1:]),
    ):  # fmt: skip
        with pytest.raises(BatchError, match="rows"):
            g.insert(*columns)
    assert g.num_edges == g.version == 0
