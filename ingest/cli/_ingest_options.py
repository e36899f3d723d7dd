"""The options of `lpma ingest`, by subject: what is read and answered, how records are read, how
checkpoints are kept, how the stream is run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, make_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer

from ..errors import PipelineError
from ..fields import (
    Debezium,
    Fields,
    FieldsError,
    OnRepeat,
    OnTombstone,
    Records,
    TopicRecords,
)
from ..formats.changes import ChangesFormat
from ..settings import declared
from ..types import DEAD_LETTERS, REPLIES
from ._completion import figures
from ._config import Table
from ._console import JsonOption, in_options
from ._file_options import DEBEZIUM, FileOptions
from ._options import (
    CHECKPOINTS,
    KAFKA,
    KAFKA_TABLE,
    REGISTRY_TABLE,
    Follow,
    KafkaConfig,
    Metrics,
    Save,
    SchemaRegistryConfig,
    SchemaRegistryUrl,
    given,
    schema_registry,
)
from ._origin import FROM_OFFSETS, Origin, Starts, read_starts
from ._serve_options import SERVING
from ._targets import TargetError, is_store
from ._typer import keyed, option

FIRST_RECORDS = 1000  # of a new stream: if all are bad, it stops

_kafka_option = partial(option, panel=KAFKA)
_results_option = partial(option, panel="Figures and results")
_feed_option = partial(option, panel="The edge feed")
_record_option = partial(option, panel="The records of a log")
_checkpoint_option = partial(option, panel=CHECKPOINTS)
_serve_option = partial(option, panel=SERVING)


def _name(text: str) -> str:
    if not text:
        raise typer.BadParameter("a name is missing")
    return text


TopicName = Annotated[str, msgspec.Meta(min_length=1)]


class Topic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A topic in a file, whose records may be read in a way of their own."""

    name: TopicName
    fields: Fields | None = None
    format: Literal["debezium"] | None = None
    on_tombstone: OnTombstone | None = None
    on_repeat: OnRepeat | None = None

    def __post_init__(self) -> None:
        if self.format is None and (self.on_tombstone or self.on_repeat):
            raise PipelineError(f'{self.name}: on_tombstone and on_repeat need format = "debezium"')
        try:
            if self.fields is not None:
                self.fields.of_topic()
        except FieldsError as error:
            raise FieldsError(str(error), f"fields.{error.field}") from None
        try:
            _ = self.records
        except PipelineError as error:
            raise PipelineError(f"{self.name}: {error}") from None

    @property
    def records(self) -> Fields | Debezium | None:
        """How they are read, if that is said."""
        if self.format is None:
            return self.fields
        said = given({"on_tombstone": self.on_tombstone, "on_repeat": self.on_repeat})
        return Debezium(self.fields or Fields(), **said)


