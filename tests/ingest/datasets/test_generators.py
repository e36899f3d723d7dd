"""Generated graphs: what they promise about shape, order and repeatability."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from ingest.datasets import generators
from ingest.datasets.generators import GeneratorError
from lpma.batch.columns import Columns, Kind

MASK = 2**64 - 1


def slow_rmat(scale: int, edges: int, seed: int) -> list[tuple[int, int]]:
    """The recipe of the module's text with Python's integers, Graph500's chances."""

    def mixed(x: int) -> int:
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
        return x ^ (x >> 31)

    golden = 0x9E3779B97F4A7C15
    result = []
    for e in range(edges):
        state = mixed((seed + e * golden) & MASK)
        u = v = 0
        for level in range(scale):
            if level % 2 == 0:
                state = (state + golden) & MASK
            draw = (mixed(state) >> (32 * (level % 2))) & 0xFFFFFFFF
            quadrant = sum(draw >= round(p * 2**32) for p in (0.57, 0.76, 0.95))
            u, v = 2 * u + quadrant // 2, 2 * v + quadrant % 2
        result.append((u, v))
    return result


def test_rmat_follows_its_recipe() -> None:
    src, dst = generators.rmat(9, 300, shuffle=False, seed=5)
    assert src.dtype == dst.dtype == np.uint32
    assert list(zip(src.tolist(), dst.tolist(), strict=True)) == slow_rmat(9, 300, 5)


def test_rmat_quadrants_and_shuffle() -> None:
    src, dst = generators.rmat(10, 200_000, shuffle=False)
    for bit in (9, 4, 0):
        shares = np.bincount(2 * (src >> bit & 1) + (dst >> bit & 1)) / len(src)
        assert np.allclose(shares, [0.57, 0.19, 0.19, 0.05], atol=0.005)
    shuffled, _ = generators.rmat(10, 200_000, shuffle=True)
    assert sorted(np.bincount(src, minlength=1024)) == sorted(np.bincount(shuffled, minlength=1024))
    assert np.argmax(np.bincount(src)) == 0  # the hub of an unshuffled RMAT
    assert len(generators.rmat(8)[0]) == 16 << 8
    even, _ = generators.rmat(6, 64_000, a=0.25, b=0.25, c=0.25, shuffle=False)
    assert np.bincount(even, minlength=64).min() > 800


@pytest.mark.parametrize(
    "spec",
    [
        "rmat:scale=8",
        "uniform:vertices=50,edges=400,loops=false",
        "grid:rows=9,columns=7,keep=0.8",
        "interactions:vertices=60,edges=500",
    ],
)
def test_a_seed_decides_everything(spec: str) -> None:
    first, again = generators.from_spec(spec), generators.from_spec(spec)
    other = generators.from_spec(f"{spec},seed=2")
    assert np.array_equal(first.src, again.src)
    assert np.array_equal(first.dst, again.dst)
    assert not (np.array_equal(first.src, other.src) and np.array_equal(first.dst, other.dst))


def test_uniform() -> None:
    src, dst = generators.uniform(40, 80_000)
    assert np.bincount(src * 40 + dst, minlength=1600).min() > 20
    src, dst = generators.uniform(3, 60_000, loops=False)
    assert (src != dst).all()
    pairs = Counter(zip(src.tolist(), dst.tolist(), strict=True))
    assert len(pairs) == 6
    assert max(pairs.values()) < 1.05 * min(pairs.values())


def test_grid_is_the_lattice() -> None:
    networkx = pytest.importorskip("networkx")
    src, dst = generators.grid(5, 7)
    lattice = networkx.grid_2d_graph(5, 7)
    expected = {tuple(sorted((7 * r + c, 7 * s + d))) for (r, c), (s, d) in lattice.edges}
    assert set(zip(src.tolist(), dst.tolist(), strict=True)) == expected
    assert len(src) == len(expected)
    kept, _ = generators.grid(60, 60, keep=0.69)
    assert abs(len(kept) / (2 * 60 * 59) - 0.69) < 0.03
    assert len(generators.grid(1, 1)[0]) == 0


