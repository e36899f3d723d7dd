"""How commands speak: results on stdout, everything else on stderr, failures in one line."""

from __future__ import annotations

import functools
import json
import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Annotated, Any, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.table import Table

P = ParamSpec("P")
R = TypeVar("R")

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout, nothing else there.")
]


def failing_in_one_line(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose expected failures end it with exit status 1 and one line on stderr.

    A programming error keeps its traceback."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        from lpma import LpmaError

        try:
            return command(*args, **kwargs)
        except BrokenPipeError:
            # The reader of our output has gone, as `head` does. Nothing more can be said there.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except (LpmaError, OSError, MemoryError) as error:
            text = " ".join(str(error).split()) or type(error).__name__
            print(f"lpma: {text}", file=sys.stderr)
            raise typer.Exit(1) from error

    return wrapped


def emit(document: dict[str, Any]) -> None:
    """Print the command's one JSON document."""
    print(json.dumps(document, allow_nan=False, default=_plain))


def _plain(value: Any) -> Any:
    """What json does not know: NumPy's numbers and arrays, paths."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def show(title: str, rows: dict[str, Any]) -> None:
    """Print a table of two columns on stdout."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, said(value))
    Console(highlight=False).print(table)


def table(header: list[str], rows: list[list[str]]) -> None:
    """Print a table of several columns on stdout."""
    lines = Table(*header, box=None, padding=(0, 1))
    for row in rows:
        lines.add_row(*row)
    Console(highlight=False).print(lines)


def said(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)


def bytes_said(count: int) -> str:
    """A number of bytes, to three digits."""
    size, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1000 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.3g} {units[0]}"


class Screen:
    """Messages and progress bars on stderr. A terminal sees bars move; a file gets only lines."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Screen:
        if self._console.is_terminal:
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
            )

            self._bars = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=self._console,
                transient=True,
            )
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self._console.print(text, markup=False, soft_wrap=True)

    def progress(self, what: str, done: int, total: int | None) -> None:
        """Move the bar called `what`: it appears when first named, and goes when all is done."""
        if self._bars is None:
            return
        with self._lock:
            if what not in self._tasks:
                self._tasks[what] = self._bars.add_task(what, total=total)
            unfinished = total is None or done < total
            self._bars.update(self._tasks[what], completed=done, total=total, visible=unfinished)