@dataclass(frozen=True)
class EndpointOptions:
    """Where a stream comes from, and where replies and dead letters go."""

    kafka: str | None = _kafka_option(
        "kafka.servers", "--kafka", metavar="HOST:PORT,…",
        help="Read from these brokers instead of a SOURCE.",
    )  # fmt: skip
    topics: list[str] | None = _kafka_option(
        "kafka.topics", "--topic", metavar="TOPIC", in_file=list[TopicName | Topic] | None,
        help="A topic to read, also of a log; may be repeated. (default: updates and queries)",
    )  # fmt: skip
    kafka_config: KafkaConfig = keyed("kafka.config")
    kafka_settings: Table | None = keyed("kafka.settings", **KAFKA_TABLE)
    schema_registry: SchemaRegistryUrl = keyed("registry.url")
    registry_config: SchemaRegistryConfig = keyed("registry.config")
    registry_settings: Table | None = keyed("registry.settings", **REGISTRY_TABLE)
    group: str | None = _kafka_option(
        "kafka.group",
        help="A consumer group to which the position is committed after each checkpoint, for tools "
        "that show the lag. It is never read.",
    )  # fmt: skip
    reply_topics: list[str] | None = _kafka_option(
        "outputs.reply_topics", "--reply-topic",
        help="A topic that queries may name for replies; may be repeated. (default: replies)",
    )  # fmt: skip
    dead_letter_topic: str | None = _kafka_option(
        "outputs.dead_letter_topic",
        help="Where bad records go. (default: dead-letters)",
    )  # fmt: skip
    results_topic: str | None = _results_option(
        "results.topic", "--results-topic", metavar="TOPIC", parser=_name,
        help="Publish changes of the figures in --track, and alerts, to this topic. It is created "
        "if necessary.",
    )  # fmt: skip
    results_file: Path | None = _results_option(
        "results.file", "--results-file", metavar="FILE", parser=lambda text: Path(_name(text)),
        help="Append them to this file instead, as JSON lines.",
    )  # fmt: skip
    changes_topic: str | None = _feed_option(
        "changes.topic", "--changes-topic", metavar="TOPIC", parser=_name,
        help="Publish what each batch changes in the graph to this topic, for `lpma replica` and "
        "others. It is created if necessary.",
    )  # fmt: skip
    changes_file: Path | None = _feed_option(
        "changes.file", "--changes-file", metavar="FILE", parser=lambda text: Path(_name(text)),
        help="Append it to this file instead, as JSON lines.",
    )  # fmt: skip
    changes_format: ChangesFormat | None = _feed_option(
        "changes.format", "--changes-format",
        help="columns: many changes in one record; json: one object per changed edge. "
        "(default: columns)",
    )  # fmt: skip
    from_offsets: str | None = _kafka_option(
        "source.from_offsets", FROM_OFFSETS, metavar="WHERE",
        help="Where a new checkpoint begins: earliest, latest, 'updates:0=120,updates:1=latest'; "
        "120+4: after 4 rows of that record. (default: earliest)",
    )  # fmt: skip

    def origin(self, path: Path | None, file: FileOptions, rate: float | None) -> Origin:
        settings = self.kafka_settings
        names = [topic.name for topic in self._topics]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None and any(topic.records for topic in self._topics):
            raise typer.BadParameter(
                f"{twice!r} is there twice: a topic has one mapping", param_hint="kafka.topics"
            )
        topics = None if self.topics is None else names
        return Origin(path, self.kafka, topics, self.kafka_config, file, rate, settings, self.group)

    @property
    def _topics(self) -> list[Topic]:
        topics: list[Any] = self.topics or []  # a file has what the command line has not
        return [topic if isinstance(topic, Topic) else Topic(topic) for topic in topics]

    def records(self, usual: TopicRecords) -> dict[str, Records]:
        """How records are read, if that is said of a topic; `usual`: those of others."""
        if not any(topic.records for topic in self._topics):
            return {}
        return {"records": {topic.name: topic.records or usual for topic in self._topics}}

    def starts(self) -> Starts | None:
        return None if self.from_offsets is None else read_starts(self.from_offsets)

    def registry(self, origin: Origin) -> dict[str, Any]:
        """The setting of the schema registry, if one was given. Raises typer.BadParameter."""
        if self.schema_registry is not None:
            origin.check_log("a file has no schemas", "--schema-registry")
        registry = schema_registry(
            self.schema_registry, self.registry_config, self.registry_settings
        )
        return given({"schema_registry": registry})

    def check(self, origin: Origin) -> None:
        """Raise typer.BadParameter if what leaves cannot go where it was to."""
        replies, letters = self.reply_topics, self.dead_letter_topic
        own = [topic for topic in (self.results_topic, self.changes_topic) if topic is not None]
        if replies or letters or own:
            origin.check_log(
                "a file takes no replies, no dead letters, no results and no edge feed: "
                "--results-file, --changes-file",
                "SOURCE",
            )
        written = {*(replies or ()), *filter(None, (letters, *own))}
        if both := written & set(origin.read):
            raise typer.BadParameter(f"{min(both)} is read: what is written needs another topic")
        uses = dict.fromkeys(replies or (REPLIES,), "replies")
        uses[letters or DEAD_LETTERS] = "dead letters"
        for what, topic, file in (
            ("results", self.results_topic, self.results_file),
            ("changes", self.changes_topic, self.changes_file),
        ):
            if topic is None:
                continue
            if topic in uses:
                raise typer.BadParameter(
                    f"{topic} is the topic of {uses[topic]}: name another one",
                    param_hint=f"--{what}-topic",
                )
            if file is not None:
                raise typer.BadParameter("a topic or a file, not both", param_hint=f"--{what}-file")
            uses[topic] = what
        if self.changes_format is not None and not self.feeds:
            raise typer.BadParameter(
                "it is of the edge feed: give --changes-topic or --changes-file",
                param_hint="--changes-format",
            )

    def outputs(self, source: Any) -> dict[str, Any]:
        """The settings for replies, dead letters, results and the edge feed that were given."""
        replies, letters = self.reply_topics, self.dead_letter_topic
        settings: dict[str, Any] = {}
        if replies:
            settings["reply_topics"] = tuple(replies)
        if letters:
            settings["dead_letters"] = (source.sink(), letters)
        if self.publishes:
            topic = self.results_topic
            settings["results"] = self.results_file if topic is None else (source.sink(), topic)
        if self.feeds:
            topic = self.changes_topic
            settings["changes"] = self.changes_file if topic is None else (source.sink(), topic)
            settings |= given({"changes_format": self.changes_format})
        return settings

    @property
    def feeds(self) -> bool:
        """Whether the edge feed leaves."""
        return self.changes_topic is not None or self.changes_file is not None

    @property
    def publishes(self) -> bool:
        """Whether results leave."""
        return self.results_topic is not None or self.results_file is not None


