"""Whether there is room for an export, checked before it begins."""

from __future__ import annotations

import shutil
import warnings

from ...display.words import size_of
from ...errors import LpmaError
from ...file.atomic import StrPath, check_writable
from ...host import available_memory_bytes
from ..csr import Csr


class ExportError(LpmaError, ValueError):
    """The snapshot does not fit where it was to go: memory, disk or the format's limits."""


def refuse_beyond_memory(needed_bytes: int, what: str) -> None:
    available = available_memory_bytes()
    if available is not None and needed_bytes > available:
        raise ExportError(
            f"{what} of this size needs about {size_of(needed_bytes)} and {size_of(available)} are "
            "free: export to a file or use to_scipy()"
        )


def check_target(path: StrPath, suffix: str, needed_bytes: int) -> None:
    """Raise PathError unless a file of this suffix may be put there, ExportError without room."""
    target = check_writable(path, suffix)
    free = shutil.disk_usage(target.parent).free
    if needed_bytes > free:
        raise ExportError(
            f"{path} may take {size_of(needed_bytes)} and {size_of(free)} are free: make room or "
            "choose another disk"
        )


def tell_left(s: Csr, suffix: str) -> None:
    """Warn whoever called a method of a snapshot that a file has no place for its left side."""
    if s.left is not None:
        warnings.warn(
            f"{suffix} cannot say which vertices are the left side, here those below {s.left}: "
            "write_npz() and write_parquet() keep it",
            stacklevel=4,
        )
