"""The examples in docstrings of the algorithms run, and each function that is exported has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import pytest

import algorithms

FUNCTIONS = [name for name in algorithms.__all__ if inspect.isfunction(getattr(algorithms, name))]


def modules() -> list[str]:
    """All that need no device."""
    every = pkgutil.walk_packages(algorithms.__path__, "algorithms.")
    return sorted(module.name for module in every if "cuda" not in module.name)


@pytest.mark.parametrize("name", ["algorithms", *modules()])
def test_examples_run(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_is_exported_has_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(getattr(algorithms, name)) or "")
