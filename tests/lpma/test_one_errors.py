"""What callers may get wrong with one operation at a time: it is refused as in an array, and
changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lpma
from lpma import BatchError
from tests.support.single_operations import pair
from tests.support.strategies import Config

BAD: list[Any] = [
    True, -1, 2**32 - 1, 2**32, 2**63, 2**64, -(2**70), 1.5, "1", None, np.True_, {1}, ...,
    np.float32(2.5), np.datetime64("2020-01-01"), 1j, b"1", [[1]],
]  # fmt: skip


def complaint(call: Callable[[], Any]) -> str:
    with pytest.raises(BatchError) as raised:
        call()
    return str(raised.value)


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_a_bad_vertex_is_refused_as_in_an_array(device: str, bad: Any) -> None:
    g = lpma.Graph(device=device)
    g.insert(range(20), range(1, 21), time=1)
    expected = complaint(lambda: g.successors(bad))
    assert complaint(lambda: g.neighbors(bad)) == expected
    assert complaint(lambda: g.has_edge(bad, 1)) == expected
    assert complaint(lambda: g.edge(bad, 1)) == expected
    assert complaint(lambda: g.degree(bad)) == expected
    assert complaint(lambda: g.edge(1, bad)) == expected.replace("u:", "v:", 1)
    for update in (
        lambda: g.insert(bad, 1), lambda: g.insert(1, bad), lambda: g.delete(bad, 1),
        lambda: g.add_vertices(bad),
    ):  # fmt: skip
        complaint(update)
    assert (g.version, g.num_edges) == (1, 20)


@pytest.mark.parametrize("value", [[1], [], np.array([1]), np.arange(3)], ids=repr)
def test_an_array_is_not_one_vertex(device: str, value: Any) -> None:
    g = lpma.Graph(device=device)
    for call in (
        lambda: g.neighbors(value), lambda: g.has_edge(value, 1), lambda: g.edge(1, value),
    ):  # fmt: skip
        assert "one vertex is asked for" in complaint(call)


@pytest.mark.parametrize("kind", [np.int8, np.uint32, np.uint64, np.int64, np.array])
def test_numbers_of_numpy_are_numbers(device: str, kind: Any) -> None:
    g = lpma.Graph(device=device)
    g.insert(kind(1), kind(2), kind(3), kind(4))
    assert g.has_edge(kind(1), kind(2))
    assert g.edge(kind(1), kind(2)) == lpma.Edge(3.0, 4)
    assert g.neighbors(kind(1)).tolist() == g.successors(1).ids.tolist() == [2]


@pytest.mark.parametrize(
    "weight", [float("nan"), float("inf"), -float("inf"), 1.1e30, True, "1", 10**40, 2**64, None]
)
def test_a_bad_weight_is_refused(device: str, weight: Any) -> None:
    g = lpma.Graph(device=device)
    g.insert(range(20), range(1, 21), time=1)
    if weight is None:  # the weight that is assumed
        g.insert(1, 9, weight)
        assert g.edge(1, 9).weight == 1.0  # type: ignore[union-attr]
        return
    complaint(lambda: g.insert(1, 9, weight))
    assert not g.has_edge(1, 9)
    assert g.version == 1


@pytest.mark.parametrize("time", [True, 1.5, "1", 2**63, -(2**63) - 1, 10**30])
def test_a_bad_time_is_refused(device: str, time: Any) -> None:
    g = lpma.Graph(device=device)
    g.insert(range(20), range(1, 21), time=1)
    for call in (
        lambda: g.insert(1, 9, 1.0, time), lambda: g.delete(1, 2, time),
        lambda: g.add_vertices(9, time),
    ):  # fmt: skip
        complaint(call)
    assert (g.version, g.num_edges, g.time) == (1, 20, 1)


@pytest.mark.parametrize("weight", [2**53 + 1, 2**63 - 1, -(2**62), 3, 2**63 + 5, 0.1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_are_rounded_once(device: str, weight: Any, dtype: str) -> None:
    short, long = pair(device, Config(weight_dtype=dtype))
    for g in (short, long):
        g.insert(range(20), range(1, 21), time=1)
        g.insert(1, 9, 1, time=2)
        g.insert(1, 9, weight, time=2)
    assert short.edge(1, 9) == long.edge(1, 9)
