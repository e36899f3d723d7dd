"""A function does one thing: what outgrows the limit is to be parted. A file is about one thing,
however long; what has more than 500 lines of code is told as a warning."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("lpma", "algorithms", "ingest", "benchmarks")
CODE_LINES = 500  # of a file, its docstrings and comments not counted
FUNCTION_LINES = 64


def sources() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def body(node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
    """The statements below a docstring, which is the reader's help."""
    return node.body[1:] if ast.get_docstring(node) is not None else node.body


def lines_of_code(text: str) -> int:
    """Lines that hold neither a comment alone, nor a docstring, nor nothing."""
    told: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        holds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, holds) and ast.get_docstring(node) is not None:
            told.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = (line.strip() for line in text.splitlines())
    return sum(
        bool(line) and not line.startswith("#") and number not in told
        for number, line in enumerate(lines, 1)
    )


def test_long_files_are_told() -> None:
    for path in sources():
        if (lines := lines_of_code(path.read_text())) > CODE_LINES:
            warnings.warn(f"{path.relative_to(ROOT)} has {lines} lines of code", stacklevel=1)
    assert lines_of_code('"""a\n\nb"""\n\n# c\nd = 1\n') == 1


def test_functions_do_one_thing() -> None:
    """The lines of a function's body: its signature is the reader's help, too."""
    long = {}
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and body(node):
                inside = body(node)
                lines = (inside[-1].end_lineno or 0) - inside[0].lineno + 1
                if lines > FUNCTION_LINES:
                    long[f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"] = lines
    assert not long
