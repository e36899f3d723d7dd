"""The examples in docstrings run, without a network, and print what they say."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

from ingest import datasets
from ingest.datasets import generators

ROOT = Path(__file__).parents[2]
EXEMPT = {"cache_directory", "data_directory", "find"}  # what they say depends on the machine


def modules() -> list[str]:
    """All that have an example."""
    files = [path for path in ROOT.glob("ingest/**/*.py") if ">>> " in path.read_text()]
    parts = [path.relative_to(ROOT).with_suffix("").parts for path in files]
    return sorted(".".join(p[:-1] if p[-1] == "__init__" else p) for p in parts)


@pytest.mark.parametrize("name", modules())
def test_examples_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LPMA_DATA", raising=False)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("module", [datasets, generators])
def test_a_function_that_is_exported_has_an_example(module: object) -> None:
    for name in set(module.__all__) - EXEMPT:  # type: ignore[attr-defined]
        function = getattr(module, name)
        if inspect.isfunction(function):
            assert ">>> " in (inspect.getdoc(function) or ""), name
