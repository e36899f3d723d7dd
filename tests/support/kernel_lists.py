"""Writes the three lists of kernels anew: see lpma/cpu/manifest.py.

    python -m tests.support.kernel_lists

compiles everything that kernel_workload.py calls into an empty cache, which takes a minute, and
notes what is compiled in which order. Run it after a kernel has changed, or what it is called with.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any

from numba import types
from numba.core import event

from lpma.cpu import jit, ready
from lpma.cpu.cache import ROOT
from lpma.cpu.manifest import PACKAGES, Entry
from tests.support import kernel_workload


def main() -> None:
    if "--here" not in sys.argv:
        with tempfile.TemporaryDirectory() as empty:
            command = [sys.executable, "-m", "tests.support.kernel_lists", "--here"]
            subprocess.run(command, env={**os.environ, "NUMBA_CACHE_DIR": empty}, check=True)
        return
    entries = recorded()
    for package in PACKAGES:
        lines = [f"{entry}\n" for entry in entries if entry.module.split(".")[0] == package]
        (ROOT / package / "kernels.txt").write_text("".join(lines))
        print(f"{package}: {len(lines)} kernels")


def recorded() -> list[Entry]:
    """What the workload compiles, in order. Nothing that is in the cache already."""
    jit.telling.silent = True
    ready.note_compiled()  # else the NumPy backend would keep all stores, and call no kernel
    recorder = Recorder()
    with event.install_listener("numba:compile", recorder):
        kernel_workload.run()
    return recorder.entries


class Recorder(event.Listener):
    """Keeps an entry for each kernel of ours that Numba compiles, in the order in which they are
    done: a kernel after those that it is made of."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._spent: list[float] = []  # in the kernels that the one under way is made of
        self._begun: list[float] = []

    def on_start(self, event: Any) -> None:
        self._begun.append(time.perf_counter())
        self._spent.append(0.0)

    def on_end(self, event: Any) -> None:
        seconds = time.perf_counter() - self._begun.pop()
        own = seconds - self._spent.pop()
        if self._spent:
            self._spent[-1] += seconds
        kernel = event.data["dispatcher"]
        module = kernel.py_func.__module__
        if module.split(".")[0] in PACKAGES:
            # What is handed a text has no line: it is compiled with what calls it.
            with suppress(ValueError):
                takes = ", ".join(map(text_of, event.data["args"]))
                named = vars(sys.modules[module]).items()
                name = next(name for name, value in named if value is kernel)
                self.entries.append(Entry(round(1000 * own), module, name, takes))


def text_of(kind: Any) -> str:
    """A Numba type as a list has it. Raises ValueError for one that no kernel should have."""
    if isinstance(kind, types.Array):
        layout = {"C": "::1", "A": ":"}.get(kind.layout)
        if layout is not None and kind.aligned:
            axes = ", ".join([":"] * (kind.ndim - 1) + [layout])
            array = f"{text_of(kind.dtype)}[{axes}]"
            return array if kind.mutable else f"frozen({array})"
    elif isinstance(kind, types.BaseNamedTuple):
        cls = kind.instance_class
        path = f"{cls.__module__}.{cls.__qualname__}"
        return f"named({path!r}, {', '.join(map(text_of, kind.types))})"
    elif isinstance(kind, types.Literal):
        return f"literal({kind.literal_value!r})"
    elif isinstance(kind, types.BaseTuple):
        return f"Tuple([{', '.join(map(text_of, kind.types))}])"
    elif isinstance(kind, types.Boolean | types.Number | types.NoneType):
        return str(kind)
    raise ValueError(f"a kernel has an argument of type {kind!r}")


if __name__ == "__main__":
    main()
