"""The options of `GET /v1/run/{algorithm}`: those of `lpma run`, with the same names and
defaults."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from algorithms.diversity.model import LARGEST_K

from .. import analyses
from ..errors import WordError
from ..state.vertex_names import name_of
from .problems import Problem

MAX_TOP = 1000
MAX_ROUNDS = 10_000
MAX_SIDE = 256  # vertices of one side of a biclique

Read = Callable[[str, str], Any]  # from the option's name and its text; raises Problem
REQUIRED = object()


class Option(NamedTuple):
    read: Read
    default: Any = REQUIRED


def _whole(low: int, high: int) -> Read:
    def read(name: str, text: str) -> int:
        if not (
            text.isascii() and text.isdecimal() and len(text) < 20 and low <= int(text) <= high
        ):
            raise Problem(422, f"{name}: expected an integer from {low} to {high}")
        return int(text)

    return read


def _number(low: float, high: float) -> Read:
    def read(name: str, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise Problem(422, f"{name}: expected a number from {low:g} to {high:g}")
        return value

    return read


def _one_of(*known: str) -> Read:
    def read(name: str, text: str) -> str:
        if text not in known:
            raise Problem(422, f"{name}: expected one of {', '.join(known)}")
        return text

    return read


def _flag(name: str, text: str) -> bool:
    return bool(_one_of("true", "false")(name, text) == "true")


def _vertex(name: str, text: str) -> Any:
    try:
        return name_of(text)
    except WordError as error:
        raise Problem(422, f"{name}: {error}") from None


_TOP = {"top": Option(_whole(0, MAX_TOP), 5)}
OPTIONS: dict[str, dict[str, Option]] = {
    "core": _TOP,
    "truss": _TOP,
    "triangles": _TOP,
    "clustering": _TOP,
    "components": _TOP,
    "strong-components": _TOP,
    "pagerank": {
        "damping": Option(_number(0, 1), 0.85),
        "tol": Option(_number(0, 1), 1e-6),
        "max_iter": Option(_whole(0, MAX_ROUNDS), 100),
        "weighted": Option(_flag, False),
        **_TOP,
    },
    "bfs": {"source": Option(_vertex), **_TOP},
    "shortest-paths": {"source": Option(_vertex), **_TOP},
    "similar": {"vertex": Option(_vertex), "unlinked": Option(_flag, False), **_TOP},
    "diversity": {
        "model": Option(_one_of("component", "core", "truss"), "truss"),
        "k": Option(_whole(1, LARGEST_K), 4),
        **_TOP,
    },
    "bicliques": {
        "p": Option(_whole(1, MAX_SIDE)),
        "q": Option(_whole(1, MAX_SIDE)),
        "left": Option(_whole(0, 2**32 - 2), None),
        "method": Option(_one_of(*analyses.BICLIQUE_METHODS), "auto"),
        "list": Option(_whole(0, MAX_TOP), 0),
    },
}


def options_of(algorithm: str, given: Mapping[str, str]) -> dict[str, Any]:
    """The options of an algorithm as a request's query gives them. Raises Problem."""
    known = OPTIONS.get(algorithm)
    if known is None:
        raise Problem(404, f"no algorithm {algorithm[:64]!r}: there are {', '.join(OPTIONS)}")
    if unknown := sorted(set(given) - set(known)):
        said = ", ".join(known)
        raise Problem(422, f"unknown option {unknown[0][:64]!r}: {algorithm} takes {said}")
    found = {name: option.default for name, option in known.items()}
    found |= {name: known[name].read(name, text) for name, text in given.items()}
    if missing := [name for name, value in found.items() if value is REQUIRED]:
        raise Problem(422, f"{missing[0]}: {algorithm} needs it")
    needed = analyses.BICLIQUE_METHOD_NEEDS.get(found.get("method", ""))
    if needed is not None and needed not in (found["p"], found["q"]):
        raise Problem(422, f"method: {found['method']} is for p or q = {needed}")
    return found
