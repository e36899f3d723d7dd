"""The examples in docstrings run.

Examples use the names of the packages, and `np`, without importing them. They run on the CPU, in a
folder of their own.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("lpma", "algorithms", "ingest")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules_with_examples() -> Iterator[str]:
    """Modules whose text has an example, whether it can be imported here or not."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if ">>> " in path.read_text(encoding="utf-8"):
                parts = path.relative_to(ROOT).with_suffix("").parts
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def examples(module: ModuleType) -> list[doctest.DocTest]:
    names: dict[str, Any] = {name: importlib.import_module(name) for name in PACKAGES}
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = finder.find(module, extraglobs={"np": np, **names})
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "cuda" in name.split(".")[-1]:
        pytest.importorskip("cupy")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LPMA_DATA", raising=False)
    module = importlib.import_module(name)
    found = examples(module)
    written = re.findall(r"(?m)^ *>>> ", inspect.getsource(module))
    assert sum(len(test.examples) for test in found) == len(written), (
        "an example of this module is in no docstring that doctest finds"
    )
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    told: list[str] = []
    for test in found:
        runner.run(test, out=told.append)
    assert not runner.failures, "".join(told)