@dataclass(frozen=True)
class RecordOptions(FileOptions):
    """How records of a log, or rows of a file, are read; None: the default of the pipeline's
    settings, or what a file makes plain."""

    window: str | None = option(  # which holds for a file, too
        "records.window", "--window",
        help="Keep only edges this recent: 24h (units: ms, s, m, h, d, w), or a number in the unit "
        "of the times. (default: keep all)",
    )  # fmt: skip
    max_ahead: str | None = _record_option(
        "records.max_ahead",
        help="If event times move a window or decide lateness: how far past the clock they may be, "
        "written like --window; none: any distance. Later rows are dead letters. (default: 24h)",
    )  # fmt: skip
    on_tombstone: OnTombstone | None = _record_option(
        "records.on_tombstone", "--on-tombstone",
        help="With --format debezium: what a record with a key and no value does. delete: it "
        "deletes the row. (default: ignore)",
    )  # fmt: skip
    on_repeat: OnRepeat | None = _record_option(
        "records.on_repeat", "--on-repeat",
        help="With --format debezium: what to do if several rows have the same ends. last: the "
        "edge is as the last change left it; sum: its weight is the sum over the rows.",
    )  # fmt: skip

    def settings(self, origin: Origin) -> dict[str, Any]:
        """The settings that were given. Raises typer.BadParameter on a width that is none."""
        own = given({"window": self._width(self.window, "--window")})
        if self.max_ahead is not None:
            own["max_ahead"] = self._width(self.max_ahead, "records.max_ahead")
        own |= self.of_records() if origin.has_records else given({"names": self.by_name})
        if (table := self._table(origin)) is not None:
            own["records"] = table
        return own

    def _table(self, origin: Origin) -> Debezium | None:
        """How changes of a table are read, if the records are these. Raises typer.BadParameter."""
        said = given({"on_tombstone": self.on_tombstone, "on_repeat": self.on_repeat})
        if self.format != DEBEZIUM:
            if said:
                option = next(iter(said)).replace("_", "-")
                raise typer.BadParameter("needs --format debezium", param_hint=f"--{option}")
            return None
        origin.check_log(
            "debezium: is read from Kafka and from an embedded log: put the lines of a file "
            "into one, with ingest.SqliteLog(path).produce_many(topic, lines)",
            "--format",
        )
        try:
            return Debezium(self.fields() or Fields(), **said)
        except PipelineError as error:
            raise typer.BadParameter(str(error), param_hint="--format debezium") from error

    def refuse_milliseconds(self) -> None:
        """Raise typer.BadParameter if the window of times that are dates is a number that was meant
        in another unit."""
        from ..pipeline.windows import refuse_less_than_a_second

        try:
            refuse_less_than_a_second(self.window, "window")
        except PipelineError as error:
            raise typer.BadParameter(str(error), param_hint="--window") from error

    @staticmethod
    def _width(said: str | None, option: str) -> int | None:
        from ..pipeline.windows import width_of

        try:
            return width_of(said, option.rpartition(".")[2].strip("-"))
        except PipelineError as error:
            raise typer.BadParameter(in_options(str(error)), param_hint=option) from error


