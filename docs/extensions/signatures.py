"""Writes a signature as one would read it, where autodoc's is no Python or is very long.

Types lose their limits (`Annotated`), which the page on settings has. A default that is a function
becomes its name, and one without a name, or made anew by every call, three dots.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
import re
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from sphinx.application import Sphinx
from sphinx.util.inspect import TypeAliasForwardRef, signature, stringify_signature

_ODD = re.compile(r"Annotated\[|=\s*<")


class Name:
    """What is written as a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


def bare(annotation: Any) -> Any:
    """The type without its limits."""
    if isinstance(annotation, dataclasses.InitVar):
        return bare(annotation.type)
    if get_origin(annotation) is Annotated:
        return bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return functools.reduce(operator.or_, map(bare, get_args(annotation)))
    return annotation


def plain(parameter: inspect.Parameter) -> inspect.Parameter:
    default = parameter.default
    if default is not parameter.empty and repr(default).startswith("<"):
        name = getattr(default, "__name__", "")
        default = Name(name if name.isidentifier() else "...")
    return parameter.replace(annotation=bare(parameter.annotation), default=default)


def process(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, shown: str | None, returned: Any
) -> tuple[str, str] | None:
    if not _ODD.search(shown or ""):
        return None
    given = signature(obj, type_aliases=app.config.autodoc_type_aliases)
    parameters = [plain(parameter) for parameter in given.parameters.values()]
    written = given.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    return stringify_signature(written, unqualified_typehints=True), ""


def setup(app: Sphinx) -> dict[str, bool]:
    # Sphinx writes an alias by its repr where it is part of a union.
    TypeAliasForwardRef.__repr__ = lambda self: self.name  # type: ignore[method-assign]
    app.connect("autodoc-process-signature", process)
    return {"parallel_read_safe": True}
