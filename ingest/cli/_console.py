"""How commands speak: results on stdout, everything else on stderr, failures in one line."""

from __future__ import annotations

import functools
import io
import json
import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from contextvars import ContextVar
from typing import Annotated, Any, ParamSpec, TypeVar

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from ..errors import WordError
from ._interrupt import INTERRUPTED, noting_interrupts

MOST_COLUMNS = 10_000

P = ParamSpec("P")
R = TypeVar("R")

_IN_OPTIONS = {  # what the library advises of Python, and what helps on the command line
    "ask for snapshot(compact=True), which renumbers the vertices, or raise max_bytes": (
        "`lpma export --compact` renumbers the vertices; for the rest, load or ingest the edges "
        "anew with --names"
    ),
    "go on without track, or read the stream anew with names=True": (
        "the same command without --track goes on; or read the stream anew with --names"
    ),
    "give another checkpoint directory for a new stream": (
        "give another --checkpoint for a new stream"
    ),
    "(ms, s, m, h, d, w), a timedelta, a whole": "(ms, s, m, h, d, w), a whole",
    "make the graph with predecessors=True": "load or ingest the edges anew with --predecessors",
    "make it with times=True": "leave out --no-times, or graph.times",
    "read them with records=Debezium(Fields(…))": "add --format debezium",
    "only with names=True": "only with --names",
    "names=True takes others": "--names takes others",
}

# A setting of how records are read, in Python: its option.
_SETTING = re.compile(
    r"(?:(?:Fields|Debezium)\(…, )?\b(time_unit|on_repeat|on_tombstone)=[\"'](\w+)[\"']\)?"
)
_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)( ?)")

_moved: ContextVar[dict[str, str]] = ContextVar("moved")  # options that are keys in a command

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout, nothing else there.")
]


def failing_in_one_line(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose expected failures end it with exit status 1 and one line on stderr, and
    Ctrl-C with INTERRUPTED and one line. A word that cannot name a vertex is bad usage.

    A programming error keeps its traceback."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        _moved.set(getattr(command, "moved", {}))
        with noting_interrupts() as interrupts:
            try:
                return command(*args, **kwargs)
            except typer.Exit:
                raise
            except BrokenPipeError:
                # The reader of our output has closed it, as `head` does: nothing more can be
                # written.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(1) from None
            except (KeyboardInterrupt, Exception) as error:
                if interrupts or isinstance(error, KeyboardInterrupt):
                    print("lpma: interrupted", file=sys.stderr)
                    raise typer.Exit(INTERRUPTED) from error
                if isinstance(error, WordError):
                    raise typer.BadParameter(str(error)) from error
                if not isinstance(error, _expected()):
                    raise
                text = " ".join(_text_of(error).split()) or type(error).__name__
                print(f"lpma: {text}", file=sys.stderr)
                raise typer.Exit(1) from error

    return wrapped


def _text_of(error: BaseException) -> str:
    """What an error says; the system's of a file without its number and quotes."""
    if isinstance(error, OSError) and str(error).startswith("[Errno") and error.filename:
        return f"{error.filename}: {str(error.strerror).lower()}"
    return in_options(str(error))


def in_options(text: str) -> str:
    """A message of the library with what helps on the command line, where it advises something of
    Python, or an option that is a key of the file in the command that runs."""
    for advised, option in _IN_OPTIONS.items():
        text = text.replace(advised, option)
    text = _SETTING.sub(lambda said: f"--{said[1].replace('_', '-')} {said[2]}", text)
    moved = _moved.get({})

    def as_key(match: re.Match[str]) -> str:
        option, value = match[1], match[2]
        if (key := moved.get(option)) is None:
            return match[0]
        if option.startswith("--no-"):
            return f"--set {key}=false{value}"
        is_flag = f"--no-{option[2:]}" in moved
        return f"--set {key}=true{value}" if is_flag else f"--set {key}="

    return _OPTION.sub(as_key, text)


def _expected() -> tuple[type[Exception], ...]:
    """What can go wrong without being a programming error. Imported only when something has."""
    from lpma import LpmaError

    return LpmaError, OSError, MemoryError


@contextmanager
def telling_in_json(asked: bool) -> Iterator[None]:
    """Within, if `asked`, stderr gets JSON lines and nothing else: events, what other code
    prints there, and, as the event "failed", what ends the command with exit status 1 or
    INTERRUPTED. Otherwise it gets a line when an outage of the brokers or of the schema registry
    begins and when it is over."""
    if not asked:
        with telling_outages():
            yield
        return
    from ..events import LOGGER, JsonLines, log_event

    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.getLogger().addHandler(handler)
    level = LOGGER.level
    LOGGER.setLevel(logging.INFO)
    try:
        with redirect_stderr(_Logged()):
            yield
    except _expected() as error:
        message = in_options(str(error))
        log_event("failed", logging.ERROR, error=type(error).__name__, message=message)
        raise typer.Exit(1) from error
    except KeyboardInterrupt as error:
        log_event("failed", logging.ERROR, error=type(error).__name__, message="interrupted")
        raise typer.Exit(INTERRUPTED) from error
    finally:
        LOGGER.setLevel(level)
        logging.getLogger().removeHandler(handler)


@contextmanager
def telling_outages() -> Iterator[None]:
    """Within, stderr gets a line when an outage of the brokers or of the schema registry begins
    and when it is over, for what events advise, as of a field that no record has, and for a bug
    that leaves a request of HTTP without an answer."""
    from ..events import LOGGER

    handler = _Outages(logging.WARNING)
    LOGGER.addHandler(handler)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)


