"""The command line `lpma`: a module for each command, named after it; modules whose names begin
with an underscore are shared. See `commands.py`."""

from .commands import app, main

__all__ = ["app", "main"]
