"""Compiling beforehand what the demo calls, so that a latency measured after this is the store's
own, on the first run after an installation too.

On the CPU all cores compile, in processes of their own, while this one does something else between
`begin` and `wait`; then what was compiled is read. On a GPU `begin` compiles, as `lpma.compile`
does.
"""

from __future__ import annotations

import threading
import time
from functools import partial

from lpma.backend import compile_for, is_cuda
from lpma.cpu import compiling, ready
from lpma.cpu.jit import telling
from lpma.cpu.manifest import Entry, entries
from lpma.errors import LpmaError

from .stream import Progress, Tell

STREAM = ("lpma", "ingest")  # packages of which everything is compiled
# Modules of algorithms that are used. The tracker is the window's.
ALGORITHMS = tuple(
    f"algorithms.{name}" for name in (
        "components", "core", "diversity", "triangles", "truss", "views", "tracker.core",
        "tracker.listed_cpu", "tracker.rows",
    )
)  # fmt: skip


class WarmUp:
    """Compiling, and reading what was compiled."""

    def __init__(self, progress: Progress, tell: Tell, device: str) -> None:
        self._progress = progress
        self._tell = tell
        self._device = device
        self._ending = threading.Event()
        self._failure: Exception | None = None
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Compile: for a GPU now, for the CPU while the program goes on."""
        if is_cuda(self._device):
            compile_for(self._device, partial(self._note, "compile"))
        elif compiling.is_compiled(STREAM):
            ready.note_compiled()
        else:
            self._tell(
                "compiling for this machine, once, on all cores, while the stream comes in: until "
                "that is done, NumPy alone keeps the graph"
            )
            self._thread = threading.Thread(target=self._compile, daemon=True, name="lpma-warm-up")
            self._thread.start()

    def wait(self) -> None:
        """Wait until everything is compiled, and read it. Raises CompileError."""
        if is_cuda(self._device):
            return
        if self._thread is not None:
            self._thread.join()
            if self._failure is not None:
                raise self._failure
            ready.note_compiled()
        silent, telling.silent = telling.silent, True  # the bar says it
        wanted = [*entries("lpma"), *filter(_is_called, entries("algorithms"))]
        try:
            for done, entry in enumerate(wanted, 1):
                entry.read()
                self._note("get ready", done / len(wanted))
        finally:
            telling.silent = silent

    def stop(self) -> None:
        """Leave uncompiled what is not compiled yet."""
        if self._thread is not None and self._thread.is_alive():
            self._ending.set()
            compiling.end_workers()
            self._thread.join()

    def _note(self, what: str, done: float) -> None:
        self._progress(what, round(100 * done), 100)

    def _compile(self) -> None:
        started = time.perf_counter()
        try:
            # The store's first: whoever keeps a graph waits for these.
            compiling.compile_all(
                STREAM, partial(self._note, "compile"), compiling.BEHIND, self._ending
            )
            compiling.compile_all(
                ("algorithms",), partial(self._note, "compile algorithms"), compiling.BEHIND,
                self._ending, wanted=_is_called,
            )  # fmt: skip
            self._tell(f"compiled, in {time.perf_counter() - started:.0f} s")
        except (LpmaError, OSError) as error:
            self._failure = error


def _is_called(entry: Entry) -> bool:
    """Whether this is a kernel of an algorithm that the demo calls."""
    return entry.module.startswith(ALGORITHMS)
