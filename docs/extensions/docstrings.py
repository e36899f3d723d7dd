"""Turns the docstrings, which are written to be read in the code, into reStructuredText.

They have three habits of their own, and each becomes what a page has for it:

    name, other   what it is, in a         lines in two columns: a list of definitions
                  second column
    name: what it is                       lines that begin with a name and a colon: the same
    `name`                                 code, and a link where it is a public name

The public names of the page that is written (those of its module, and of the class) come first.
What an algorithm's option may be, and its default, follow its name (`algorithms.options`).
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from sphinx.application import Sphinx

from algorithms.options import REQUIRED

PACKAGES = ("lpma", "algorithms", "ingest")
_COLUMNS = re.compile(r"(\S+(?:,? \S+)*)  +(\S.*)")
_NAMED = re.compile(r"([a-z_]\w*(?:, [a-z_]\w*)*): (\S.*)")
_QUOTED = re.compile(r"`([^`]+)`")
_MARKUP = re.compile(r"[*|\\]|_(?=\W|$)")


@cache
def public() -> frozenset[str]:
    """Dotted names of what the packages export, and of its members."""
    names: set[str] = set()
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            names.add(f"{package}.{name}")
            if inspect.isclass(value):
                members = [member for member in dir(value) if not member.startswith("_")]
                names.update(f"{package}.{name}.{member}" for member in members)
    return frozenset(names)


def target(quoted: str, name: str) -> str | None:
    """The public name that a quoted word of the docstring of `name` means."""
    word = re.sub(r"\(.*\)$", "", quoted)
    parts = name.split(".")
    scopes = [".".join(parts[:length]) + "." for length in range(len(parts), 0, -1)]
    elsewhere = ("", "lpma.", "lpma.Graph.") if parts[0] == "lpma" else ("", "lpma.")
    for scope in (*scopes, *elsewhere):
        found = scope + word
        if found in public() and found != name and not (scope == "" and "." not in word):
            return found
    return None


def inline(text: str, name: str) -> str:
    """A line's text, with code marked as code and nothing else read as markup."""
    pieces = _QUOTED.split(text)
    for i, piece in enumerate(pieces):
        if i % 2 == 0:
            pieces[i] = _MARKUP.sub(r"\\\g<0>", piece)
        else:
            found = target(piece, name)
            pieces[i] = f":py:obj:`{piece} <{found}>`" if found else f"``{piece}``"
    return "".join(pieces)


def defined(lines: list[str]) -> list[tuple[str, list[str]]] | None:
    """(term, lines of its description) of a paragraph that is a list of definitions; else None."""
    for pattern, indented in ((_COLUMNS, True), (_NAMED, False)):
        if not pattern.fullmatch(lines[0]):
            continue
        found: list[tuple[str, list[str]]] = []
        for line in lines:
            match = None if indented and line[0] == " " else pattern.fullmatch(line)
            if match:
                found.append((match[1], [match[2]]))
            elif indented and line[0] != " ":
                break  # text in which somebody aligned something
            else:
                found[-1][1].append(line.strip())
        else:
            return found
    return None


def parted(paragraph: list[str]) -> Iterator[list[str]]:
    """The paragraph, in two where a line of text leads to a list in two columns."""
    if len(paragraph) > 2 and not defined(paragraph) and defined(paragraph[1:]):
        yield paragraph[:1]
        paragraph = paragraph[1:]
    yield paragraph


def rewritten(lines: list[str], name: str, options: dict[str, Any]) -> Iterator[str]:
    text = "\n".join(lines).strip("\n")
    paragraphs = (paragraph.split("\n") for paragraph in re.split(r"\n\s*\n", text))
    for part in (part for paragraph in paragraphs for part in parted(paragraph)):
        definitions = defined(part)
        if part[0].lstrip().startswith(">>>"):
            yield from part
        elif definitions:
            for term, described in definitions:
                yield f"``{term}``{f' : {limits(options[term])}' if term in options else ''}"
                yield from (f"    {inline(line, name)}" for line in described)
        else:
            yield from (inline(line, name) for line in part)
        yield ""


def limits(option: Any) -> str:
    """What an algorithm's option may be, and its default."""
    default = "" if option.default is REQUIRED else f" (default: {option.default})"
    return f"{option.wanted}{default}"


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = rewritten(list(lines), name, getattr(obj, "options", {}))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}
