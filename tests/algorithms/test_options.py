"""Options are declared by signatures and docstrings, and admitted by them."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import pytest

import algorithms
import lpma
from algorithms.options import MOST, REQUIRED, Limits, Option, Vertex, algorithm, options_of
from lpma import BatchError


@algorithm
def example(
    s: Any,
    source: Vertex,
    share: Annotated[float, Limits(le=1)] = 0.5,
    limit: Annotated[int | None, Limits(ge=1, most=9)] = None,
    way: Annotated[str, Limits(choices=("up", "down"))] = "up",
    fast: bool = False,
    others: list[int] | None = None,
) -> tuple[Any, ...]:
    """What it was given.

    source: the first vertex. More
    about it.
    share: how much
    of it. None: not this, limit: nor this.
    limit: how many.

    fast: soon
    """
    return source, share, limit, way, fast, others


def test_what_is_declared() -> None:
    assert options_of(example) == {
        "source": Option("source", Vertex, REQUIRED, Limits(), "the first vertex"),
        "share": Option("share", float, 0.5, Limits(le=1), "how much of it"),
        "limit": Option("limit", int, None, Limits(ge=1, most=9), "how many"),
        "way": Option("way", str, "up", Limits(choices=("up", "down"))),
        "fast": Option("fast", bool, False, Limits(), "soon"),
    }
    assert list(options_of(example, "way", "share")) == ["way", "share"]
    assert [option.wanted for option in options_of(example).values()] == [
        "a vertex", "a number from 0 to 1", "an integer from 1 on", "one of up, down",
        "true or false",
    ]  # fmt: skip
    shown = inspect.signature(example).parameters
    assert (shown["share"].annotation, shown["limit"].annotation) == (float, int | None)


def test_it_is_admitted_however_it_is_given() -> None:
    assert example("s", 3) == (3, 0.5, None, "up", False, None)
    assert example("s", 3, 1, 99, "down", True, [1]) == (3, 1.0, 9, "down", True, [1])
    assert example(s="s", limit=None, source=3, others=[]) == (3, 0.5, None, "up", False, [])
    for given, says in (
        ({"share": 2}, "share: a number, from 0 to 1, not 2"),
        ({"limit": 0}, "limit: an integer from 1 on, not 0"),
        ({"limit": True}, "limit: an integer from 1 on, not True"),
        ({"way": "no"}, "way: choose one of up, down, not 'no'"),
        ({"way": None}, "way: choose one of up, down, not None"),
        ({"fast": 1}, "fast: True or False, not 1"),
    ):
        with pytest.raises(BatchError, match=says):
            example("s", 3, **given)
    call: Any = example
    with pytest.raises(BatchError, match="share"):
        call("s", 3, 2)
    with pytest.raises(TypeError, match="positional"):
        call("s", 3, 1, 1, "up", True, [], 8)
    with pytest.raises(TypeError, match="colour"):
        call("s", 3, colour=1)


def test_of_a_graph_it_is_given_the_snapshot() -> None:
    @algorithm
    def rows(s: Any, k: int) -> Any:
        return s, k

    graph = lpma.Graph(device="cpu")
    given, k = rows(graph, 2**70)
    assert isinstance(given, lpma.Snapshot)
    assert k == MOST
    with pytest.raises(BatchError, match="k: an integer"):
        rows(graph, -1)


def test_every_public_function_of_a_graph_declares_its_options() -> None:
    for name in algorithms.__all__:
        function = getattr(algorithms, name)
        if not isinstance(function, type):
            assert options_of(function).keys() <= inspect.signature(function).parameters.keys()
