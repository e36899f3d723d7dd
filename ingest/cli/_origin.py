"""What `lpma ingest` reads, opened: a file, an embedded log, or a Kafka; and from where on.

The option `--from-offsets` says where a new checkpoint begins:

    from  := item ("," item)*
    item  := topic ":" partition "=" where | topic "=" where | where
    where := offset | offset "+" rows | "earliest" | "latest"

"+" rows is for a place within a record: so many of its rows are in the graph already, as `lpma
info` says of a checkpoint that was taken there. An item without a partition applies to its whole
topic, one without a topic to all topics; an offset needs a partition. A partition that no item
applies to begins at its earliest record.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import typer

from ..fields import Fields
from ..sources import FileSource
from ..sources.base import Source
from ..sources.files.left_out import LeftOut
from ..types import QUERIES, UPDATES, Partition, Position, Rejected
from ._config import Table
from ._file_options import FileOptions
from ._options import kafka_settings
from ._targets import TargetError, is_log, label_of, open_log

FROM_OFFSETS, FROM_STORE = "--from-offsets", "graph.from_store"
GO_ON = "Nothing was written; --accept-bad goes on all the same"
_ITEM = re.compile(r"(?:(?P<topic>[\w.-]+)(?::(?P<number>\d{1,9}))?=)?(?P<where>[^=:]+)", re.ASCII)

Starts = dict[tuple[str | None, int | None], str]  # (topic, partition): where, None: all


@dataclass(frozen=True)
class Origin:
    """Where operations come from, as the command line says. Raises typer.BadParameter if the
    options conflict."""

    path: Path | None
    kafka: str | None  # HOST:PORT,…
    topics: list[str] | None
    config: Path | None
    file: FileOptions
    rate: float | None
    settings: Table | None = None  # of Kafka, besides those of `config`
    group: str | None = None  # of consumers that is told how far the stream has come

    def __post_init__(self) -> None:
        if (self.path is None) == (self.kafka is None):
            raise typer.BadParameter("give a file, a log, or --kafka", param_hint="SOURCE")
        if self.kafka is None and (self.config or self.settings or self.group):
            raise typer.BadParameter("--kafka-config and kafka.group need it", param_hint="--kafka")
        if str(self.path).startswith("kafka:"):
            where = str(self.path).removeprefix("kafka:").strip("/")
            raise typer.BadParameter(f"a topic is read with --kafka {where}", param_hint="SOURCE")
        if self.topics:
            self.check_log("a file has no topics", "--topic")
        said = self.file.said(of_fields=False)
        if self.is_log and (said is not None or self.rate is not None):
            raise typer.BadParameter(f"a log has no {said or 'file.rate'}", param_hint="SOURCE")

    def __str__(self) -> str:
        return f"kafka://{self.kafka}" if self.path is None else label_of(self.path)

    @property
    def read(self) -> list[str]:
        """The topics of a log that are read."""
        return self.topics or [UPDATES, QUERIES]

    @cached_property
    def is_log(self) -> bool:
        """Whether the source grows, and takes replies and dead letters. Determined once, before the
        log is opened: closing another handle to its file would release SQLite's locks on it."""
        return self.path is None or is_log(self.path)

    def check_there(self) -> None:
        """Raise TargetError if the file or the log is not there."""
        if self.path is not None and not self.path.exists():
            raise TargetError(f"{self.path}: no such file: name an edge file or an embedded log")

    def check_log(self, otherwise: str, option: str) -> None:
        """Raise TargetError if nothing is there, typer.BadParameter if it is a file of edges."""
        if not self.is_log:
            self.check_there()
            raise typer.BadParameter(otherwise, param_hint=option)

    @property
    def has_records(self) -> bool:
        """Whether fields that are named are exactly those of records: in a log, and in JSON lines
        of which nothing is left to guess."""
        from ..sources.files.formats import format_of

        if self.is_log or self.path is None or not self.path.is_file():
            return self.is_log
        if None in (self.file.source_column, self.file.target_column):
            return False
        is_json = (self.file.format or format_of(self.path)) == "jsonl"
        return is_json and self.file.time_unit != "auto"

    def open(self, directed: bool, opened: ExitStack, names: bool | None = None,
             json: Fields | None = None) -> Any:  # fmt: skip
        """The source, closed with `opened`. `directed`: whether the graph is. `names`: whether a
        file's vertices go by names, None: guessed; `json` its fields. A log's records are decoded
        by whoever reads them."""
        if self.path is None:
            return self._open_kafka(opened)
        from ..sources import SqliteLog

        self.check_there()
        if self.is_log:
            if self.topics:
                return open_log(self.path, self.topics, opened)
            return opened.enter_context(SqliteLog(self.path))
        asked = self.file.asked()
        fields = Fields() if json is not None else asked.fields
        if fields.has_defaults:  # for JSON lines alone, which says it
            json = fields
        return FileSource(
            self.path, format=self.file.format, columns=asked.columns, separator=asked.separator,
            rate=self.rate, mirror=directed, names=names, json=json, header=asked.header,
            kinds=fields.kinds, decimal=asked.decimal, thousands=asked.thousands,
            time_unit=fields.time_unit, bipartite=asked.bipartite, **fields.named(),
        )  # fmt: skip

    def _open_kafka(self, opened: ExitStack) -> Any:
        from ..sources.kafka.source import KafkaSource

        assert self.kafka is not None
        settings = kafka_settings(self.config, self.settings)
        source = KafkaSource(self.kafka, self.read, settings=settings, group=self.group)
        return opened.enter_context(source)


