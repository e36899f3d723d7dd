"""`--window` and `--since`: only the edges of late, of a graph that is loaded or read once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import typer

from lpma.arrays import to_host

from ..errors import PipelineError
from ..timers import now_ms
from ._console import Screen
from ._typer import option

if TYPE_CHECKING:
    import lpma

_option = partial(option, panel="Only the edges of late")


@dataclass(frozen=True)
class RecentOptions:
    """Which edges stay, by the time of their last operation; None: all."""

    window: str | None = _option(
        "--window", metavar="WIDTH",
        help="Keep the edges whose last operation is at most this much older than the newest: 30d, "
        "of ms, s, m, h, d, w, or a number in the unit of the times.",
    )  # fmt: skip
    since: str | None = _option(
        "--since", metavar="TIME",
        help="Keep those whose last operation is no older than this: a date or time of ISO 8601, "
        "30d for that long ago, or a number in the unit of the times.",
    )  # fmt: skip

    @property
    def names_recent(self) -> str | None:
        """The option that was given, if one was. Raises typer.BadParameter on two."""
        given = [name for name in ("window", "since") if getattr(self, name) is not None]
        if len(given) > 1:
            raise typer.BadParameter("give one of the two", param_hint="--window and --since")
        return f"--{given[0]}" if given else None

    @cached_property
    def _width(self) -> int | None:
        """Of the window."""
        from ..pipeline.windows import width_of

        try:
            return width_of(self.window)
        except PipelineError as error:
            raise typer.BadParameter(str(error), param_hint="--window") from error

    @cached_property
    def _since(self) -> int | None:
        from ..formats.times import millisecond
        from ..pipeline.windows import width_of

        if self.since is None:
            return None
        said = self.since.strip()
        try:
            if re.fullmatch(r"[+-]?\d+", said, re.ASCII):
                return int(said)
            if re.fullmatch(r"\d+ *[a-z]+", said, re.ASCII):
                return now_ms() - (width_of(said) or 0)
            return millisecond(said)
        except (ValueError, PipelineError):
            raise typer.BadParameter(
                f"{self.since!r}: expected a date or time of ISO 8601, how long ago, as 30d, or a "
                "number in the unit of the times",
                param_hint="--since",
            ) from None

    def check_recent(self, timed: bool) -> None:
        """Raise typer.BadParameter if edges cannot be told by their times. timed: whether what is
        read says when they were."""
        if (name := self.names_recent) is None:
            return
        _ = self._width, self._since
        if not timed:
            raise typer.BadParameter(
                "what is read has no times: name the column that holds them by --time",
                param_hint=name,
            )

    def keep_recent(self, graph: lpma.Graph, screen: Screen) -> None:
        """Let the others expire, and say how many did."""
        if self.names_recent is None or not graph.num_edges:
            return
        newest = int(np.max(to_host(graph.snapshot()._times)))
        before, had = self._since, graph.num_edges
        if before is None:
            before = newest - (self._width or 0)
        graph.expire(max(before, -(2**63)))
        gone = had - graph.num_edges
        screen.say(f"{gone:,} of {had:,} edges were last changed before {before}, and are left out")


ALL = RecentOptions()  # edges stay
