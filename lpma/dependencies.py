"""Libraries that may be missing: finding them, and what to say if they are."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import LpmaError

DISTRIBUTION = "lpma-graph"  # what pip calls it: on PyPI "lpma" is another project


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


def how_to_install(*extras: str) -> str:
    """The command that installs one of these extras. pip knows an installed distribution by its
    name; a checkout that is not installed is named by its folder."""
    ways = " or ".join(f"'{DISTRIBUTION}[{extra}]'" for extra in extras)
    return f"pip install {ways}, in a checkout '.[{extras[0]}]'"
