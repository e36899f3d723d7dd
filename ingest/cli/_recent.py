"""`--window` and `--since`: only the edges of late, of a graph that is loaded; and views in time of
one that is read (see `ingest/views.py`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from lpma.arrays import to_host
from lpma.errors import BatchError

from ..errors import PipelineError
from ._console import Screen, in_options
from ._targets import SINCE_1970_MS
from ._typer import option

if TYPE_CHECKING:
    import lpma
    from lpma import Snapshot

_option = partial(option, panel="Recent edges and decay")
_NAMES = ("since", "until", "half_life", "now")


@dataclass(frozen=True)
class SinceOptions:
    """Which edges stay, by the time of their last operation; None: all."""

    since: str | None = _option(
        "--since", metavar="TIME",
        help="Keep edges whose last operation is at this time or later: a date or time of ISO "
        "8601, an age such as 30d, or a number in the unit of the times.",
    )  # fmt: skip


@dataclass(frozen=True)
class RecentOptions(SinceOptions):
    """The same, also by how much older they are than the newest."""

    window: str | None = _option(
        "--window", metavar="WIDTH",
        help="Keep edges whose last operation is at most this much older than the newest, each "
        "with all that was ever added to it: 30d (units: ms, s, m, h, d, w), or a number in the "
        "unit of the times.",
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
        from ..pipeline.windows import span_of
        from ..views import time_of

        try:
            if self.since is None:
                width = span_of(self.window or "", "window")
                return lambda newest: newest - width
            since = time_of(self.since, "since")
            return lambda newest: since
        except (PipelineError, BatchError) as error:
            said = in_options(str(error))
            raise typer.BadParameter(said, param_hint=self.names_recent) from error

    def check_recent(self, timed: bool, dated: bool = False) -> None:
        """Raise typer.BadParameter if edges cannot be told by their times. timed: whether what is
        read says when they were; dated: by dates."""
        if (name := self.names_recent) is None:
            return
        _ = self._bound  # which refuses what it cannot be
        _check_timed(timed, name)
        if dated:
            _check_in_days(self.window, "window")

    def keep_recent(self, graph: lpma.Graph, screen: Screen) -> None:
        """Let the others expire, and say how many did."""
        if self.names_recent is None or not graph.num_edges:
            return
        newest = int(np.max(to_host(graph.snapshot()._times)))
        before, had = max(self._bound(newest), -(2**63)), graph.num_edges
        graph.expire(before)
        gone = had - graph.num_edges
        screen.say(
            f"{gone:,} of {had:,} edges were last changed before {_moment(before)}, and are left "
            "out"
        )


@dataclass(frozen=True)
class TimeOptions(SinceOptions):
    """Which edges are read, and how their weights decay; None: all, and they do not."""

    until: str | None = _option(
        "--until", metavar="TIME",
        help="Keep edges whose last operation is earlier than this, written like --since.",
    )  # fmt: skip
    half_life: str | None = _option(
        "--half-life", metavar="SPAN",
        help="Halve an edge's weight, all that was ever added to it, for each such span between "
        "its last operation and --now: 2d (units: ms, s, m, h, d, w), or a number in the unit of "
        "the times. To let each row fade by its own age, weight the rows before they are loaded.",
    )  # fmt: skip
    now: str | None = _option(
        "--now", metavar="TIME",
        help="The time to which weights decay, written like --since. (default: the newest edge's)",
    )  # fmt: skip

    @property
    def names_time(self) -> str | None:
        """One of the options, if any was given."""
        given = [name for name in _NAMES if getattr(self, name) is not None]
        return _hint(given[0]) if given else None

    @cached_property
    def texts(self) -> dict[str, int]:
        """What the options are as arguments of `Graph.snapshot`. Raises typer.BadParameter."""
        from ..views import view_of

        given = {name: getattr(self, name) for name in _NAMES}
        try:
            view = view_of(given)
        except BatchError as error:
            name = next((name for name in _NAMES if str(error).startswith(name)), "since")
            raise typer.BadParameter(in_options(str(error)), param_hint=_hint(name)) from error
        if "now" in view and "half_life" not in view:
            raise typer.BadParameter("is needed with --now", param_hint="--half-life")
        if "since" in view and "until" in view and view["since"] > view["until"]:
            raise typer.BadParameter("is after --until", param_hint="--since")
        return view


@dataclass(frozen=True)
class ViewOptions(RecentOptions, TimeOptions):
    """The same of a graph that is read here."""

    @property
    def names_view(self) -> str | None:
        """An option that asks for a view, if one was given. Raises typer.BadParameter on two that
        exclude each other."""
        return self.names_recent or self.names_time

    def check_view(self, timed: bool, dated: bool = False) -> None:
        """Raise typer.BadParameter if the options conflict, or edges cannot be told by their times.
        timed: whether what is read says when they were; dated: by dates."""
        if (name := self.names_view) is None:
            return
        _ = self.texts
        self.check_recent(timed, dated)
        _check_timed(timed, name)
        if dated:
            _check_in_days(self.half_life, "half_life")

    def snapshot(self, graph: Any, screen: Screen, compact: bool) -> Snapshot:
        """The graph's snapshot in the view; how many edges are not in it is said. REQUIRES:
        `check_view`."""
        if self.names_view is None:
            made: Snapshot = graph.snapshot(compact=compact)
            return made
        view = dict(self.texts)
        if self.window is not None and graph.num_edges:
            newest = int(np.max(to_host(graph.snapshot()._times)))
            view["since"] = max(self._bound(newest), -(2**63))
            if view["since"] > view.get("until", newest):
                raise typer.BadParameter(
                    f"{self.until} lies before the beginning of --window {self.window}, which "
                    f"counts back from the newest edge, at {_moment(newest)}: give a later time, "
                    "or --since",
                    param_hint="--until",
                )
        s: Snapshot = graph.snapshot(compact=compact, **view)
        if gone := graph.num_edges - s.num_edges:
            screen.say(f"{gone:,} of {graph.num_edges:,} edges are not in the view")
        return s


ALL = ViewOptions()  # edges, as they are


def reading_weights(algorithm: str, given: dict[str, Any]) -> dict[str, Any]:
    """The algorithm's arguments where weights decay. Raises typer.BadParameter if it reads none."""
    from .. import analyses

    try:
        return analyses.reading_weights(algorithm, given)
    except BatchError as error:
        raise typer.BadParameter(str(error), param_hint="--half-life") from error


def _moment(time: int) -> str:
    """A time as a date, where it can be one."""
    from ..past.reach import moment

    return moment(time) if time in SINCE_1970_MS else str(time)


def _hint(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _check_in_days(said: str | None, name: str) -> None:
    """Raise typer.BadParameter for a number that was meant in another unit than milliseconds."""
    from ..pipeline.windows import refuse_less_than_a_second

    try:
        refuse_less_than_a_second(said, name)
    except PipelineError as error:
        raise typer.BadParameter(str(error), param_hint=_hint(name)) from error


def _check_timed(timed: bool, name: str) -> None:
    if not timed:
        raise typer.BadParameter(
            "what is read has no times: name the column that holds them by --time", param_hint=name
        )
