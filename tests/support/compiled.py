"""Kernels that are compiled before a test, for what only compiled kernels do."""

from __future__ import annotations

from lpma.cpu import ready

# What else a process imports only when it is used: for those that others are forked from.
IMPORTED_LATE = [
    "algorithms.tracker", "ingest.formats.plain_rows", "lpma.backend.numba.backend",
    "lpma.cpu.column_kernels", "numba.np.arraymath", "numba.np.linalg",
]  # fmt: skip


def compile_kernels() -> None:
    """Have stores on the CPU kept by compiled kernels from here on."""
    ready.get_ready()
    if not ready.are_ready():
        from lpma.cpu import compiling

        compiling.compile_all(["lpma"])
        ready.note_compiled()