class _Outages(logging.Handler):
    """Says outages, what events advise, and bugs of the service: these once."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._bugs: set[str] = set()

    def _bug(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is None or error.__traceback__ is None:
            return
        last = traceback.extract_tb(error.__traceback__)[-1]
        bug = f"{type(error).__name__} at line {last.lineno} of {os.path.basename(last.filename)}"
        if bug not in self._bugs:
            self._bugs.add(bug)
            print(f"lpma: the service failed to answer: {bug}", file=sys.stderr, flush=True)

    def emit(self, record: logging.LogRecord) -> None:
        from ..events import Event

        event = record.msg
        if isinstance(event, Event) and event.name == "service error":
            self._bug(record)
        if isinstance(event, Event) and "advice" in event.fields:
            print(f"lpma: {in_options(event.fields['advice'])}", file=sys.stderr, flush=True)
        if not isinstance(event, Event) or not event.name.startswith("outage"):
            return
        fields = event.fields
        place = f"{fields['service']} at {fields['bootstrap']}"
        if event.name == "outage":
            patience = f" for {fields['patience_s']:g} s" if "patience_s" in fields else ""
            text = f"{place} fails, tried again{patience}: {fields['error']}"
        else:
            text = f"{place} is back, after {fields['seconds']:g} s"
        print(f"lpma: {text}", file=sys.stderr, flush=True)


class _Logged(io.TextIOBase):
    """A text stream whose lines are logged."""

    _line = ""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            logging.getLogger("stderr").warning("%s", line)
        return len(text)


def emit(document: dict[str, Any]) -> None:
    """Print the command's one JSON document."""
    print(json.dumps(document, allow_nan=False, default=_plain))


def report(
    as_json: bool, document: dict[str, Any], title: str, rows: dict[str, Any] | None = None
) -> None:
    """Print a result: the document, or a table of `rows`, or else of what it holds."""
    if as_json:
        emit(document)
    else:
        show(title, document if rows is None else rows)


def _plain(value: Any) -> Any:
    """A plain value for what json does not support: NumPy's numbers and arrays, paths."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _plain_console() -> Console:
    """Shows text as it is: input from outside, such as a name, is not markup. Lines are folded for
    a terminal, and not in a pipe."""
    folds = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = None if folds else MOST_COLUMNS
    return Console(highlight=False, markup=False, emoji=False, width=width)


def _print(console: Console, table: Table) -> None:
    """Print it; in a pipe without the blanks that fill its last column."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as printed:
        console.print(table)
    sys.stdout.writelines(line.rstrip() + "\n" for line in printed.get().splitlines())


def show(title: str, rows: dict[str, Any]) -> None:
    """Print a table of two columns on stdout."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, format_value(value))
    _print(_plain_console(), table)


def table(header: list[str], rows: list[list[str]]) -> None:
    """Print a table of several columns on stdout: where there is no room for it, a row after the
    other, each with the columns' names."""
    console = _plain_console()
    widths = [max(map(cell_len, column)) for column in zip(header, *rows, strict=True)]
    if sum(widths) + 2 * len(widths) > console.width:
        for row in rows:
            show(f"{header[0]} {row[0]}", dict(zip(header[1:], row[1:], strict=True)))
        return
    lines = Table(*header, box=None, padding=(0, 1))
    for row in rows:
        lines.add_row(*row)
    _print(console, lines)


def format_value(value: Any) -> str:
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


def format_counts(counts: dict[str, int]) -> str | None:
    """Counts by reason, without the zeros; None if all are zero."""
    return (
        ", ".join(f"{name} {format_value(count)}" for name, count in counts.items() if count)
        or None
    )


class Screen:
    """Messages and progress bars on stderr, unless `quiet`. A terminal sees bars move; a file
    gets only lines."""

    def __init__(self, quiet: bool = False) -> None:
        self._console = Console(stderr=True, highlight=False, emoji=False, quiet=quiet)
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Screen:
        if self._console.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bars = Progress(
                TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"),
                TimeElapsedColumn(), console=self._console, transient=True,
            )  # fmt: skip
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self._console.print(in_options(text), markup=False, soft_wrap=True)

    def progress(
        self, what: str, done: int, total: int | None, note: str = "", share: float | None = None
    ) -> None:
        """Move the bar called `what`: it appears when first named, and disappears when all is done.
        `note` stands next to its name. share: of what is read, where the total is not known."""
        if self._bars is None:
            return
        said = f"{done:,}" if total is None else f"{done:,}/{total:,}"
        said += "" if share is None else f", {share:.0%} of the file"
        with self._lock:
            if what not in self._tasks:
                self._tasks[what] = self._bars.add_task(what, total=None, said=said)
            known = total is not None or share is not None
            self._bars.update(
                self._tasks[what], completed=done if share is None else share,
                total=(total if share is None else 1) if known else None, said=said,
                visible=total is None or done < total, description=f"{what}{note}",
            )  # fmt: skip
