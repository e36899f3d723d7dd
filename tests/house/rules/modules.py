"""What a module looks like: it says what it is, its functions do one thing, what it compiles can
be kept, and what it exports is explained.

A file is about one thing, however long; one of more than 500 lines of code is told, not refused.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterable, Iterator
from typing import Any

from .sources import Source

CODE_LINES = 500  # of a file, its docstrings and comments not counted
FUNCTION_LINES = 64  # of a body: signature and docstring are the reader's help
COMPILING = {"compiled", "inlined", "part", "jit", "njit"}  # decorators
MOST_HAVE = {"lpma": 100, "algorithms": 100}  # fewer compiled functions: they were not recognised
Function = ast.FunctionDef | ast.AsyncFunctionDef


def docstrings(sources: Iterable[Source]) -> Iterator[str]:
    """A module opens with a sentence; an empty __init__.py says it all."""
    for source in sources:
        if source.tree.body and len((ast.get_docstring(source.tree) or "").split()) < 4:
            yield f"{source.name}:1: the module does not say what it is"


def functions(sources: Iterable[Source]) -> Iterator[str]:
    """A function does one thing: what outgrows the limit is to be parted."""
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, Function):
                body = node.body[1:] if ast.get_docstring(node) is not None else node.body
                lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
                if lines > FUNCTION_LINES:
                    yield f"{source.name}:{node.lineno}: {node.name} has {lines} lines"


def generators(sources: Iterable[Source]) -> Iterator[str]:
    """No generator is compiled. Numba cannot compile a caller of a generator that it has from its
    cache: where the cache was filled by half, because that was interrupted or by another process,
    no later one would run."""
    seen: dict[str, int] = {}
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, Function) and COMPILING & _decorators(node):
                seen[source.parts[0]] = seen.get(source.parts[0], 0) + 1
                if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(node)):
                    yield f"{source.name}:{node.lineno}: {node.name} is compiled, and yields"
    for package, least in MOST_HAVE.items():
        if package in seen and seen[package] < least:
            yield f"{package}:1: {seen[package]} compiled functions were recognised: see COMPILING"


def _decorators(node: Function) -> set[str]:
    """The last parts of the decorators' names, of those that are called too."""
    found = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
    return {ast.unparse(decorator).rpartition(".")[2] for decorator in found}


def exports(*packages: str) -> Iterator[str]:
    """What a package exports is there and has a docstring with an example, errors and constants
    without one; and its public methods and properties are documented, inherited ones too."""
    for package in packages:
        module = importlib.import_module(package)
        for name in module.__all__:
            value: Any = getattr(module, name, None)
            is_class = inspect.isclass(value) and not issubclass(value, BaseException)
            if not name.startswith("__") and not getattr(value, "__doc__", None):
                yield f"{package}:1: {name} has no docstring"
            if (inspect.isroutine(value) or is_class) and ">>> " not in (value.__doc__ or ""):
                yield f"{package}:1: {name} has no example in its docstring"
            for method, member in inspect.getmembers(value) if is_class else ():
                ours = inspect.isroutine(member) or isinstance(member, property)
                if ours and not method.startswith("_") and not inspect.getdoc(member):
                    yield f"{package}:1: {name}.{method} has no docstring"


def long_files(sources: Iterable[Source]) -> Iterator[str]:
    """Not a problem: worth a look."""
    for source in sources:
        if (lines := lines_of_code(source)) > CODE_LINES:
            yield f"{source.name}:1: {lines} lines of code: is it about one thing?"


def lines_of_code(source: Source) -> int:
    """Lines that hold neither a comment alone, nor a docstring, nor nothing."""
    prose: set[int] = set()
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Module | ast.ClassDef | Function):
            continue
        if ast.get_docstring(node) is not None:
            prose.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = (line.strip() for line in source.text.splitlines())
    return sum(
        bool(line) and not line.startswith("#") and number not in prose
        for number, line in enumerate(lines, 1)
    )
