"""What `lpma ingest` reads, opened: a file, an embedded log, or a Kafka."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from ..sources import QUERIES, UPDATES
from ..sources.base import Log
from ..sources.kafka_config import read_settings
from .offsets import Starts, positions
from .targets import TargetError, is_log


@dataclass(frozen=True)
class Origin:
    """Where operations come from, as the command line says. Raises typer.BadParameter where its
    parts do not go together."""

    path: Path | None
    kafka: str | None  # HOST:PORT,…
    topics: list[str] | None
    config: Path | None
    columns: str | None
    rate: float | None

    def __post_init__(self) -> None:
        if (self.path is None) == (self.kafka is None):
            raise typer.BadParameter("give a file, a log, or --kafka", param_hint="SOURCE")
        if self.kafka is None and (self.topics or self.config):
            raise typer.BadParameter("--topic and --kafka-config need it", param_hint="--kafka")
        if self.is_log and (self.columns is not None or self.rate is not None):
            raise typer.BadParameter("a log has neither --columns nor --rate", param_hint="SOURCE")

    def __str__(self) -> str:
        return str(self.path) if self.kafka is None else f"kafka://{self.kafka}"

    @property
    def read(self) -> list[str]:
        """The topics of a log that are read."""
        return self.topics or [UPDATES, QUERIES]

    @property
    def is_log(self) -> bool:
        """Whether it grows, and takes replies and dead letters."""
        return self.path is None or is_log(self.path)

    def open(self, directed: bool, opened: ExitStack) -> Any:
        """The source, closed with `opened`. `directed`: whether the graph is."""
        if self.path is None:
            return self._open_kafka(opened)
        from ..sources import FileSource, SqliteLog
        from ..sources.edge_lists import format_of

        if not self.path.is_file():
            raise TargetError(f"{self.path}: no such file: name an edge file or an embedded log")
        if self.is_log:
            return opened.enter_context(SqliteLog(self.path))
        # How a file is read is part of its identity, so the choice is made only where it counts.
        mirror = directed or format_of(self.path) != "mtx"
        return FileSource(self.path, columns=self.columns, rate=self.rate, mirror=mirror)

    def _open_kafka(self, opened: ExitStack) -> Any:
        settings = None if self.config is None else read_settings(self.config)
        from ..sources.kafka import KafkaSource

        assert self.kafka is not None
        return opened.enter_context(KafkaSource(self.kafka, self.read, settings=settings))


def begin_at(source: Any, starts: Starts) -> None:
    """Let a source that was just opened stand where `--from-offsets` says."""
    if not isinstance(source, Log):
        raise typer.BadParameter("a file has no offsets to start from", param_hint="SOURCE")
    source.seek(positions(starts, source))


def outputs(origin: Origin, source: Any, replies: list[str] | None, letters: str | None) -> Any:
    """The settings of where replies and dead letters go, where that was given."""
    if (replies or letters) and not origin.is_log:
        raise typer.BadParameter("a file takes no replies and no dead letters", param_hint="SOURCE")
    if both := {*(replies or ()), letters} & set(origin.read):
        raise typer.BadParameter(f"{min(both)} is read: what is written needs another topic")
    settings: dict[str, Any] = {}
    if replies:
        settings["reply_topics"] = tuple(replies)
    if letters:
        settings["dead_letters"] = (source.sink(), letters)
    return settings
