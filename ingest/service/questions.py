"""What requests ask of the graph, what they are answered, and what one of them may cost."""

from __future__ import annotations

import time
from asyncio import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy.typing as npt

from lpma import Edges, Kind, Neighbors
from lpma.errors import OutOfMemory
from lpma.names import FrozenNames

from ..types import Name

Array = npt.NDArray[Any]
Vertices = list[Name] | Array

NAME_BYTES = 100  # of a name that a graph returns, as an object


class AnswerTooLarge(OutOfMemory):
    """One question asks for more than one answer may cost."""


@dataclass(slots=True, eq=False)
class Question:
    """What one request asks. `after` is of the length of `u`, with None where nothing is left out;
    v: the targets, for Kind.EDGE. until: its deadline, of time.monotonic()."""

    kind: Kind
    u: Vertices
    v: Vertices | None
    after: list[Name | None] | None
    k: int
    until: float
    future: Future[Answer]
    asked: float = field(default_factory=time.monotonic)
    watch: Any = None  # what tells that the client went away (asking.py)
    tries: int = 0  # how often it had a share for itself and was not finished


@dataclass(slots=True, eq=False)
class Answer:
    """The answer to one question, in a joint one, which lies on the host: elements lo … hi − 1 of
    it; of Neighbors, element places[i] for the i-th vertex asked.

    names: what turns the ids of Neighbors into names; None: they are what the client is told.
    seen: for each vertex asked, rows of ids up to that one are left out. order: the ids of the
    joint answer, where it has names. more: of the one vertex that was asked, there are rows behind
    the last of these."""

    kind: Kind
    version: int
    time: int
    joint: Edges | Neighbors | Array
    lo: int
    hi: int
    names: FrozenNames | None = None
    places: Array | None = None
    seen: Array | None = None
    order: Array | None = None
    rows: int = 0  # of Neighbors, before any is left out
    more: bool = False


class Most(NamedTuple):
    """What one question may cost: bytes and rows of its answer, edges walked by hops."""

    bytes: int
    rows: int
    edges: int


Outcome = Answer | Exception | None  # None: there was no time left, ask again
