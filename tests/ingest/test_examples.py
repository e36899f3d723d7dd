"""The examples in docstrings run, without a network, and print what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = (
    "datasets",
    "datasets.generators",
    "datasets.interactions",
    "datasets.random_graphs",
    "plots",
    "plots.ego",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LPMA_DATA", raising=False)
    result = doctest.testmod(importlib.import_module(f"ingest.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
