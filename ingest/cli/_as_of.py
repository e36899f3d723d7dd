"""The options of a past view, which commands that read a checkpoint directory share."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import CheckpointError, IdentityError
from ._file_options import FileOptions
from ._origin import Origin
from ._targets import KAFKA, Opened, checkpoint_facts, is_log, open_store
from ._typer import option

if TYPE_CHECKING:
    from ..sources.base import Identity, Source
    from ..state.checkpoint import State

_option = partial(option, panel="A past view of a stream, from its checkpoint directory")


@dataclass(frozen=True)
class AsOfOptions:
    """Which past view; none if no option is given. Raises typer.BadParameter if they conflict."""

    as_of_version: int | None = _option(
        "--as-of-version", metavar="N", help="The graph after the batch that made this version."
    )
    as_of_time: str | None = _option(
        "--as-of-time", metavar="TIME",
        help="The graph with all that had arrived by then: ms since 1970, or a date or time of ISO "
        "8601, in UTC if it names no zone.",
    )  # fmt: skip
    as_of_source: str | None = _option(
        "--as-of-source", metavar="SOURCE",
        help="What the stream was read from: its embedded log, its file, or kafka://HOST:PORT. Not "
        "needed where a kept checkpoint is just what is asked for.",
    )  # fmt: skip
    as_of_kafka_config: Path | None = _option(
        "--as-of-kafka-config", metavar="FILE", help="Settings for that Kafka, as --kafka-config."
    )

    def __post_init__(self) -> None:
        if self.as_of_version is not None and self.as_of_time is not None:
            raise typer.BadParameter(
                "give one of the two", param_hint="--as-of-version and --as-of-time"
            )
        if not self.is_given and (self.as_of_source or self.as_of_kafka_config):
            raise typer.BadParameter(
                "is needed with it: --as-of-version or --as-of-time", param_hint="--as-of-source"
            )
        is_kafka = (self.as_of_source or "").startswith(KAFKA)
        if self.as_of_kafka_config is not None and not is_kafka:
            raise typer.BadParameter(
                "kafka://HOST:PORT needs it, nothing else", param_hint="--as-of-kafka-config"
            )

    @property
    def is_given(self) -> bool:
        """Whether a past view is asked for."""
        return self.as_of_version is not None or self.as_of_time is not None

    @property
    def time_ms(self) -> int | None:
        """--as-of-time in ms since 1970. Raises typer.BadParameter."""
        from ..formats.times import millisecond

        if self.as_of_time is None:
            return None
        is_number = re.fullmatch(r"[+-]?\d+", self.as_of_time.strip(), re.ASCII)
        try:
            return int(self.as_of_time) if is_number else millisecond(self.as_of_time)
        except ValueError:
            raise typer.BadParameter(
                f"{self.as_of_time!r}: expected ms since 1970, or a date or time of ISO 8601",
                param_hint="--as-of-time",
            ) from None

    def check_unused(self, target: str) -> None:
        """Raise typer.BadParameter if a past view is asked of what has none."""
        if self.is_given:
            raise typer.BadParameter(
                f"{target} is no checkpoint directory: only these have past views",
                param_hint="--as-of-version and --as-of-time",
            )


NOW = AsOfOptions()  # the newest checkpoint


def part_of(options: AsOfOptions) -> AsOfOptions:
    """The options of a past view among those of a command."""
    return AsOfOptions(**{f.name: getattr(options, f.name) for f in fields(AsOfOptions)})


def open_as_of(
    path: Path, device: str, options: AsOfOptions, *, begun: bool = True, contents: bool = False
) -> Opened:
    """As `open_store`, or the past view that is asked for. Raises PastError besides."""
    if not options.is_given:
        opened = open_store(path, device, begun=begun, contents=contents)
        if opened.state is not None and not opened.not_begun:
            _tell_behind(path, opened.state.version)
            if not opened.state.operations:
                typer.echo(f"lpma: {path}: its stream has applied nothing so far", err=True)
        return opened
    if not path.exists():
        return open_store(path, device)  # which says so
    if not path.is_dir():
        options.check_unused(str(path))
    from .. import past

    with ExitStack() as taken:
        source = None
        if options.as_of_source is not None:
            source = _source(options.as_of_source, options.as_of_kafka_config, path, taken)
        found = past.view(
            path, source, version=options.as_of_version, time=options.time_ms, device=device
        )
    if found.problems:
        used = f"checkpoint {found.checkpoint.number} is used"
        typer.echo(f"lpma: {path}: {'; '.join(found.problems)}; {used}", err=True)
    from ..state.checkpoint import GRAPH

    then = replace(found.checkpoint, state=found.state)
    facts = {**checkpoint_facts(then), "replayed": found.replayed}
    return Opened(found.graph, found.checkpoint.path / GRAPH, facts, found.checkpoint.state)


def _tell_behind(directory: Path, version: int) -> None:
    """Say it if a checkpoint of this version is read and the journal comes further, as after a
    crash, or while a pipeline runs there. Only the journal's entries are read."""
    from ..past.reach import reachable

    try:
        last = max((span.last_version for span in reachable(directory)), default=version)
    except (CheckpointError, OSError):
        return  # what was asked for can be answered without
    if last > version:
        from ..feed.source import follows_feed

        said = (
            f"lpma: {directory}: this is version {version}, of its last checkpoint; its stream has "
            f"come to version {last} since: "
        )
        if follows_feed(_newest_state(directory).identity):
            said += "`lpma replica` resumes there"
        else:
            said += f"--as-of-version {last} --as-of-source SOURCE reads that, `lpma ingest` "
            said += "resumes there"
        typer.echo(said, err=True)


def _source(given: str, config: Path | None, directory: Path, opened: ExitStack) -> Source:
    """The source of the stream of a directory, closed with `opened`."""
    state = _newest_state(directory)
    _check_kind(given, state.identity, directory)
    reading = state.record_settings
    topics = sorted(state.identity.topics)
    if given.startswith(KAFKA):
        server = given.removeprefix(KAFKA)
        found: Source = Origin(None, server, topics, config, FileOptions(), None).open(True, opened)
        return found
    from ..sources import FileSource, SqliteLog

    path = Path(given)
    if is_log(path):
        return opened.enter_context(SqliteLog(path, topics, writable=False))
    if state.identity.read_as is not None:
        return FileSource.again(path, state.identity.read_as)
    origin = Origin(path, None, None, None, FileOptions(), None)
    file: Source = origin.open(True, opened, reading.names, reading.fields_of(path.name))
    return file


def _check_kind(given: str, identity: Identity, directory: Path) -> None:
    """Raise IdentityError if the stream came from another kind of source. Nothing is opened but a
    file, to see whether it is a log."""
    from ..sources.base import kind_of

    path = Path(given)
    if given.startswith(KAFKA):
        found = "Kafka"
    elif path.is_file():
        found = "an embedded log" if is_log(path) else "a file"
    else:
        return  # which is said where it is opened
    if (was := kind_of(identity)) != found:
        raise IdentityError(
            f"{directory}: its stream was read from {was}, {given} is {found}: give "
            "--as-of-source what the stream was read from"
        )


def _newest_state(directory: Path) -> State:
    from ..state.inspection import find_checkpoints

    for found in reversed(find_checkpoints(directory, every_byte=False)):
        if found.checkpoint is not None:
            return found.checkpoint.state
    raise CheckpointError(f"{directory}: no checkpoint is good")
