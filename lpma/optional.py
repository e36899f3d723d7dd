"""Libraries that need not be installed, and memory that need not be there: asked for by name,
refused with a message that says what to do."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from .errors import LpmaError


class MissingPackage(LpmaError, ImportError):
    """An optional library is not installed; the message says how to install it."""


def optional_import(module: str, package: str, purpose: str) -> Any:
    """`module`, or MissingPackage naming the `package` to install for `purpose`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackage(
            f"{purpose} needs {package}: pip install {package} ({error})", name=module
        ) from error


def available_memory_bytes() -> int | None:
    """Memory that can be allocated without swapping, or None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None
