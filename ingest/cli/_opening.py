"""What `lpma ingest` reads, opened: a file, an embedded log, or a Kafka; and where it answers."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer

from ..formats.json import JsonFields
from ..sources import QUERIES, UPDATES, FileSource
from ..sources.base import Log
from ..sources.kafka.config import read_settings
from ..types import Ids, Rejected
from ._left_out import LeftOut
from ._offsets import Starts, positions, read_starts
from ._options import Columns, KafkaConfig, kafka_option
from ._targets import TargetError, is_log


@dataclass(frozen=True)
class Ends:
    """The options about where a stream comes from and where what answers it goes."""

    kafka: Annotated[
        str | None,
        kafka_option(
            "--kafka", metavar="HOST:PORT,…", help="Read from there, instead of a SOURCE."
        ),
    ] = None
    topics: Annotated[
        list[str] | None,
        kafka_option("--topic", help="To read; may be repeated. (default: updates and queries)"),
    ] = None
    kafka_config: KafkaConfig = None
    reply_topics: Annotated[
        list[str] | None,
        kafka_option(
            "--reply-topic", help="That queries may name; may be repeated. (default: replies)"
        ),
    ] = None
    dead_letter_topic: Annotated[
        str | None,
        kafka_option("--dead-letter-topic", help="For bad records. (default: dead-letters)"),
    ] = None
    from_offsets: Annotated[
        str | None,
        kafka_option(
            "--from-offsets",
            metavar="WHERE",
            help="Where a new checkpoint begins: earliest, latest, "
            "'updates:0=120,updates:1=latest', or a JSON file. (default: earliest)",
        ),
    ] = None
    columns: Columns = None

    def origin(self, path: Path | None, rate: float | None) -> Origin:
        return Origin(path, self.kafka, self.topics, self.kafka_config, self.columns, rate)

    def starts(self) -> Starts | None:
        return None if self.from_offsets is None else read_starts(self.from_offsets)

    def outputs(self, origin: Origin, source: Any) -> dict[str, Any]:
        """The settings of where replies and dead letters go, where that was given."""
        replies, letters = self.reply_topics, self.dead_letter_topic
        if (replies or letters) and not origin.is_log:
            raise typer.BadParameter(
                "a file takes no replies and no dead letters", param_hint="SOURCE"
            )
        if both := {*(replies or ()), letters} & set(origin.read):
            raise typer.BadParameter(f"{min(both)} is read: what is written needs another topic")
        settings: dict[str, Any] = {}
        if replies:
            settings["reply_topics"] = tuple(replies)
        if letters:
            settings["dead_letters"] = (source.sink(), letters)
        return settings


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

    @cached_property
    def is_log(self) -> bool:
        """Whether it grows, and takes replies and dead letters. Found out once, before the log is
        opened: to look into the file later would let go of the locks on it."""
        return self.path is None or is_log(self.path)

    def open(self, directed: bool, opened: ExitStack, ids: Ids = "dense",
             json: JsonFields | None = None) -> Any:  # fmt: skip
        """The source, closed with `opened`. `directed`: whether the graph is. `ids`: how a file
        names vertices, `json` its fields; a log's records are decoded by whoever reads them."""
        if self.path is None:
            return self._open_kafka(opened)
        from ..sources import SqliteLog
        from ..sources.files.edge_lists import format_of

        if not self.path.is_file():
            raise TargetError(f"{self.path}: no such file: name an edge file or an embedded log")
        if self.is_log:
            return opened.enter_context(SqliteLog(self.path))
        # How a file is read is part of its identity, so the choice is made only where it counts.
        mirror = directed or format_of(self.path) != "mtx"
        return FileSource(
            self.path, columns=self.columns, rate=self.rate, mirror=mirror, ids=ids, json=json
        )

    def _open_kafka(self, opened: ExitStack) -> Any:
        settings = None if self.config is None else read_settings(self.config)
        from ..sources.kafka.source import KafkaSource

        assert self.kafka is not None
        return opened.enter_context(KafkaSource(self.kafka, self.read, settings=settings))


def check_holds_edges(source: FileSource) -> None:
    """Raise TargetError where no line of a file that nothing was read of yet is an operation."""
    left_out = LeftOut()
    (partition,) = source.positions()
    while polled := source.poll():
        for record in polled:
            if not isinstance(record.value, Rejected):
                source.seek({partition: 0})
                return
            left_out.add(record.value.value, record.value.reason)
    raise TargetError(left_out.nothing_of(str(source.path)))


def begin_at(source: Any, starts: Starts) -> None:
    """Let a source that was just opened stand where `--from-offsets` says."""
    if not isinstance(source, Log):
        raise typer.BadParameter("a file has no offsets to start from", param_hint="SOURCE")
    source.seek(positions(starts, source))
