"""Usage lines as manuals write them, whatever Typer's release: NAME what must be given, [NAME] what
may be. Newer ones say {name}, which reads as a placeholder that nobody filled in."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand


class App(typer.Typer):
    """An application whose commands have such lines."""

    def command(self, name: str | None = None, **given: Any) -> Any:
        return super().command(name, cls=_Command, **given)


class _Command(TyperCommand):
    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "").upper() for piece in pieces]
