"""The options of `GET /v1/run/{algorithm}`: those of `lpma run`, with the same names and defaults.

They are what the algorithms declare (`analyses.OPTIONS`), within limits of the service. Of each
algorithm's a msgspec struct is made, which reads a request's query, and of which OpenAPI's
parameters are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec

from algorithms.biclique import check_method
from algorithms.options import REQUIRED, Limits, Option, Vertex

from .. import analyses
from ..errors import WordError
from ..state.vertex_names import name_of
from .problems import Problem

MAX_TOP = 1000
# What one request may ask for: no more than this, whatever the algorithm takes.
MOST = {"tol": 1, "max_iter": 10_000, "p": 256, "q": 256, "left": 2**32 - 2}

_TOP = Option("top", int, 5, Limits(le=MAX_TOP), "how many of the largest values are told")
_LIST = Option("list", int, 0, Limits(le=MAX_TOP), "how many are listed")
_KINDS = {bool: Literal["true", "false"], Vertex: str}  # as a query has them


def _options_of(algorithm: str) -> Iterator[Option]:
    for option in analyses.OPTIONS[algorithm].values():
        most = MOST.get(option.name, option.limits.le)
        yield replace(option, limits=replace(option.limits, le=most))
    yield _LIST if algorithm == "bicliques" else _TOP


def _struct_of(algorithm: str) -> type[msgspec.Struct]:
    fields: list[Any] = []
    for option in OPTIONS[algorithm].values():
        kind, limits = _KINDS.get(option.kind, option.kind), option.limits
        if limits.choices:
            kind = Literal[limits.choices]
        elif kind in (int, float):
            kind = Annotated[kind, msgspec.Meta(ge=limits.ge, le=limits.le)]
        default = str(option.default).lower() if option.kind is bool else option.default
        given = () if default is REQUIRED else (default,)
        fields.append((option.name, kind, *given))
    name = f"Run_{algorithm.replace('-', '_')}"
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)


OPTIONS = {
    algorithm: {option.name: option for option in _options_of(algorithm)}
    for algorithm in analyses.OPTIONS
}
_STRUCTS = {algorithm: _struct_of(algorithm) for algorithm in OPTIONS}


def options_of(algorithm: str, given: Mapping[str, str]) -> dict[str, Any]:
    """The options of an algorithm as a request's query gives them. Raises Problem, BatchError."""
    if algorithm not in OPTIONS:
        raise Problem(404, f"no algorithm {algorithm[:64]!r}: there are {', '.join(OPTIONS)}")
    known = OPTIONS[algorithm]
    if unknown := sorted(set(given) - set(known)):
        said = ", ".join(known)
        raise Problem(422, f"unknown option {unknown[0][:64]!r}: {algorithm} takes {said}")
    for name, option in known.items():
        if option.default is REQUIRED and name not in given:
            raise Problem(422, f"{name}: {algorithm} needs it")
    try:
        texts = {name: _number(known[name], text) for name, text in given.items()}
        read = msgspec.convert(texts, _STRUCTS[algorithm])
    except msgspec.ValidationError as error:
        name = str(error).rpartition("`$.")[2].removesuffix("`")
        raise Problem(422, f"{name}: expected {known[name].wanted}") from None
    found = {name: _value(option, getattr(read, name)) for name, option in known.items()}
    if algorithm == "bicliques":
        check_method(found["method"], found["p"], found["q"])
    return found


def _number(option: Option, text: str) -> Any:
    """The number that a text is, or the text: then msgspec refuses it, or takes it as a word."""
    try:
        return option.kind(text) if option.kind in (int, float) else text
    except ValueError:
        return text


def _value(option: Option, read: Any) -> Any:
    if option.kind is bool:
        return read == "true"
    try:
        return name_of(read) if option.kind is Vertex else read
    except WordError as error:
        raise Problem(422, f"{option.name}: {error}") from None


def parameters() -> list[dict[str, Any]]:
    """The parameters of `/v1/run/{algorithm}` in OpenAPI: the algorithm, and the options of all."""
    algorithm = {"type": "string", "enum": list(OPTIONS)}
    path = {"name": "algorithm", "in": "path", "required": True, "description": "Which one.",
            "schema": algorithm}  # fmt: skip
    queries: dict[str, dict[str, Any]] = {}
    takers: dict[str, list[str]] = {}
    _, schemas = msgspec.json.schema_components(_STRUCTS.values())
    for name, options in OPTIONS.items():
        for option in options.values():
            takers.setdefault(option.name, []).append(name)
            schema = dict(schemas[_STRUCTS[name].__name__]["properties"][option.name])
            if option.default is None:
                del schema["default"]
            queries[option.name] = {"name": option.name, "in": "query", "required": False,
                                    "schema": schema}  # fmt: skip
            said = f"Of {', '.join(takers[option.name])}: {option.description}."
            queries[option.name]["description"] = said
    return [path, *queries.values()]