def begin_log(path: Path | None, checkpoint: Path | None) -> None:
    """Make an empty log at `path` if nothing is there, its name says what it is to be, and no
    stream was checkpointed: whoever sends updates over HTTP needs no other way to begin."""
    from ..sources import SqliteLog
    from ..state.directory import has_checkpoint

    if path is None or path.suffix != ".log" or path.exists():
        return
    if checkpoint is None or not has_checkpoint(checkpoint):
        with SqliteLog(path) as log:
            log.create_topic(UPDATES)


def check_holds_edges(source: FileSource, most: int | None = None) -> None:
    """Raise TargetError if no line of a file is an operation. most: how many lines are looked at;
    0: any line will do, None: all."""
    left_out = LeftOut()
    for value in source.values():
        if most == 0 or not isinstance(value, Rejected):
            return
        left_out.add(value)
        if left_out.count == most:
            break
    hint = f". {GO_ON}" if most is not None and left_out.count else ""
    raise TargetError(left_out.nothing_of(str(source.path)) + hint)


def begin_at(source: Source, starts: Starts | None) -> dict[Partition, Position]:
    """Where `--from-offsets` lets a source that was just opened begin."""
    if starts is None:
        return {}
    if source.bounded:
        raise typer.BadParameter("a file has no offsets to start from", param_hint="SOURCE")
    return _positions(starts, source)


def read_starts(given: str) -> Starts:
    """What `given` says. Raises typer.BadParameter."""
    starts: Starts = {}
    for item in map(str.strip, given.split(",")):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise _wrong(f"{item!r}: expected TOPIC:PARTITION=OFFSET, earliest or latest")
        topic, where = match["topic"], match["where"]
        number = None if match["number"] is None else int(match["number"])
        place = "all" if topic is None else item.partition("=")[0]
        if (topic, number) in starts:
            raise _wrong(f"{place} is given twice")
        if where not in ("earliest", "latest"):
            if not re.fullmatch(r"\d{1,18}(\+\d{1,9})?", where, re.ASCII):
                raise _wrong(
                    f"{place}: {where!r} is not an offset, as 7, or 7+4 if 4 rows of its record "
                    "are done, and not earliest or latest"
                )
            if number is None:
                raise _wrong(f"{place}: an offset needs a partition, as TOPIC:0={where}")
        starts[topic, number] = where
    return starts


def _wrong(text: str) -> typer.BadParameter:
    return typer.BadParameter(text, param_hint=FROM_OFFSETS)


def _positions(starts: Starts, log: Source) -> dict[Partition, Position]:
    """Where to begin in a log that was just opened, and so stands at its earliest records. Raises
    typer.BadParameter on what the log does not read, SourceError if that fails."""
    firsts = log.positions()
    for topic, number in starts:
        if not any(topic in (None, p.topic) and number in (None, p.number) for p in firsts):
            read = ", ".join(f"{p.topic}:{p.number}" for p in sorted(firsts))
            place = topic if number is None else f"{topic}:{number}"
            raise _wrong(f"{place} is not read; these are: {read}")
    ends: dict[Partition, int] = log.end_offsets() if "latest" in starts.values() else {}
    found = {}
    for partition, first in firsts.items():
        places: Any = ((*partition,), (partition.topic, None), (None, None))
        where = next((starts[place] for place in places if place in starts), "earliest")
        known = {"earliest": first, "latest": ends.get(partition, first)}
        offset, _, rows = where.partition("+")
        at = known[offset] if offset in known else int(offset)
        found[partition] = Position(at, int(rows or 0))
    return found
