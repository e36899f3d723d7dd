"""The command line `lpma`: a module for each command, named after it; modules whose names begin
with an underscore are shared. See `commands.py`."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .commands import app as app

__all__ = ["app", "main"]


def main() -> None:
    """The entry point of the console script, whose process is ours. The commands are imported only
    here, where Ctrl-C is expected already."""
    from ..process import pass_the_lock_on_soon
    from ._interrupt import end_on_interrupt

    end_on_interrupt()
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name may have characters that it cannot show
        sys.stdout.reconfigure(errors="backslashreplace")
    pass_the_lock_on_soon()
    from .commands import app

    app()


def __getattr__(name: str) -> Any:
    if name == "app":
        from .commands import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
