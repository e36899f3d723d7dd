"""The kernels that programs call, with the types they are compiled for: the `kernels.txt` of each
of the three packages.

A line is `milliseconds module.function(types)`: what compiling took where the list was made. A
kernel comes after those that it is made of. `python -m tests.support.kernel_lists` writes the
lists, and a test compares them with what programs call.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .cache import ROOT

PACKAGES = ("lpma", "algorithms", "ingest")

_LINE = re.compile(r"(\d+) ([\w.]+)\.(\w+)\((.*)\)")


@dataclass(frozen=True)
class Entry:
    """A kernel and its types. Immutable."""

    milliseconds: int
    module: str
    function: str
    types: str

    def __str__(self) -> str:
        return f"{self.milliseconds} {self.module}.{self.function}({self.types})"

    @property
    def kernel(self) -> Any:
        return getattr(importlib.import_module(self.module), self.function)

    def compile(self) -> None:
        """Compile the kernel in this process, or read it from the cache."""
        self.kernel.compile(_types(self.types))

    def read(self) -> None:
        """Read the kernel from the cache, if Python can call it."""
        if not self.kernel.targetoptions.get("no_cpython_wrapper"):
            self.compile()


def parse(line: str) -> Entry:
    """Raises ValueError for a line that is not an entry of a list."""
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError(f"not an entry of a list of kernels: {line!r}")
    return Entry(int(found[1]), found[2], found[3], found[4])


@lru_cache(maxsize=len(PACKAGES))
def entries(package: str) -> tuple[Entry, ...]:
    """A package's list; empty if the package is not installed."""
    file = ROOT / package / "kernels.txt"
    return tuple(map(parse, file.read_text("utf-8").splitlines())) if file.is_file() else ()


def _types(text: str) -> tuple[Any, ...]:
    from numba import types

    def frozen(array: Any) -> Any:
        return array.copy(readonly=True)

    def named(path: str, *fields: Any) -> Any:
        module, _, name = path.rpartition(".")
        cls = getattr(importlib.import_module(module), name)
        return types.BaseTuple.from_types(fields, pyclass=cls)

    names = {**vars(types), "frozen": frozen, "named": named}
    return tuple(eval(f"({text},)", names)) if text else ()
