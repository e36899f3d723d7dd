"""The sources that rules are about, each read and parsed once."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Source:
    """A file of Python, by its path below the root of the project."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def parts(self) -> tuple[str, ...]:
        """The folders of the file, and its name without `.py`."""
        return Path(self.name).with_suffix("").parts

    @property
    def module(self) -> str:
        """Its dotted name; a package's is that of its `__init__`."""
        return ".".join(self.parts[:-1] if self.parts[-1] == "__init__" else self.parts)


@cache
def source(name: str) -> Source:
    return Source(name, (ROOT / name).read_text(encoding="utf-8"))


@cache
def of_packages(*packages: str) -> list[Source]:
    paths = sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))
    return [source(str(path.relative_to(ROOT))) for path in paths]
