"""The options of `lpma ingest`, by subject: what is read and answered, how records are read, how
checkpoints are kept, how the stream is run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import settings
from ._config import Table, in_file
from ._console import JsonOption
from ._file_options import FileOptions
from ._options import (
    KAFKA_TABLE,
    CheckpointInterval,
    CheckpointOperations,
    JsonOptions,
    KafkaConfig,
    KafkaServers,
    checkpoint_option,
    checkpoint_settings,
    given,
    kafka_option,
    results_option,
)
from ._origin import FROM_OFFSETS, FROM_STORE, Origin, Starts, read_starts
from ._serve_options import serve_option

RECORDS = "The records of a log"
FIRST_RECORDS = 1000  # of a new stream: if all are bad, it stops


class Late(StrEnum):
    apply = "apply"
    dead_letter = "dead-letter"
    reject = "reject"


class WindowTime(StrEnum):
    event = "event"
    arrival = "arrival"


def _record_option(name: str, help: str, min: int | None = None) -> Any:
    return typer.Option(name, help=help, min=min, rich_help_panel=RECORDS, show_default=False)


@in_file(
    kafka="kafka.servers", topics="kafka.topics", kafka_config="kafka.config",
    kafka_settings="kafka.settings", group="kafka.group", from_offsets="source.from_offsets",
    reply_topics="outputs.reply_topics", dead_letter_topic="outputs.dead_letter_topic",
    results_topic="results.topic", results_file="results.file",
)  # fmt: skip
@dataclass(frozen=True)
class EndpointOptions:
    """Where a stream comes from, and where replies and dead letters go."""

    kafka: KafkaServers = None
    topics: Annotated[
        list[str] | None,
        kafka_option(
            "--topic", help="A topic to read; may be repeated. (default: updates and queries)"
        ),
    ] = None
    kafka_config: KafkaConfig = None
    kafka_settings: Table | None = field(default=None, metadata=KAFKA_TABLE)
    group: Annotated[
        str | None,
        kafka_option(
            "--group",
            help="A consumer group to tell, after each checkpoint, how far the stream has come, "
            "for tools that show the lag. Nothing is read from it.",
        ),
    ] = None
    reply_topics: Annotated[
        list[str] | None,
        kafka_option(
            "--reply-topic",
            help="A topic that queries may name for replies; may be repeated. (default: replies)",
        ),
    ] = None
    dead_letter_topic: Annotated[
        str | None,
        kafka_option("--dead-letter-topic", help="Where bad records go. (default: dead-letters)"),
    ] = None
    results_topic: Annotated[
        str | None,
        results_option(
            "--results-topic",
            metavar="TOPIC",
            help="Where changes of the figures in --track go, and alerts; it is made if need be.",
        ),
    ] = None
    results_file: Annotated[
        Path | None,
        results_option(
            "--results-file",
            metavar="FILE",
            help="Or the file at whose end they go as JSON lines.",
        ),
    ] = None
    from_offsets: Annotated[
        str | None,
        kafka_option(
            FROM_OFFSETS,
            metavar="WHERE",
            help="Where a new checkpoint begins: earliest, latest, "
            "'updates:0=120,updates:1=latest', or a JSON file; 120+4: after 4 rows of that record. "
            "(default: earliest)",
        ),
    ] = None

    def origin(self, path: Path | None, file: FileOptions, rate: float | None) -> Origin:
        settings = self.kafka_settings
        return Origin(
            path, self.kafka, self.topics, self.kafka_config, file, rate, settings, self.group
        )

    def starts(self) -> Starts | None:
        return None if self.from_offsets is None else read_starts(self.from_offsets)

    def check(self, origin: Origin) -> None:
        """Raise typer.BadParameter if what leaves cannot go where it was to."""
        replies, letters = self.reply_topics, self.dead_letter_topic
        if (replies or letters or self.results_topic) and not origin.is_log:
            raise typer.BadParameter(
                "a file takes no replies, no dead letters and no results: --results-file",
                param_hint="SOURCE",
            )
        written = {*(replies or ()), *filter(None, (letters, self.results_topic))}
        if both := written & set(origin.read):
            raise typer.BadParameter(f"{min(both)} is read: what is written needs another topic")

    def outputs(self, source: Any) -> dict[str, Any]:
        """The settings for replies, dead letters and results that were given."""
        replies, letters = self.reply_topics, self.dead_letter_topic
        settings: dict[str, Any] = {}
        if replies:
            settings["reply_topics"] = tuple(replies)
        if letters:
            settings["dead_letters"] = (source.sink(), letters)
        if self.publishes:
            topic = self.results_topic
            settings["results"] = self.results_file if topic is None else (source.sink(), topic)
        return settings

    @property
    def publishes(self) -> bool:
        """Whether results leave."""
        return self.results_topic is not None or self.results_file is not None


@in_file(
    late="records.late", max_lateness="records.max_lateness", window="records.window",
    window_time="records.window_time",
)  # fmt: skip
@dataclass(frozen=True)
class RecordOptions(JsonOptions, FileOptions):
    """How records of a log, or rows of a file, are read; None: the default of the pipeline's
    settings, or what a file makes plain."""

    late: Annotated[
        Late | None, _record_option("--late", "What to do with late operations. (default: apply)")
    ] = None
    max_lateness: Annotated[
        int | None,
        _record_option(
            "--max-lateness",
            "How far behind the newest event time is not yet late, in its unit. (default: 0)",
            min=0,
        ),
    ] = None
    window: Annotated[
        str | None,
        _record_option(
            "--window",
            "How long edges are kept, as 24h: of ms, s, m, h, d, w, or a number in the unit of the "
            "times. (default: for ever)",
        ),
    ] = None
    window_time: Annotated[
        WindowTime | None,
        _record_option(
            "--window-time",
            "What moves the window: the newest event time, or arrival, which is then the time of "
            "every edge. (default: event)",
        ),
    ] = None

    def settings(self) -> dict[str, Any]:
        """The settings that were given. Raises typer.BadParameter on a window that is none."""
        settings = given(
            {"names": self.by_name, "late": self.late, "max_lateness": self.max_lateness,
             "window": self._width(), "window_time": self.window_time}
        )  # fmt: skip
        fields = self.json()
        return settings if fields is None else {**settings, "records": fields}

    def _width(self) -> int | None:
        from ..errors import PipelineError
        from ..pipeline.windows import width_of

        try:
            return width_of(self.window)
        except PipelineError as error:
            raise typer.BadParameter(str(error), param_hint="--window") from error


@in_file(
    checkpoint="checkpoints.directory", checkpoint_interval="checkpoints.interval",
    checkpoint_operations="checkpoints.operations", keep_checkpoints="checkpoints.keep",
    from_store="graph.from_store", accept_gap="checkpoints.accept_gap",
    accept_journal_loss="checkpoints.accept_journal_loss",
)  # fmt: skip
@dataclass(frozen=True)
class CheckpointOptions:
    """Where checkpoints are kept, and how often one is taken; None: the pipeline's default."""

    checkpoint: Annotated[
        Path | None,
        checkpoint_option(
            "--checkpoint",
            "-c",
            help="The directory of checkpoints; the stream resumes if it holds one.",
        ),
    ] = None
    checkpoint_interval: CheckpointInterval = None
    checkpoint_operations: CheckpointOperations = None
    keep_checkpoints: Annotated[
        str | None,
        checkpoint_option(
            "--keep-checkpoints",
            metavar="LADDER",
            help="Old checkpoints to keep for past views, as '1h=24,1d=7': one an hour for 24 "
            "hours, one a day for 7 days. '' keeps none. (default: as the stream did so far)",
        ),
    ] = None
    from_store: Annotated[
        Path | None,
        checkpoint_option(
            FROM_STORE,
            metavar="STORE",
            help="Begin with this saved store instead of an empty graph. The stream is read from "
            "its earliest record, unless --from-offsets says otherwise.",
        ),
    ] = None
    accept_gap: Annotated[
        bool,
        checkpoint_option(
            "--accept-gap",
            help="Resume although retention has dropped records that were still to be read; they "
            "are counted.",
        ),
    ] = False
    accept_journal_loss: Annotated[
        bool,
        checkpoint_option(
            "--accept-journal-loss",
            help="If the journal is missing or damaged, resume from the checkpoint and the log. "
            "No update is lost; time stamps are assigned anew, and repeated replies may differ.",
        ),
    ] = False

    def settings(self) -> dict[str, Any]:
        """The settings that were given. Raises typer.BadParameter if they need a directory and
        none was given."""
        found = checkpoint_settings(self.checkpoint_interval, self.checkpoint_operations)
        found |= given({"keep_checkpoints": self.keep_checkpoints})
        lost = self.accept_gap or self.accept_journal_loss
        if self.checkpoint is None and (found or lost):
            raise typer.BadParameter(
                "needed by checkpoints.interval, checkpoints.operations, checkpoints.keep, "
                "--accept-gap and --accept-journal-loss", param_hint="--checkpoint",
            )  # fmt: skip
        return found


