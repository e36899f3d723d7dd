"""Single arguments of a wrong type or out of range: an error that says what is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import algorithms as typed_algorithms
import lpma as typed

algorithms: Any = typed_algorithms
lpma: Any = typed

CALLS: list[tuple[str, Callable[[Any], Any]]] = [
    ("n: an integer from 0 to .* -1", lambda g: lpma.pinned_batch(-1)),
    ("n: .* 1.5", lambda g: lpma.pinned_batch(1.5)),
    ("n: .* True", lambda g: lpma.pinned_batch(True)),
    ("n: .* 2147483648", lambda g: lpma.pinned_batch(2**31)),
    ("clock: a function that returns seconds, not 5",
     lambda g: lpma.Graph(clock=5, device="cpu")),
    ("compact: True or False, not 'no'", lambda g: g.snapshot("no")),
    ("compact: True or False, not 1", lambda g: g.snapshot(1)),
    ("max_bytes: an integer from 0 on, not '1'", lambda g: g.snapshot(max_bytes="1")),
    ("since: an integer from 0 to 1, not 'x'", lambda g: g.changes("x")),
    ("since: .* 0.5", lambda g: g.changes(0.5)),
    ("since: .* None", lambda g: g.changes(None)),
    ("k: an integer from 1 to 255", lambda g: g.hops(1, np.timedelta64(1, "s"))),
    ("limit: .*", lambda g: g.successors_after(1, limit=np.timedelta64(1, "s"))),
    ("damping: .* 'x'", lambda g: algorithms.pagerank(g.snapshot(), damping="x")),
    ("tol: .* 'x'", lambda g: algorithms.pagerank(g.snapshot(), tol="x")),
    ("max_iter: .* 'x'", lambda g: algorithms.pagerank(g.snapshot(), max_iter="x")),
    ("k: .* '2'", lambda g: algorithms.k_core(g.snapshot(), "2")),
    ("k: .* 1.5", lambda g: algorithms.k_core(g.snapshot(), 1.5)),
    ("k: .* -1", lambda g: algorithms.k_core(g.snapshot(), -1)),
    ("k: .* True", lambda g: algorithms.k_core(g.snapshot(), True)),
    ("k: an integer from 2 on, not '2'", lambda g: algorithms.k_truss(g.snapshot(), "2")),
    ("k: an integer from 2 on, not 2.5", lambda g: algorithms.k_truss(g.snapshot(), 2.5)),
    ("figures: some of core, .* None", lambda g: algorithms.Tracker(g, None)),
    ("figures: .* 5", lambda g: algorithms.Tracker(g, 5)),
    (r"figures: .* \['core'\]", lambda g: algorithms.Tracker(g, [["core"]])),
    (r"figures: .* \[\]", lambda g: algorithms.Tracker(g, [])),
]  # fmt: skip


@pytest.mark.parametrize("message, call", CALLS, ids=[str(i) for i in range(len(CALLS))])
def test_arguments_that_are_none(message: str, call: Callable[[Any], Any]) -> None:
    g: Any = lpma.Graph(device="cpu", directed=False)
    g.insert([0, 1, 2], [1, 2, 0])
    with pytest.raises(lpma.BatchError, match=message):
        call(g)


def test_numbers_of_numpys_are_taken() -> None:
    g: Any = lpma.Graph(device="cpu")
    g.insert([0, 1, 2], [1, 2, 0])
    s = g.snapshot(np.bool_(True), np.int64(1 << 20))
    ranks = algorithms.pagerank(s, np.float32(0.5), np.float64(1e-6), np.int32(9))
    assert (len(lpma.pinned_batch(np.int32(2))), len(lpma.pinned_batch(0)), len(ranks)) == (2, 0, 3)
    assert algorithms.k_core(s, np.int64(2)).num_edges == 3
    assert len(g.changes(np.uint8(0)).src) == 3
    assert algorithms.Tracker(g, "core").version == 1
    assert algorithms.Tracker(g, ("core", "core")).version == 1
