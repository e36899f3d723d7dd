"""One line to the user, on stderr. That nobody can read it must not end what the program does."""

from __future__ import annotations

import sys
from contextlib import suppress


def tell(text: str) -> None:
    """Say `text`, if there is a stderr and it takes it."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(f"lpma: {text}", file=sys.stderr, flush=True)
