"""The options of an algorithm, declared once: by the signature and the docstring of its function.

    @algorithm
    def pagerank(s: Any, damping: Annotated[float, Limits(ge=0, le=1)] = 0.85) -> Array:
        '''The rank of every vertex.

        damping: the probability, from 0 to 1, of following an edge. …
        '''

The signature has an option's type, default and limits; the docstring, after its name and a colon,
what it means, of which the first sentence is its description. By that the function admits what a
caller gives: its body, and the programs behind it, check nothing again. `options_of` tells it to
whoever else offers the option: the command line and the HTTP service (`ingest.analyses`), and the
pages (docs/extensions).

A parameter is an option if it is a number, a truth, a word or a vertex. Others, such as arrays and
callbacks, are admitted by `arguments` in the function's body, and so is what depends on the graph:
whether it has the vertex, which methods there are on its device.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from types import NoneType
from typing import Any, TypeVar, cast, get_args, get_type_hints

import numpy as np

from lpma import Graph
from lpma.arguments import scalars

MOST = int(np.iinfo(np.int32).max)  # rows, rounds or neighbours
MOST_COUNT = 1 << 62  # bytes, or bicliques
REQUIRED = inspect.Parameter.empty  # the default of an option that must be given

Vertex = int | np.integer[Any] | str  # a row, or in a Snapshot with names, a name
Function = TypeVar("Function", bound=Callable[..., Any])

_KINDS = (int, float, bool, str, Vertex)
_DESCRIBED = re.compile(r"^(\w+): (.+?)(?=^\w+(?:, \w+)*: |^$|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Limits:
    """Which values of its type an option may have."""

    ge: int = 0  # of numbers: this or more
    le: int | None = None  # of numbers: this or less; None: however much
    most: int = MOST  # integers above it mean the same as it: no machine word overflows
    choices: tuple[str, ...] = ()  # of words: these alone; empty: the function's body says which


@dataclass(frozen=True)
class Option:
    """An option of an algorithm."""

    name: str
    kind: Any  # int, float, bool, str or Vertex
    default: Any = REQUIRED  # None: it may be None
    limits: Limits = Limits()
    description: str = ""  # a sentence without its capital and its full stop

    @property
    def wanted(self) -> str:
        """What it may be, for messages and tables."""
        least, most = self.limits.ge, self.limits.le
        if self.limits.choices:
            return f"one of {', '.join(self.limits.choices)}"
        if self.kind in (int, float):
            kind = "an integer" if self.kind is int else "a number"
            return f"{kind} from {least} {'on' if most is None else f'to {most}'}"
        return {bool: "true or false", str: "a word", Vertex: "a vertex"}[self.kind]

    def admit(self, value: Any) -> Any:
        """The value, as the one type that the algorithm takes. Raises BatchError."""
        name, limits = self.name, self.limits
        if value is None and self.default is None:
            return None
        if self.kind is int:
            return min(scalars.integer(value, name, limits.ge, limits.le), limits.most)
        if self.kind is float:
            most = math.inf if limits.le is None else limits.le
            return scalars.number(value, name, limits.ge, most)
        if self.kind is bool:
            return scalars.truth(value, name)
        return scalars.choice(value, name, limits.choices) if limits.choices else value


def algorithm(function: Function) -> Function:
    """A decorator of a public function, whose first argument is a graph: of an `lpma.Graph` it is
    given the snapshot, and each option as it is admitted."""
    options = _declared(function)
    bare = get_type_hints(function)  # help() and the pages show types without their limits
    function.__annotations__.update({name: bare[name] for name in options})
    names = list(inspect.signature(function).parameters)[1:]

    def admitted(name: str, value: Any) -> Any:
        return options[name].admit(value) if name in options else value

    @wraps(function)
    def call(s: Any, *args: Any, **named: Any) -> Any:
        ordered = [admitted(name, value) for name, value in zip(names, args, strict=False)]
        named = {name: admitted(name, value) for name, value in named.items()}
        s = s.snapshot() if isinstance(s, Graph) else s
        return function(s, *ordered, *args[len(names) :], **named)  # too many: Python says so

    call.options = options  # type: ignore[attr-defined]
    return cast(Function, call)


def options_of(function: Any, *names: str) -> dict[str, Option]:
    """The options of an algorithm by name, or those of these names, in this order."""
    options: dict[str, Option] = function.options
    return {name: options[name] for name in names or options}


def _declared(function: Callable[..., Any]) -> dict[str, Option]:
    hints = get_type_hints(function, include_extras=True)
    described = dict(_DESCRIBED.findall(inspect.cleandoc(function.__doc__ or "")))
    options = {}
    for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
        kind, limits = _kind_and_limits(hints[name])
        if kind in _KINDS:
            sentence = re.split(r"\.\s", described.get(name, ""), maxsplit=1)[0]
            described_as = " ".join(sentence.split()).removesuffix(".")
            options[name] = Option(name, kind, parameter.default, limits, described_as)
    return options


def _kind_and_limits(hint: Any) -> tuple[Any, Limits]:
    """Of an annotation such as `Annotated[int | None, Limits(ge=1)]`: int, and the limits."""
    kind, *extra = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
    either = get_args(kind)
    if len(either) == 2 and NoneType in either:
        kind = either[0]
    return kind, next((each for each in extra if isinstance(each, Limits)), Limits())
