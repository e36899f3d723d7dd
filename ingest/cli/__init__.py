"""The command line `lpma`. Commands live in modules by what they are about; see commands.py."""

from .commands import app, main

__all__ = ["app", "main"]
