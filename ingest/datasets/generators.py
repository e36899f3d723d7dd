"""Graphs made to order, by name: RMAT, uniform, grids like streets, and interaction streams.

Every generator is a function of its arguments and its seed alone, so two machines, or two runs of a
benchmark, stream the same graph. `from_spec` makes what a text such as "rmat:scale=18" describes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from lpma.batch.columns import Columns, Kind

from .interactions import interactions, with_deletions
from .random_graphs import GRAPH500, GeneratorError, grid, rmat, uniform

__all__ = [
    "GRAPH500",
    "GeneratorError",
    "from_spec",
    "grid",
    "interactions",
    "names",
    "rmat",
    "uniform",
    "with_deletions",
]

_GENERATORS: dict[str, Callable[..., Any]] = {
    "rmat": rmat,
    "uniform": uniform,
    "grid": grid,
    "interactions": interactions,
}


def names() -> list[str]:
    """The generators that `from_spec` knows.

    >>> names()
    ['grid', 'interactions', 'rmat', 'uniform']
    """
    return sorted(_GENERATORS)


def from_spec(spec: str) -> Columns:
    """The stream that "name:key=value,key=value" describes, as "rmat:scale=18,seed=7".

    Keys are the generator's arguments. Raises GeneratorError on an unknown name, key or value.

    >>> len(from_spec("grid:rows=3,columns=4"))
    17
    """
    name, _, rest = spec.partition(":")
    if name not in _GENERATORS:
        raise GeneratorError(f"no generator is called {name!r}: known are {', '.join(names())}")
    make = _GENERATORS[name]
    parameters = inspect.signature(make).parameters
    arguments: dict[str, Any] = {}
    for item in filter(None, rest.split(",")):
        key, _, value = (part.strip() for part in item.partition("="))
        if key not in parameters:
            raise GeneratorError(f"{name} has no {key!r}: it takes {', '.join(parameters)}")
        try:
            arguments[key] = _parsed(str(parameters[key].annotation), value)
        except ValueError:
            wanted = parameters[key].annotation
            raise GeneratorError(f"{name}: {key}={value!r} is not of type {wanted}") from None
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in arguments:
            raise GeneratorError(f"{name} needs {key}, as in {name}:{key}=…")
    made = make(**arguments)
    if isinstance(made, Columns):
        return made
    src, dst = made
    return Columns.validated(int(Kind.INSERT), src, dst, None, None)


def _parsed(annotation: str, value: str) -> bool | int | float:
    if annotation == "bool":
        if value.lower() not in ("true", "false", "1", "0"):
            raise ValueError(value)
        return value.lower() in ("true", "1")
    return float(value) if annotation == "float" else int(value.replace("_", ""))