def live_edges(stream: Columns) -> set[tuple[int, int]]:
    edges = set()
    for kind, u, v in zip(stream.kind, stream.src.tolist(), stream.dst.tolist(), strict=True):
        if kind == Kind.INSERT:
            edges.add((u, v))
        else:
            edges.discard((u, v))
    return edges


def test_interactions() -> None:
    stream = generators.interactions(2000, 30_000, repeats=0.5, deletions=0.1, seed=4)
    assert stream.weight is not None
    assert stream.time is not None
    deletes = stream.kind == Kind.DELETE
    assert abs(deletes.mean() - 0.1) < 1e-4
    assert set(stream.kind.tolist()) == {Kind.INSERT, Kind.DELETE}
    assert (np.diff(stream.time) >= 0).all()
    assert (stream.src != stream.dst).all()
    assert set(stream.weight[~deletes].tolist()) == {1.0, 2.0, 3.0, 4.0, 5.0}
    seen: set[tuple[int, int]] = set()
    for kind, u, v in zip(stream.kind, stream.src.tolist(), stream.dst.tolist(), strict=True):
        if kind == Kind.DELETE:
            assert (u, v) in seen
        seen.add((u, v))
    assert len(live_edges(stream)) < len(seen)
    fresh = len({*zip(stream.src.tolist(), stream.dst.tolist(), strict=True)}) / (~deletes).sum()
    assert 0.3 < fresh < 0.55  # half repeat, and some new pairs meet again by chance


def test_interactions_have_power_law_degrees() -> None:
    stream = generators.interactions(200_000, 400_000, repeats=0.0, deletions=0.0, exponent=2.5)
    degrees = np.sort(np.bincount(stream.src))[::-1]
    tail = degrees[:1000].astype(float)
    hill = 1 + 1 / np.log(tail / tail[-1])[:-1].mean()
    assert 2.2 < hill < 2.8


def test_deletions_keep_the_appends_in_order() -> None:
    stream = Columns.validated(0, np.arange(500), np.arange(500) + 1, None, np.arange(500) * 3)
    mixed = generators.with_deletions(stream, 0.2, seed=9)
    appends = mixed.kind == Kind.INSERT
    assert len(mixed) == 625
    assert np.array_equal(mixed.src[appends], stream.src)
    assert mixed.weight is None
    assert mixed.time is not None
    assert all(a <= b for a, b in pairwise(mixed.time.tolist()))
    assert appends[0]
    done = 0
    for kind, u in zip(mixed.kind, mixed.src.tolist(), strict=True):
        if kind == Kind.INSERT:
            done += 1
        else:
            assert u < done
    assert generators.with_deletions(stream, 0.0) is stream


@pytest.mark.parametrize(
    "spec, said",
    [
        ("torus", "known are grid, interactions, rmat, uniform"),
        ("rmat", "needs scale"),
        ("rmat:scale=8,colour=3", "has no 'colour'"),
        ("rmat:scale=many", "not of type int"),
        ("rmat:scale=40", "from 1 to 31"),
        ("rmat:scale=4,a=0.9", "a \\+ b \\+ c"),
        ("uniform:vertices=0,edges=1", "vertices go from"),
        ("uniform:vertices=1,edges=1,loops=no", "not of type bool"),
        ("uniform:vertices=1,edges=1,loops=false", "nothing but loops"),
        ("grid:rows=0,columns=3", "at least 1"),
        ("interactions:exponent=2", "above 2"),
        ("interactions:deletions=nan", "share of deletions"),
        ("interactions:repeats=1", "repeats is a share"),
    ],
)
def test_bad_specs_say_what_is_meant(spec: str, said: str) -> None:
    with pytest.raises(GeneratorError, match=said):
        generators.from_spec(spec)