@dataclass(frozen=True)
class CheckpointOptions:
    """Where checkpoints are kept, and how often one is taken; None: the pipeline's default."""

    checkpoint: Path | None = _checkpoint_option(
        "checkpoints.directory", "--checkpoint", "-c",
        help="The directory of checkpoints. If it holds one, the stream resumes from it.",
    )  # fmt: skip
    from_store: Path | None = _checkpoint_option(
        "graph.from_store", metavar="STORE",
        help="Begin with this saved store instead of an empty graph. The stream is read from its "
        "earliest record, unless --from-offsets says otherwise.",
    )  # fmt: skip
    accept_gap: bool = _checkpoint_option(
        "checkpoints.accept_gap", "--accept-gap", default=False,
        help="Resume although retention has dropped records that were still to be read; they are "
        "counted.",
    )  # fmt: skip
    accept_journal_loss: bool = _checkpoint_option(
        "checkpoints.accept_journal_loss", "--accept-journal-loss", default=False,
        help="If the journal is missing or damaged, resume from the checkpoint and the log. No "
        "update is lost; time stamps are assigned anew, and repeated replies may differ.",
    )  # fmt: skip

    def check(self, pipeline: dict[str, Any]) -> None:
        """Raise TargetError if what was given is a file; typer.BadParameter if one of these, or of
        the pipeline's settings, needs a directory and none was given."""
        if self.checkpoint is not None and self.checkpoint.is_file():
            what = "a file (a saved store)" if is_store(self.checkpoint) else "a file"
            raise TargetError(f"{self.checkpoint} is {what}; --checkpoint needs a directory")
        asked = pipeline.keys() & {"checkpoint_interval", "checkpoint_operations",
                                   "keep_checkpoints"}  # fmt: skip
        if self.checkpoint is None and (asked or self.accept_gap or self.accept_journal_loss):
            raise typer.BadParameter(
                "needed by checkpoints.interval, checkpoints.operations, checkpoints.keep, "
                "checkpoints.accept_gap and checkpoints.accept_journal_loss",
                param_hint="--checkpoint",
            )


@dataclass(frozen=True)
class PipelineOptions:
    """Settings of the pipeline; None: its default."""

    batch_size: int | None = option(
        "batches.size", "--batch-size", min=1, help="Operations per batch. (default: 100000)"
    )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """Those that were given."""
        return given(asdict(self))


# With all others that ingest/settings.py declares, as keys of the file.
OF_SETTINGS = make_dataclass(
    "OF_SETTINGS", bases=(PipelineOptions,), frozen=True,
    fields=[
        (name, kind | None, keyed(meta.extra["key"])) for name, (kind, meta) in declared().items()
        if meta.extra and name != "batch_size"
    ],
)  # fmt: skip


@dataclass(frozen=True)
class StreamOptions:
    """How the stream is run, and where its figures and its graph go."""

    save: Save = keyed("outputs.save")
    statistics: Path | None = option(
        "outputs.statistics", readable=False,
        help="Append each batch's figures here, as JSON lines.",
    )  # fmt: skip
    metrics: Metrics = keyed("outputs.metrics")
    serve: str | None = _serve_option(
        "serve.address", "--serve", metavar="[HOST:]PORT",
        help="Serve the graph over HTTP there, with a live page; a port alone binds to loopback.",
    )  # fmt: skip
    updates_topic: str | None = _serve_option(
        "serve.updates_topic", metavar="TOPIC",
        help="The topic that POST /v1/updates writes to, one that is read. (default: updates, or "
        "the only one)",
    )  # fmt: skip
    track: str | None = _results_option(
        "results.track", "--track", metavar="FIGURE,…", autocompletion=figures,
        help="Figures to keep up to date: core, triangles, components, butterflies, pagerank.",
    )  # fmt: skip
    alerts: list[str] | None = _results_option(
        "results.alerts", "--alert", metavar="RULE",
        help="Send an alert when this becomes true, such as 'core >= 20' or 'triangles > 1e6': "
        "with the results, and on the page of --serve, which also takes 'lag > 1000'. May be "
        "repeated.",
    )  # fmt: skip
    log_json: bool = option(
        "run.log_json", "--log-json", default=False,
        help="Log events to stderr, as JSON lines.",
    )  # fmt: skip
    follow: Follow = keyed("run.follow", False)
    limit: int | None = option(
        "run.limit", "--limit", min=1, help="Stop after this many operations."
    )
    dry_run: bool = option(
        "--dry-run", default=False, help="Read and count only; write nothing anywhere."
    )
    accept_bad: bool = option(
        "run.accept_bad", "--accept-bad", default=False,
        help=f"Go on although the first {FIRST_RECORDS:,} records of a new stream are all bad, or "
        "none has a field that is named.",
    )  # fmt: skip
    rate: float | None = option(
        "file.rate", min=0.001, help="Read a file at this many operations per second."
    )  # fmt: skip
    as_json: JsonOption = False

    @property
    def goes_on(self) -> bool:
        """Whether a log of which nothing is applied is no failure."""
        return self.follow or self.serve is not None or self.accept_bad

    @property
    def first_records(self) -> int:
        """How many records at the beginning of a stream are not all to be bad; 0: all may be."""
        return 0 if self.accept_bad else FIRST_RECORDS
