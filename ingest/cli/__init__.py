"""The command line `lpma`: a module for each command, named after it; what they share is in the
modules whose names begin with an underscore. See `commands.py`."""

from .commands import app, main

__all__ = ["app", "main"]
