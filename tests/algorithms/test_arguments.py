"""Every argument of every public function but the graph, given all that it should not be: what
comes back is right, or a typed error whose message begins with the argument's name."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import algorithms
import lpma
from algorithms.sharded import LocalWorkers, split
from lpma import BatchError, LpmaError
from lpma.arguments import scalars
from lpma.arguments.scalars import is_integer
from tests.support.wrong_values import WRONG, outcome, plain, refused


def graph(named: bool, directed: bool = True) -> lpma.Graph:
    """0 … 4, or a … e: a cycle of four, and a fifth vertex at one corner. It has two sides."""
    ends = [0, 1, 2, 3, 0], [1, 2, 3, 0, 4]
    src, dst = ([["abcde"[v] for v in end] for end in ends]) if named else ends
    g = lpma.Graph(directed, names=named, device="cpu")
    g.insert(src, dst)
    return g


def functions() -> dict[str, Callable[..., Any]]:
    """The public functions, by name, and what takes arguments beside them."""
    found = {
        name: value
        for name in algorithms.__all__
        if callable(value := getattr(algorithms, name)) and not isinstance(value, type)
    }
    found["list_bicliques"] = lambda *given, **named: list(
        algorithms.list_bicliques(*given, **named)
    )
    found["list_bicliques"].__signature__ = inspect.signature(algorithms.list_bicliques)
    return found


FUNCTIONS = functions()
# What is given where the parameter is not the one under test.
USUAL: dict[str, Any] = {
    "source": 0, "u": [0, 1], "v": [2, 3], "vertex": 0, "k": 1, "t": 2, "model": "component",
    "p": 2, "q": 2, "p_max": 2, "q_max": 2,
}  # fmt: skip
OTHERS = {"left", "limit", "method", "progress", "memory_limit", "devices", "damping", "tol",
          "max_iter", "weighted", "personalization", "start", "unlinked"}  # fmt: skip


def parameters(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)[1:]


def usual(function: Callable[..., Any], named: bool) -> dict[str, Any]:
    """Good arguments for all that have no default."""
    taken = inspect.signature(function).parameters
    found = {name: USUAL[name] for name in parameters(function) if name in USUAL and name in taken}
    if named:
        names = {"source": "a", "vertex": "a", "u": ["a", "b"], "v": ["c", "d"]}
        found |= {name: value for name, value in names.items() if name in found}
    return found


CASES = [(name, given) for name in FUNCTIONS for given in parameters(FUNCTIONS[name])]


def meaning(name: str, value: Any, named: bool) -> Iterator[Any]:
    """The plain values that one which was taken may stand for: another program's arguments would
    be these."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if value is None or isinstance(value, str) or callable(value):
        yield value
    if isinstance(value, bool | np.bool_) and name in ("weighted", "unlinked"):
        yield bool(value)
    if is_integer(value) and name not in ("weighted", "unlinked"):
        yield min(int(value), 1_000)  # no graph here has as many of anything
    if isinstance(value, float | np.floating | Fraction) and name in ("damping", "tol"):
        yield min(float(value), 1e9)
    if name in ("u", "v") and np.iterable(value) and not isinstance(value, str | bytes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield list(value)
    if name in ("personalization", "start", "left") and np.iterable(value):
        yield value if isinstance(value, dict) else list(value)


def test_every_parameter_is_known() -> None:
    assert {name for _, name in CASES} == OTHERS | USUAL.keys()


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(("function", "name"), CASES)
def test_right_or_refused(function: str, name: str, named: bool) -> None:
    call = FUNCTIONS[function]
    for value in WRONG:
        given = {**usual(call, named), name: value}
        found = outcome(call, graph(named).snapshot(), **given)
        if isinstance(found, Exception):
            is_its_own = name == "progress" and callable(value)
            assert is_its_own or refused(found, name), (type(value), found)
            continue
        meant = [
            outcome(call, graph(named).snapshot(), **{**given, name: same})
            for same in meaning(name, value, named)
        ]
        assert meant, (type(value), found)
        assert str(found) in map(str, meant), type(value)


@pytest.mark.parametrize(("function", "name"), [
    case for case in CASES
    if case[0] in ("bfs", "core_numbers", "diversity", "pagerank", "top_diversity")
])  # fmt: skip
def test_right_or_refused_over_shards(function: str, name: str) -> None:
    call = FUNCTIONS[function]
    spread = algorithms.ShardedSnapshot.of(split(graph(False).snapshot(), 2))
    whole = graph(False).snapshot()
    for value in WRONG:
        given = {**usual(call, False), name: value}
        found = outcome(call, spread, **given)
        if isinstance(found, Exception):
            assert isinstance(found, LpmaError), (type(value), found)
            assert name in str(found).split(":")[0], (type(value), found)
        elif name in ("tol", "max_iter"):
            assert sum(found) == pytest.approx(1)  # over shards rounds are others
        elif function == "pagerank":
            assert found == pytest.approx(outcome(call, whole, **given))
        elif name != "method":  # "h-index" is another one there
            assert found == outcome(call, whole, **given)


@pytest.mark.parametrize("name", ["graph", "figures"])
def test_of_the_tracker(name: str) -> None:
    g = graph(False)
    for value in WRONG:
        given = {"graph": g, "figures": ["core"], name: value}
        found = outcome(algorithms.Tracker, **given)
        if isinstance(found, Exception):
            assert refused(found, name), (type(value), found)
        else:
            assert isinstance(value, lpma.Graph)


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
def test_of_sharded_snapshots(value: Any) -> None:
    workers = split(graph(False).snapshot(), 2)
    assert isinstance(workers, LocalWorkers)
    s = algorithms.ShardedSnapshot.of(workers)
    for name, call in {
        "workers": lambda: algorithms.ShardedSnapshot.of(value),
        "epoch": lambda: algorithms.ShardedSnapshot.of(workers, value),
        "sources": lambda: s.hops(value, [1]),
        "steps": lambda: s.hops([0], value),
        "shards": lambda: split(graph(False).snapshot(), value),
    }.items():
        found = outcome(call)
        if isinstance(found, Exception):
            assert isinstance(found, LpmaError), (name, found)
            assert name in str(found), (name, found)
        else:
            assert name != "workers"


def test_what_was_said_of_them() -> None:
    none: Any = []
    one: Any = 1
    no: Any = "no"
    s, named = graph(False).snapshot(), graph(True).snapshot()
    for call, says in [
        (lambda: algorithms.common_neighbors(s, 0, ["b"]), "u: a list or an array"),
        (lambda: algorithms.common_neighbors(named, "a", ["b"]), "u: a list or an array of names"),
        (lambda: algorithms.common_neighbors(named, ["a"], ["x"]), "v: the name of a vertex"),
        (lambda: algorithms.bfs(named, none), r"source is \[\]"),
        (lambda: algorithms.bfs(named, "x"), "source: there is no vertex 'x'"),
        (
            lambda: algorithms.core_numbers(s, method=none),
            "method: choose one of auto, owners",
        ),
        (
            lambda: algorithms.top_diversity(s, "core", 1, 1, devices=one),
            "devices: a list",
        ),
        (
            lambda: algorithms.count_bicliques(s, 2, 2, progress=one),
            "progress: a function",
        ),
        (lambda: algorithms.pagerank(s, weighted=no), "weighted: True or False, not 'no'"),
        (lambda: algorithms.count_all_bicliques(s, 2**20, 2), "q_max: an integer from 1 to 1,"),
        (lambda: algorithms.k_core(s, 10**5000), None),
    ]:
        if says is None:
            call()
            continue
        with pytest.raises(BatchError, match=says):
            call()


def test_a_tolerance_beyond_machine_words_is_one() -> None:
    s = graph(False).snapshot()
    assert plain(algorithms.pagerank(s, tol=2**70)) == plain(algorithms.pagerank(s, tol=2.0**70))


any_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text()
    | st.binary() | st.decimals() | st.datetimes(),
    lambda some: st.lists(some) | st.dictionaries(st.text() | st.integers(), some)
    | st.tuples(some, some),
    max_leaves=5,
)  # fmt: skip


@given(value=any_value, case=st.sampled_from(CASES), named=st.booleans())
def test_any_value_is_right_or_refused(value: Any, case: tuple[str, str], named: bool) -> None:
    function, name = case
    call = FUNCTIONS[function]
    s = graph(named).snapshot()
    found = outcome(call, s, **{**usual(call, named), name: value})
    if isinstance(found, Exception):
        assert refused(found, name), found


@given(value=any_value)
def test_scalars_are_of_their_type_or_refused(value: Any) -> None:
    for admit, kind in [
        (lambda: scalars.integer(value, "x", 1, 9), int),
        (lambda: scalars.limit(value, "x", 1, 9), int),
        (lambda: scalars.number(value, "x", 0.5), float),
        (lambda: scalars.truth(value, "x"), bool),
        (lambda: scalars.choice(value, "x", ("a", "b")), str),
    ]:
        found = outcome(admit)
        assert type(found) is kind or refused(found, "x"), found
        assert len(str(found)) < 300
