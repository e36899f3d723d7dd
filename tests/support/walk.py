"""The walk of a call: which of our files a reader passes who follows it. A report:

    python -m tests.support.walk

A step is a call of a Python function in another file than the last one called. Kernels are compiled
and take no step; a call that goes back to a file already left is a return. Counted once everything
is compiled and warm, so that what happens at first use is not in it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from numba.core.dispatcher import Dispatcher

ROOT = Path(__file__).parents[2]
PACKAGES = ("lpma", "algorithms", "ingest")


@dataclass(frozen=True)
class Walk:
    """The files of a call in the order of its steps, no two alike in a row."""

    steps: list[str]

    @property
    def files(self) -> list[str]:
        """Each file once, in the order that it is come to."""
        return list(dict.fromkeys(self.steps))

    @property
    def returns(self) -> int:
        """How many steps lead back to a file that was left before."""
        return len(self.steps) - len(self.files)

    def __str__(self) -> str:
        return f"{len(self.files)} files, {self.returns} returns: {' → '.join(self.steps)}"


def walk(call: Callable[[], Any]) -> Walk:
    """The walk of `call()` on this thread, which is called once to warm up and once to be
    counted."""
    steps: list[str] = []
    names: dict[str, str | None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event != "call" or (file, frame.f_code.co_name) in kernels:
            return
        if file not in names:
            path = Path(file)
            inside = path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in PACKAGES
            names[file] = str(path.relative_to(ROOT)) if inside else None
        name = names[file]
        if name is not None and (not steps or steps[-1] != name):
            steps.append(name)

    call()
    kernels = _kernels()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return Walk(steps)


def _kernels() -> set[tuple[str, str]]:
    """(file, name) of what our kernels are compiled from: a profiler is told of their calls, too,
    in frames of no code in particular."""
    ours = [module for name, module in sys.modules.items() if name.partition(".")[0] in PACKAGES]
    members = [member for module in ours for member in vars(module).values()]
    codes = [member.py_func.__code__ for member in members if isinstance(member, Dispatcher)]
    return {(code.co_filename, code.co_name) for code in codes}


def report() -> None:
    """Print the walks of an insertion, as its arguments come."""
    import numpy as np

    import lpma

    ids = np.arange(1000, dtype=np.uint32)
    forms: dict[str, tuple[Any, ...]] = {
        "scalars": (1, 2),
        "weight and time": (1, 2, 0.5, 7),
        "lists": ([1, 2], [2, 3]),
        "integers": (ids.astype(np.int64), ids.astype(np.int64)),
        "ids": (ids, ids),
        "columns": (ids.astype(np.int64), 3, np.ones(1000), ids.astype(np.int64)),
    }
    lpma.compile(device="cpu")
    g = lpma.Graph(device="cpu")
    g.insert(np.arange(5000), np.arange(5000))
    for name, given in forms.items():
        print(f"{name}: {walk(partial(g.insert, *given))}")


if __name__ == "__main__":
    report()
