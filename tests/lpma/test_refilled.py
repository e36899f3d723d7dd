"""Arrays that a caller fills again between `Batch.from_columns` and `apply`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lpma
from lpma import Batch, BatchError, Kind
from tests.support.oracles import host

MANY = 1 << 18  # rows that a device is told to look at itself


def arrays(n: int) -> dict[str, Any]:
    """Columns of a batch, of the types that are kept as they are."""
    return {
        "kind": np.zeros(n, np.uint8), "src": np.arange(n, dtype=np.uint32),
        "dst": np.ones(n, np.uint32), "weight": np.ones(n, np.float32),
        "time": np.full(n, 7, np.int64),
    }  # fmt: skip


BAD = [
    ("src", 2**32 - 1),
    ("dst", 2**32 - 1),
    ("weight", np.nan),
    ("weight", -np.inf),
    ("kind", 99),
]


@pytest.mark.parametrize("n", [3, MANY])
@pytest.mark.parametrize("name, value", BAD)
def test_what_became_bad_is_refused(device: str, n: int, name: str, value: Any) -> None:
    given = arrays(n)
    columns = Batch.from_columns(**given)
    g = lpma.Graph(device=device)
    g.insert(5, 6)
    given[name][1] = value
    for opera in (True, False):
        with pytest.raises(BatchError, match="vertex ids" if name in ("src", "dst") else name):
            g.apply(columns, opera)
    g.check()
    assert (g.version, g.num_edges) == (1, 1)
    given[name][1] = 0  # the batch is of use again
    g.apply(columns)
    assert g.version == 2


@pytest.mark.parametrize("name, value", [*BAD, ("hops", 0), ("hops", 256)])
def test_a_mixed_batch(device: str, name: str, value: Any) -> None:
    given = arrays(4)
    given["kind"][:] = [Kind.APPEND, Kind.APPEND, Kind.HOPS, Kind.DEGREE]
    columns = Batch.from_columns(**given)
    g = lpma.Graph(device=device)
    given["dst" if name == "hops" else name][2 if name == "hops" else 1] = value
    with pytest.raises(BatchError):
        g.apply(columns)
    assert (g.version, g.num_edges) == (0, 0)


def test_what_stays_good_is_applied_as_it_is_then(device: str) -> None:
    given = arrays(3)
    columns = Batch.from_columns(**given)
    given["src"][:], given["kind"][2] = [7, 8, 9], Kind.ADD_VERTEX
    g = lpma.Graph(device=device)
    g.apply(columns)
    g.check()
    assert host(g.edges([7, 8, 9], [1, 1, 1]).found).tolist() == [True, True, False]
    assert list(g) == [1, 7, 8, 9]


def test_a_batch_by_name_is_the_callers_no_more(device: str) -> None:
    given = arrays(3)
    columns = Batch.from_columns(**given, names=True)
    given["kind"][:], given["weight"][:], given["time"][:], given["src"][:] = 99, np.nan, 9, 5
    g = lpma.Graph(device=device, names=True)
    g.apply(columns)
    s = g.snapshot()
    assert (g.num_edges, g.time, sorted(g)) == (3, 7, [0, 1, 2])
    assert np.isfinite(host(s.weights)).all()


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("n", [1, 1000, MANY])
def test_what_kinds_there_are(n: int, kind: Kind) -> None:
    """One row among few or many that does not append, wherever it is."""
    for row in {0, n // 3, n - 1}:
        ids = np.zeros(n, np.uint32)
        columns = lpma.Columns(np.zeros(n, np.uint8), ids, ids, None, None)
        columns.kind[row] = kind
        assert columns.one_kind == (kind if n == 1 or kind == Kind.APPEND else None)
        assert columns.edges_only == (kind <= Kind.DELETE)
