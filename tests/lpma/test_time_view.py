"""Views in time, `Graph.snapshot(since=, until=, half_life=, now=)`, against a dictionary of edges
whose weights decay in exact arithmetic."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma.arguments.time_views import time_view
from lpma.arrays import to_host
from lpma.snapshot import checks
from lpma.snapshot.stored import StoredGraph
from lpma.time_view import SERIES, SHIFTER, SHIFTER_BITS, TimeView, decayed, rows_in_view
from tests.lpma.conftest import every_backend
from tests.support.oracles import assert_same

FIRST, LAST = -(2**63), 2**63 - 1
KINDS = ["float32", "float64", None]
ULPS = 3  # of a double: of the series, of its product with a power of two, and with a weight
times = st.one_of(st.integers(0, 40), st.integers(FIRST, LAST), st.sampled_from([FIRST, LAST]))
widths = st.one_of(st.integers(1, 30), st.integers(1, LAST))


def exact(weight: float, time: int, now: int, half_life: int) -> Decimal:
    """w · 2^-((now - t) / half_life), with 60 digits."""
    with localcontext() as context:
        context.prec = 60
        age = Decimal(max(now - time, 0)) / half_life
        return Decimal(weight) * Decimal(2) ** -age if age < 1100 else Decimal(0)


def check_decayed(
    weights: Any, found: Any, times: Any, now: int, half_life: int, dtype: np.dtype[Any]
) -> None:
    """That each weight is rounded from what is exact, or is 0 where so little is left."""
    for weight, left, time in zip(weights, found.tolist(), times, strict=True):
        whole = exact(weight, time, now, half_life)
        if now - time > 1022 * half_life:
            assert left == 0 or whole > 0
            continue
        if dtype == np.float32 and left == 0:
            assert whole <= Decimal(2) ** -126 * Decimal("1.0000001")
            continue
        unit = Decimal(float(np.spacing(np.asarray(left, dtype))))
        allowed = unit * ULPS if dtype == np.float64 else unit * Decimal("0.5000001")
        assert abs(Decimal(left) - whole) <= allowed, (weight, time)


def a_view(data: st.DataObject) -> dict[str, Any]:
    """Arguments of `snapshot`, one at the least."""
    drawn: dict[str, Any] = data.draw(
        st.fixed_dictionaries({}, optional={"since": times, "until": times, "half_life": widths})
    )
    if drawn.get("since", FIRST) > drawn.get("until", LAST):
        drawn["since"], drawn["until"] = drawn["until"], drawn["since"]
    if "half_life" in drawn and data.draw(st.booleans()):
        drawn["now"] = data.draw(times)
    return drawn or {"since": data.draw(times)}


@every_backend
@given(st.data(), st.booleans(), st.sampled_from(KINDS))
def test_a_view_is_a_filter(
    device: str, data: st.DataObject, directed: bool, weight: str | None
) -> None:
    g = lpma.Graph(directed, weight_dtype=weight, device=device, segment_size=4)
    ids = st.integers(0, 7)
    edges: dict[tuple[int, int], tuple[float, int]] = {}
    for u, v, w, t in data.draw(st.lists(st.tuples(ids, ids, st.integers(1, 9), times))):
        edge = (u, v) if directed else (min(u, v), max(u, v))
        edges[edge] = edges.get(edge, (0.0, 0))[0] + w if weight is not None else 1.0, t
    if edges:
        src, dst = np.array(list(edges)).T
        given = np.array([w for w, _ in edges.values()], np.float64) if weight is not None else 1.0
        g.insert(src, dst, given, [t for _, t in edges.values()])
    added = data.draw(st.sets(st.integers(0, 9), max_size=2))
    g.add_vertices(sorted(added))
    asked = a_view(data)
    s = g.snapshot(**asked)

    held = {
        e: x
        for e, x in edges.items()
        if asked.get("since", FIRST) <= x[1] and ("until" not in asked or x[1] < asked["until"])
    }
    both = dict(held) if directed else held | {(v, u): x for (u, v), x in held.items()}
    rows = sorted(both)
    assert to_host(s._indices).tolist() == [v for _, v in rows]
    sources = [u for u, _ in rows]
    assert to_host(s._indptr).tolist() == [
        sum(u < row for u in sources) for row in range(g.num_rows + 1)
    ]
    assert to_host(s._times).tolist() == [both[e][1] for e in rows]
    present = {v for e in held for v in e} | added
    assert np.flatnonzero(to_host(s.present)).tolist() == sorted(present)
    facts = s.num_edges, s.num_vertices, s.num_rows, s.version, s.time
    assert facts == (len(held), len(present), g.num_rows, g.version, g.time)
    before = [both[e][0] for e in rows]
    if "half_life" not in asked:
        expected = None if weight is None else np.array(before, weight)
        assert_same(s.weights, expected)
    elif rows:
        assert s.weights is not None
        assert s.weights.dtype == (weight or "float32")
        now = asked.get("now", max(t for _, t in held.values()))
        then = [both[e][1] for e in rows]
        found = to_host(s.weights)
        check_decayed(before, found, then, now, asked["half_life"], found.dtype)

    compact = g.snapshot(compact=True, **asked)
    assert to_host(compact.ids).tolist() == sorted(present)
    assert_same(to_host(compact.ids)[to_host(compact._indices)], to_host(s._indices))
    assert_same([compact.weights, compact.times], [s.weights, s.times])
    assert (compact.num_edges, compact.version) == (s.num_edges, s.version)


@given(st.lists(times, min_size=1), times, widths, st.sampled_from(KINDS), st.integers(0, 2**32))
def test_how_weights_decay(
    column: list[int], now: int, half_life: int, kind: str | None, seed: int
) -> None:
    """Within a few units in the last place of a double, and rounded once more for float32."""
    decay = TimeView(half_life=half_life, now=now).decay(0)
    assert decay is not None
    weights = None if kind is None else np.random.default_rng(seed).random(len(column)).astype(kind)
    found = decayed(weights, np.array(column, np.int64), decay)
    assert found.dtype == (kind or "float32")
    before = [1.0] * len(column) if weights is None else weights.tolist()
    check_decayed(before, found, column, now, half_life, found.dtype)


@pytest.mark.parametrize("half_life", [1, 1000, 2**62, LAST])
def test_where_a_weight_becomes_zero(half_life: int) -> None:
    """At more than 1,022 half-lives; up to there it is a double that is not 0."""
    now = LAST
    ages = [half_life * k for k in (0, 1, 2, 1021, 1022, 1024, 5000) if half_life * k < 2**64]
    column = np.array([now - age for age in ages], np.int64)
    decay = TimeView(half_life=half_life, now=now).decay(0)
    assert decay is not None
    found = decayed(np.ones(len(ages)), column, decay)
    powers = [2.0 ** -(age // half_life) if age <= 1022 * half_life else 0.0 for age in ages]
    assert found.tolist() == powers


def test_a_float32_without_all_its_digits_becomes_zero() -> None:
    """Devices make 0 of it, so the host does: 2^-126 is the least that is left."""
    decay = TimeView(half_life=1, now=200).decay(0)
    assert decay is not None
    ages = np.array([125, 126, 127, 140], np.int64)
    found = decayed(np.ones(4, np.float32), 200 - ages, decay)
    assert found.tolist() == [2.0**-125, 2.0**-126, 0, 0]
    assert decayed(None, 200 - ages, decay).tolist() == found.tolist()


def a_large_graph(device: str, weight: str | None, directed: bool, n: int = 30_000) -> lpma.Graph:
    rng = np.random.default_rng(n)
    g = lpma.Graph(directed, weight_dtype=weight, device=device)
    src, dst = rng.integers(0, 5000, (2, n))
    weights = 1.0 if weight is None else rng.random(n)
    g.insert(src**2 // 5000, dst, weights, rng.integers(0, 10**6, n))
    g.add_vertices(rng.integers(0, 5010, 99))
    return g


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weight", KINDS)
@every_backend
def test_every_device_finds_the_same_bits(device: str, weight: str | None, directed: bool) -> None:
    """As NumPy does of the whole snapshot, and where several threads share the work."""
    g = a_large_graph(device, weight, directed)
    whole = g.snapshot()
    arrays: Any = [None if c is None else to_host(c) for c in
              (whole._indptr, whole._indices, whole._weights, whole._times)]  # fmt: skip
    for asked in (
        {"since": 3 * 10**5}, {"until": 10**5, "half_life": 777}, {"half_life": timedelta(0, 50)},
        {"since": 10**5, "until": 9 * 10**5, "half_life": 10**5, "now": 5 * 10**5},
        {"since": 10**6}, {"since": 0, "until": 10**6},
    ):  # fmt: skip
        get: Any = asked.get
        view = time_view(get("since"), get("until"), get("half_life"), get("now"), True)
        assert view is not None
        expected = rows_in_view(view, *arrays)
        with (
            patch("lpma.cpu.pieces.FEW", 1),
            patch("lpma.backend.numba.views.SEGMENTS_PER_TASK", 8),
        ):
            cut = g.snapshot(**asked)
        for s in (g.snapshot(**asked), cut):
            assert_same([s._indptr, s._indices, s._weights, s._times], list(expected))
            checks.check_graph(s._indptr, s._indices, s.num_edges, directed)


def test_the_whole_snapshot_stays_what_it_was(device: str) -> None:
    """And with it the rows that those of the next one are made of."""
    g, again = (a_large_graph(device, "float32", True, 3000) for _ in range(2))
    for round in range(4):
        g.snapshot(since=round * 10**5, half_life=10)
        g.insert([round, 7], [3, round], 0.5, time=[round, 10**7])
        again.insert([round, 7], [3, round], 0.5, time=[round, 10**7])
        late = g.snapshot()
        g.snapshot(until=5)
        assert_same(late, again.snapshot())
    s = g.snapshot(since=10**6)
    g.delete(7, 3)
    assert to_host(s._times).tolist() == [10**7] * s.num_edges


@every_backend
def test_ids_far_apart(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([2**31, 5, 5], [7, 2**31, 9], [1.0, 2.0, 4.0], [10, 20, 30])
    g.add_vertices(2**30)
    s = g.snapshot(compact=True, since=20, half_life=10)
    assert to_host(s.ids).tolist() == [5, 9, 2**30, 2**31]
    assert (to_host(s.indptr).tolist(), to_host(s.indices).tolist()) == ([0, 2, 2, 2, 2], [1, 3])
    assert (to_host(s.weights).tolist(), s.num_edges) == ([4.0, 1.0], 2)
    assert g.snapshot(compact=True, since=31).num_edges == 0


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_a_saved_graph_has_the_same_views(tmp_path: Path, named: bool, compact: bool) -> None:
    g = lpma.Graph(names=named, device="cpu", directed=False)
    names = ["ann", "bob", "cem"] if named else [3, 1, 2]
    g.insert(names, names[::-1], [1.0, 2.0, 3.0], [10, 20, 30])
    g.save(tmp_path / "g")
    stored = StoredGraph(tmp_path / "g")
    for asked in ({"since": 20}, {"until": 20, "half_life": 3}, {"since": 40}):
        a, b = g.snapshot(compact, **asked), stored.snapshot(compact, **asked)
        assert_same([a._indptr, a._indices, a._weights, a._times, a._ids, a.num_edges],
                    [b._indptr, b._indices, b._weights, b._times, b._ids, b.num_edges])  # fmt: skip
        assert sorted(a.edges().src.tolist()) == sorted(b.edges().src.tolist())


def test_datetimes_and_spans(device: str) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    g = lpma.Graph(device=device)
    g.insert([0, 1, 2], [1, 2, 3], time=[start + timedelta(days=i) for i in range(3)])
    s = g.snapshot(
        since=start + timedelta(days=1), until=np.datetime64("2026-01-03T00:00:00.001"),
        half_life=np.timedelta64(1, "D"), now=start + timedelta(days=3),
    )  # fmt: skip
    assert to_host(s.weights).tolist() == [0.25, 0.5]
    day = 86_400_000
    assert to_host(g.snapshot(half_life=day).weights).tolist() == [0.25, 0.5, 1.0]
    assert to_host(g.snapshot(half_life=timedelta(days=2)).weights)[1] == np.float32(0.5**0.5)


def test_whole_floats_are_whole_numbers(device: str) -> None:
    """As for the times of `insert`."""
    g = lpma.Graph(device=device)
    g.insert([0, 1], [1, 2], time=[10.0, 14.0])
    s = g.snapshot(since=10.0, until=np.float64(15), half_life=2.0, now=np.float32(16))
    assert to_host(s.weights).tolist() == [0.125, 0.5]


def test_weights_of_zero_stay_edges(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([0, 1], [1, 2], time=[0, 10**6])
    s = g.snapshot(half_life=1)
    assert to_host(s.weights).tolist() == [0.0, 1.0]
    made = s.to_graph()
    made.check()
    assert (s.num_edges, made.num_edges) == (2, 2)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"since": "yesterday"}, "since: integer milliseconds or a datetime, not 'yesterday'"),
    ({"since": 1.5}, "since: integer milliseconds"),
    ({"until": [1, 2]}, "until: integer milliseconds"),
    ({"since": True}, "since: integer milliseconds"),
    ({"since": 2**63}, "since: a time is an integer of 64 bits"),
    ({"until": -(2**63) - 1}, "until: a time is an integer of 64 bits"),
    ({"since": np.datetime64("NaT", "ms")}, "since: row 0 has no time"),
    ({"since": 6, "until": 5}, "since, until: 6 is after 5"),
    ({"now": 5}, "now: it is when weights have decayed to: give half_life, too"),
    ({"half_life": 0}, "half_life: a span of time, whole milliseconds from 1 to 2^63 - 1"),
    ({"half_life": -4}, "half_life: a span of time"),
    ({"half_life": 2.5}, "half_life: a span of time"),
    ({"half_life": True}, "half_life: a span of time"),
    ({"half_life": 2**63}, "half_life: a span of time"),
    ({"half_life": "2d"}, "half_life: a span of time"),
    ({"half_life": timedelta(microseconds=3)}, "half_life: a span of time"),
    ({"half_life": np.timedelta64("NaT")}, "half_life: a span of time"),
    ({"half_life": timedelta(microseconds=1500)}, "half_life: a span of time, whole milliseconds"),
    ({"half_life": np.timedelta64(1500, "us")}, "half_life: a span of time, whole milliseconds"),
    ({"half_life": np.timedelta64(10**18, "s")}, "half_life: a span of time, whole milliseconds"),
    ({"half_life": 2.0**60}, "half_life: a span of time"),
    ({"half_life": float("nan")}, "half_life: a span of time"),
    ({"since": float("inf")}, "since: integer milliseconds"),
]


@pytest.mark.parametrize("asked, said", REFUSED, ids=lambda it: str(it)[:40])
def test_bad_arguments(asked: dict[str, Any], said: str) -> None:
    g = lpma.Graph(device="cpu")
    g.insert(1, 2)
    with pytest.raises(lpma.BatchError, match=re.escape(said)):
        g.snapshot(**asked)


@pytest.mark.parametrize("asked", [{"since": 1}, {"until": 1}, {"half_life": 1}])
def test_a_graph_without_times_has_no_views(asked: dict[str, Any], tmp_path: Path) -> None:
    g = lpma.Graph(device="cpu", times=False)
    g.insert(1, 2)
    g.save(tmp_path / "g")
    said = f"{next(iter(asked))}: the edges have no times: make the graph with times=True"
    for graph in (g, StoredGraph(tmp_path / "g")):
        with pytest.raises(lpma.BatchError, match=said):
            graph.snapshot(**asked)
    assert g.snapshot().num_edges == 1


def test_the_series_is_everywhere_the_same() -> None:
    with localcontext() as context:
        context.prec = 60
        terms = [(-Decimal(2).ln()) ** i / math.factorial(i) if i else Decimal(1)
                 for i in reversed(range(14))]  # fmt: skip
    assert [float(term) for term in terms] == list(SERIES)
    assert np.float64(SHIFTER).view(np.int64) == SHIFTER_BITS
    source = (Path(lpma.__file__).parent / "cuda" / "decay.cuh").read_text()
    found = re.search(r"SERIES\[\] = \{(.*?)\}", source, re.DOTALL)
    assert found is not None
    assert [float.fromhex(term) for term in found[1].split(",")] == list(SERIES)
