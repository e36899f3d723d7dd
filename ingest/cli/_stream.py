"""The stream of `lpma ingest`: checked, opened, run, served and reported."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import PipelineError
from ..events import log_event
from ..fields import Records, mapping_of
from ..types import QUERIES
from ._console import Screen
from ._ingest_options import CheckpointOptions, EndpointOptions, RecordOptions, StreamOptions
from ._ingest_report import figures_of, tell_untimed
from ._origin import Origin, check_holds_edges
from ._pipeline import Progress, reading_kept, run
from ._rejected import explaining_bad, tell_rejected
from ._results import check_file
from ._serve_options import context_of, serving

if TYPE_CHECKING:
    from ..pipeline.pipeline import Pipeline
    from ..service.security import Access
    from ..settings import BatchStats


@dataclass(frozen=True)
class Stream:
    """A stream as the command line says. asked: arguments of the graph; remember: called when a
    good record has come, or a stream of bad ones alone would leave something."""

    options: StreamOptions
    checkpointing: CheckpointOptions
    endpoints: EndpointOptions
    records: RecordOptions
    origin: Origin
    asked: dict[str, Any]
    device: str
    remember: Callable[[], None]

    def check(self) -> None:
        """Refuse options that do not go together, and files that would overwrite what is read."""
        from lpma.backend import check_device
        from lpma.file.atomic import check_apart

        check_device(self.device)
        self.endpoints.check(self.origin)
        options, path = self.options, self.origin.path
        checkpoint, save = self.checkpointing.checkpoint, options.save
        if checkpoint is None and save is None and not options.dry_run:
            raise typer.BadParameter(
                "give one of them: without either, nothing would remain",
                param_hint="--checkpoint, --save",
            )
        if options.follow and path is not None and path.exists() and not self.origin.is_log:
            raise typer.BadParameter(
                "a file of edges is read to its end; a log and topics are followed",
                param_hint="--follow",
            )
        if path is not None:
            for written in filter(None, (save, options.statistics)):
                check_apart(written, path)
        self._check_updates_topic()
        files = {
            "results": self.endpoints.results_file, "changes": self.endpoints.changes_file,
        }  # fmt: skip
        if any(file is not None for file in files.values()):
            used = [
                ("what is read", path), ("the file of --save", save),
                ("the file of outputs.statistics", options.statistics),
                ("the file of graph.from_store", self.checkpointing.from_store),
                ("the file of --kafka-config", self.endpoints.kafka_config),
            ]  # fmt: skip
            if path is not None:
                log = os.path.realpath(path)  # beside which SQLite keeps these
                parts = [Path(f"{log}{suffix}") for suffix in ("-wal", "-shm", "-journal")]
                used += [("a part of the log that is read", part) for part in parts]
            for what, file in files.items():
                if file is not None:
                    check_file(what, file, used, checkpoint)
                    used.append((f"the file of --{what}-file", file))
        if options.metrics is not None:
            _check_address(options.metrics)

    def _check_updates_topic(self) -> None:
        """Refuse a topic that nothing is written to, or whose records would not be read."""
        topic = self.options.updates_topic
        if topic is None:
            return
        if self.options.serve is None:
            why = "updates are posted to a service: it needs --serve"
        elif not self.origin.is_log:
            why = "a file is not written to: serve a log"
        elif topic not in (read := [name for name in self.origin.read if name != QUERIES]):
            why = f"{topic} is not read for updates: name one of {', '.join(read)}"
        else:
            return
        raise typer.BadParameter(why, param_hint="serve.updates_topic")

    def open(self, settings: dict[str, Any], screen: Screen, opened: ExitStack) -> Any:
        """The source, closed with `opened`. The pipeline's settings gain what it makes plain."""
        from lpma.file.atomic import check_writable

        directory = self.checkpointing.checkpoint
        kept = None if directory is None else reading_kept(directory)
        json = settings.get("records", kept.records if kept else None)
        names = settings.get("names", kept.names if kept else None)
        if self.options.save is not None:
            check_writable(self.options.save)
        directed = self.asked.get("directed", True)
        source = self.origin.open(directed, opened, names, None if json == "msgpack" else json)
        if names is None:
            settings["names"] = source.names  # a log's vertices go by ids
        if self.origin.is_log:
            settings["stop_if_first_bad"] = self.options.first_records
            if kept is None:
                for note in _two_kinds(settings.get("records", "msgpack"), self.origin.read):
                    screen.say(note)
            return source
        for said in (str(source.reading), *source.reading.notes(directed)):
            screen.say(said)
        if source.reading.bipartite and source.names:
            screen.say(
                "which vertices are the left side is not kept where they go by names, and a stream "
                "names them as they come: `lpma load` keeps it"
            )
        if source.reading.times == "dates":
            self.records.refuse_milliseconds()
        if kept is None:
            check_holds_edges(source, self.options.first_records)
        return source

    def run(
        self, pipeline: Pipeline, resumed: bool, screen: Screen, opened: ExitStack
    ) -> dict[str, Any]:
        """Run an open pipeline, save the store if requested, and report what was done."""
        options, stats = self.options, pipeline.stats
        if resumed:
            screen.say(f"resumed at {stats.operations:,} operations")
        for gap in stats.gaps:
            screen.say(f"{gap}: accepted, the stream goes on after them")
        if stats.journal_loss is not None:
            screen.say(
                f"{stats.journal_loss}: what the journal said from there on is given up; the log "
                "is read again, and replies that are repeated may differ"
            )
        if pipeline.results is not None and pipeline.results.begun:
            screen.say(f"results begin anew: {pipeline.results.begun}")
        if pipeline.feed is not None and pipeline.feed.begun:
            screen.say(f"the edge feed begins anew: {pipeline.feed.begun}")
        progress = Progress(pipeline, screen)
        note = self._once_there(pipeline)
        note()
        on_batch = self._after_each_batch(pipeline, progress, opened, note)
        started = time.perf_counter()
        with explaining_bad(self.origin, pipeline.outputs, pipeline.settings):
            operations = run(pipeline, options.limit, options.follow, on_batch, progress.look)
            pipeline.check_first_records()
        seconds = time.perf_counter() - started
        tell_untimed(pipeline, screen)
        if self.origin.is_log:  # a file's lines are told with its facts
            tell_rejected(pipeline, self.origin, screen, fails=not options.goes_on)
        graph: Any = pipeline.graph
        save, checkpoint = options.save, self.checkpointing.checkpoint
        if checkpoint is not None and not stats.operations and pipeline.intake.at_end():
            pipeline.checkpoint_now()  # so that whoever reads it knows that nothing comes
        note()
        if save is not None:
            graph.save(save)
        return {
            "source": str(self.origin),
            "resumed": resumed,
            "gaps": [gap.detail() for gap in stats.gaps],
            "journal_loss": stats.journal_loss,
            "operations": operations,
            **figures_of(pipeline, seconds),
            "checkpoint": None if checkpoint is None else str(checkpoint),
            "store": None if save is None else str(save),
        }

    def serve(
        self,
        pipeline: Pipeline,
        alerts: Sequence[str],
        access: Access,
        screen: Screen,
        opened: ExitStack,
    ) -> None:
        """Serve a pipeline over HTTP until `opened` is closed."""
        address, path = self.options.serve, self.origin.path
        assert address is not None
        title = ", ".join(self.origin.read) if path is None else path.name
        context = context_of(pipeline, title, alerts, self.options.updates_topic)
        service = opened.enter_context(serving(context, address, access))
        log_event("serve", url=service.url)
        screen.say(f"served at {service.url}")

    def _after_each_batch(
        self, pipeline: Pipeline, progress: Progress, opened: ExitStack, note: Callable[[], None]
    ) -> Callable[[BatchStats], None]:
        """A function to call after each batch: it logs figures, moves the bar and calls `note`.
        Metrics are served until `opened` is closed.

        Imported here: only outputs.metrics needs the library that serves them."""
        written: Callable[[BatchStats], None] | None = None
        if self.options.statistics is not None:
            from ..plots.run_log import RunLog

            graph: Any = pipeline.graph
            written = opened.enter_context(RunLog(self.options.statistics, graph))
        if self.options.metrics is not None:
            from ..metrics import MetricsServer

            opened.enter_context(MetricsServer(pipeline, self.options.metrics))

        def on_batch(batch: BatchStats) -> None:
            if written is not None:
                written(batch)
            progress(batch)
            note()

        return on_batch

    def _once_there(self, pipeline: Pipeline) -> Callable[[], None]:
        """A function that remembers, once, when it is sure that the checkpoints will stay."""
        done = self.checkpointing.checkpoint is None

        def note() -> None:
            nonlocal done
            if not done and not pipeline.outputs.held:
                self.remember()
                done = True

        return note


def _two_kinds(records: Records, topics: Sequence[str]) -> Iterator[str]:
    """What to say of topics whose mapping looks to join vertices of two kinds."""
    from ..sources.files.reading import TWO_KINDS

    for topic in topics:
        fields = mapping_of(records, topic)
        if fields is None or fields.default_kind == "add_vertex":
            continue
        ends = [str(field) for field in (fields.source, fields.target)]
        if any(end.rpartition(".")[2].lower() in TWO_KINDS for end in ends):
            yield (
                f"{topic}: {ends[0]} and {ends[1]} may be two kinds of vertices, of which equal "
                "values are one vertex here: if they are, have the producer send values that "
                "differ, as item:5"
            )


def _check_address(metrics: str) -> None:
    from ..arguments import parse_address
    from ..metrics import MetricsServer as MetricsServer  # which says what to install

    try:
        parse_address(metrics)
    except PipelineError as error:
        raise typer.BadParameter(str(error), param_hint="outputs.metrics") from error