@in_file(
    query_interval="batches.query_interval", max_queries="batches.max_queries",
    max_waiting_queries="batches.max_waiting_queries", poll_records="batches.poll_records",
    max_hops="batches.max_hops", max_reply_rows="batches.max_reply_rows",
    history="batches.history",
)  # fmt: skip
@dataclass(frozen=True)
class BatchSettings:
    """Settings of the pipeline that only a file has; None: its default."""

    query_interval: settings.QueryInterval | None = None
    max_queries: settings.MaxQueries | None = None
    max_waiting_queries: settings.MaxWaiting | None = None
    poll_records: settings.PollRecords | None = None
    max_hops: settings.MaxHops | None = None
    max_reply_rows: settings.MaxReplyRows | None = None
    history: settings.History | None = None

    def settings(self) -> dict[str, Any]:
        """Those that were given."""
        return given(asdict(self))


@in_file(
    save="outputs.save", statistics="outputs.statistics", metrics="outputs.metrics",
    serve="serve.address", updates_topic="serve.updates_topic", track="results.track",
    alerts="results.alerts", log_json="run.log_json", follow="run.follow", limit="run.limit",
    accept_bad="run.accept_bad", batch_size="batches.size", batch_interval="batches.interval",
    rate="file.rate",
)  # fmt: skip
@dataclass(frozen=True)
class StreamOptions:
    """How the stream is run, and where its figures and its graph go."""

    save: Annotated[Path | None, typer.Option(help="Save the store here at the end.")] = None
    statistics: Annotated[
        Path | None, typer.Option(help="Append each batch's figures here, as JSON lines.")
    ] = None
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="PORT|HOST:PORT",
            help="Serve metrics for Prometheus there; a port alone binds to loopback.",
        ),
    ] = None
    serve: Annotated[
        str | None,
        serve_option(
            "--serve",
            metavar="[HOST:]PORT",
            help="Serve the graph over HTTP there, with a live page; a port alone binds to "
            "loopback.",
        ),
    ] = None
    updates_topic: Annotated[
        str | None,
        serve_option(
            "--updates-topic",
            metavar="TOPIC",
            help="The topic that POST /v1/updates writes to, one that is read. (default: updates, "
            "or the only one)",
        ),
    ] = None
    track: Annotated[
        str | None,
        results_option(
            "--track",
            metavar="FIGURE,…",
            help="Figures to keep up to date: core, triangles, components, butterflies, pagerank.",
        ),
    ] = None
    alerts: Annotated[
        list[str] | None,
        results_option(
            "--alert",
            metavar="RULE",
            help="Tell where this becomes true, as 'core >= 20' or 'triangles > 1e6', with the "
            "results, and watchers of --serve, also of 'lag > 1000'. May be repeated.",
        ),
    ] = None
    log_json: Annotated[
        bool, typer.Option("--log-json", help="Log what happens to stderr, as JSON lines.")
    ] = False
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more at the end of a log.")
    ] = False
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this many operations.")] = (
        None
    )
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and count only; write nothing anywhere.")
    ] = False
    accept_bad: Annotated[
        bool,
        typer.Option(
            "--accept-bad",
            help=f"Go on although the first {FIRST_RECORDS:,} records of a new stream are all bad.",
        ),
    ] = False
    batch_size: Annotated[int, typer.Option(min=1, help="Operations per batch.")] = 100_000
    batch_interval: Annotated[
        float, typer.Option(min=0.0, help="Close a batch after this many seconds.")
    ] = 0.1
    rate: Annotated[
        float | None,
        typer.Option(min=0.001, help="Read a file at this many operations per second."),
    ] = None
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show all figures at the end.")
    ] = False
    as_json: JsonOption = False

    @property
    def goes_on(self) -> bool:
        """Whether a log of which nothing is applied is no failure."""
        return self.follow or self.serve is not None or self.accept_bad

    @property
    def first_records(self) -> int:
        """How many records at the beginning of a stream are not all to be bad; 0: all may be."""
        return 0 if self.accept_bad else FIRST_RECORDS
