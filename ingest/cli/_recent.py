"""`--window` and `--since`: only the edges of late, of a graph that is loaded or read once."""

from __future__ import annotations

import re
from collections.abc import Callable
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
    def _bound(self) -> Callable[[int], int]:
        """What is older goes, by the time of the newest edge. Raises typer.BadParameter."""
        from ..formats.times import millisecond
        from ..pipeline.windows import width_of

        said = (self.since or "").strip()
        try:
            if self.since is None:
                width = width_of(self.window) or 0
                return lambda newest: newest - width
            if re.fullmatch(r"[+-]?\d+", said, re.ASCII):
                since = int(said)
            elif re.fullmatch(r"\d+ *[a-z]+", said, re.ASCII):
                since = now_ms() - (width_of(said) or 0)
            else:
                since = millisecond(said)
            return lambda newest: since
        except PipelineError as error:
            raise typer.BadParameter(str(error), param_hint=self.names_recent) from error
        except ValueError:
            raise typer.BadParameter(
                f"{said!r}: expected a date or time of ISO 8601, how long ago, as 30d, or a number "
                "in the unit of the times",
                param_hint="--since",
            ) from None

    def check_recent(self, timed: bool) -> None:
        """Raise typer.BadParameter if edges cannot be told by their times. timed: whether what is
        read says when they were."""
        if (name := self.names_recent) is None:
            return
        _ = self._bound  # which refuses what it cannot be
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
        before, had = max(self._bound(newest), -(2**63)), graph.num_edges
        graph.expire(before)
        gone = had - graph.num_edges
        screen.say(f"{gone:,} of {had:,} edges were last changed before {before}, and are left out")


ALL = RecentOptions()  # edges stay
