"""Libraries that are hidden from a process although they are installed, so that it is one of a
reader who has installed no extra, or only some.

In the process itself `hidden` hides them for a while. In others the variable LPMA_TEST_HIDDEN names
them, if the folder that `write_hook` wrote to comes first in PYTHONPATH.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.metadata import (
    PackageNotFoundError,
    distribution,
    entry_points,
    packages_distributions,
)
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
VARIABLE = "LPMA_TEST_HIDDEN"
EXTRAS = ("kafka", "metrics", "ray", "registry", "serve")  # those that readers are told to install
# Readers bring these themselves, or do not.
LIBRARIES = ("duckdb", "igraph", "networkx", "pandas", "polars", "torch", "torch_geometric")

HOOK = f"""import os, sys
class _Hidden:
    names = frozenset(os.environ.get({VARIABLE!r}, "").split())
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in cls.names:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, _Hidden)
"""


def write_hook(folder: Path) -> None:
    """Have a Python whose PYTHONPATH begins with this folder hide what the variable names."""
    (folder / "sitecustomize.py").write_text(HOOK)


@cache
def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def normal(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def modules_of(extra: str) -> frozenset[str]:
    """The top-level modules that an extra brings beside those that are always there."""
    wanted = set()
    for text in project()["optional-dependencies"][extra]:
        requirement = Requirement(text)
        wanted |= {normal(requirement.name), *map(normal, requirement.extras)}
    return frozenset(
        module
        for module, distributions in packages_distributions().items()
        if wanted & set(map(normal, distributions))
    )


def without(needs: frozenset[str]) -> frozenset[str]:
    """The modules that somebody does not have who has installed these extras and libraries."""
    hidden = {*LIBRARIES, *(module for extra in EXTRAS for module in modules_of(extra))}
    return frozenset(hidden - needs - {m for e in EXTRAS if e in needs for m in modules_of(e)})


def not_brought_by(extra: str) -> frozenset[str]:
    """The modules that are not there where nothing but this extra is installed."""
    brought: set[tuple[str, str]] = set()

    def add(text: str, of: str) -> None:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": of}):
            return
        for wanted in ("", *requirement.extras):
            name = normal(requirement.name)
            if (name, wanted) not in brought:
                brought.add((name, wanted))
                with suppress(PackageNotFoundError):  # on another system
                    for further in distribution(name).requires or ():
                        add(further, wanted)

    for text in [*project()["dependencies"], *project()["optional-dependencies"][extra]]:
        add(text, "")
    names = {name for name, _ in brought} | {normal(project()["name"])}
    # What says that it extends Pygments is imported for that, and is not asked for otherwise.
    plugins = {point.module.partition(".")[0] for point in entry_points(group="pygments.lexers")}
    return frozenset(
        module
        for module, distributions in packages_distributions().items()
        if module not in plugins and not names & set(map(normal, distributions))
    )


class _Finder(MetaPathFinder):
    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@contextmanager
def hidden(names: frozenset[str]) -> Iterator[None]:
    """Within, importing one of these fails; also of what was imported before."""
    taken = {
        name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in names
    }
    finder = _Finder(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        sys.modules.update(taken)
