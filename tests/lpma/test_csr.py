"""The arrays of snapshots, from stores of several shapes, beside those of sorted edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import lpma
from tests.support.oracles import host

Array = npt.NDArray[Any]

ROWS = 300_000  # ids up to here, most of them absent
SHAPES: list[dict[str, Any]] = [
    {},
    {"segment_size": 2},
    {"segment_size": 4, "weight_dtype": None, "times": False},
    {"segment_size": 64, "weight_dtype": "float64"},
    {"segment_size": 1024},
]


def edges_in(rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows of a few edges and rows of thousands; gaps of a few rows and of many."""
    dense = rng.integers(0, 3_000, (2, 12_000))
    sparse = np.stack([rng.integers(0, ROWS, 300), rng.integers(0, ROWS, 300)])
    hubs = np.stack([rng.choice([0, 77, 150_000], 6_000), rng.integers(0, ROWS, 6_000)])
    src, dst = np.concatenate([dense, sparse, hubs], axis=1)
    keys = np.unique(src << 32 | dst)
    return keys >> 32, keys & 0xFFFFFFFF


def expect(g: lpma.Graph, edges: set[tuple[int, int]], added: list[int], weights: bool) -> None:
    """The snapshot holds these edges, whose weights and times say which they are."""
    s: Any = g.snapshot()
    src, dst = np.array(sorted(edges), np.int64).reshape(-1, 2).T
    n = max([*added, *src.tolist(), *dst.tolist()], default=-1) + 1
    np.testing.assert_array_equal(host(s.indptr), np.searchsorted(src, np.arange(n + 1)))
    np.testing.assert_array_equal(host(s.indices), dst)
    np.testing.assert_array_equal(host(s.added), sorted(added))
    if weights:
        np.testing.assert_array_equal(host(s.weights), 1 + (src + dst) % 1000)
        np.testing.assert_array_equal(host(s.times), src * ROWS + dst)


@pytest.mark.parametrize("added", [[], [0, 5, 76, 149_999, ROWS + 70_000]])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_arrays_are_those_of_the_sorted_edges(
    device: str, shape: dict[str, Any], added: list[int]
) -> None:
    """Full and empty segments, of edges and markers; one snapshot after the other."""
    g, weights = lpma.Graph(device=device, **shape), shape.get("weight_dtype", "") is not None
    expect(g, set(), [], weights)
    src, dst = edges_in(np.random.default_rng(1))

    def insert(of: slice) -> None:
        g.insert(src[of], dst[of], 1.0 + (src[of] + dst[of]) % 1000, src[of] * ROWS + dst[of])

    insert(slice(0, None, 3))
    g.add_vertices(np.array(added, np.int64))
    edges = set(zip(src[::3].tolist(), dst[::3].tolist(), strict=True))
    expect(g, edges, added, weights)
    insert(slice(1, None, 3))
    edges |= set(zip(src[1::3].tolist(), dst[1::3].tolist(), strict=True))
    expect(g, edges, added, weights)
    gone = slice(len(src) // 4, len(src) // 2)
    g.delete(src[gone], dst[gone])
    edges -= set(zip(src[gone].tolist(), dst[gone].tolist(), strict=True))
    expect(g, edges, added, weights)
    expect(g, edges, added, weights)
