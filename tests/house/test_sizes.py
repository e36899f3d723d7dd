"""A file is about one thing, and so is a function: what outgrows the limits is to be parted."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("lpma", "algorithms", "ingest", "benchmarks")
FILE_LINES = 310
FUNCTION_LINES = 64


def sources(*endings: str) -> list[Path]:
    return sorted(
        path for room in ROOMS for end in endings for path in (ROOT / room).rglob(f"*{end}")
    )


def test_files_are_about_one_thing() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in sources(".py", ".cu", ".cuh")}
    long = {str(p.relative_to(ROOT)): n for p, n in lengths.items() if n > FILE_LINES}
    assert not long


def test_functions_do_one_thing() -> None:
    """The lines of a function's body: its signature and docstring are the reader's help."""
    long = {}
    for path in sources(".py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) is not None else node.body
                lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
                if lines > FUNCTION_LINES:
                    long[f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"] = lines
    assert not long
