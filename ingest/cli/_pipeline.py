"""A pipeline on the command line: opened or resumed, run until it is stopped, with progress."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import CheckpointError
from ..events import log_event
from ..sources import FileSource
from ..sources.base import TopicsDiffer
from ..sources.files.unpacking import share_read
from ._config import MEMORY, SET
from ._console import Screen
from ._ingest_options import CheckpointOptions
from ._options import RARE_OF_GRAPH
from ._origin import FROM_OFFSETS, FROM_STORE, Starts, begin_at
from ._rejected import newest_rejected
from ._targets import TargetError, made_with, open_store

if TYPE_CHECKING:
    import lpma

    from ..pipeline.pipeline import Pipeline
    from ..settings import BatchStats, RecordSettings
    from ..types import Partition, Position

LOOK_EVERY_S = 0.2  # at the lag, for the bar
LOG_EVERY_S = 10.0  # between two progress events


def open_pipeline(
    source: Any,
    checkpointing: CheckpointOptions,
    starts: Starts | None,
    asked: dict[str, Any],
    device: str,
    **settings: Any,
) -> tuple[Pipeline, bool]:
    """A pipeline that resumes from the newest checkpoint, or a new one; returns it and whether it
    resumes."""
    from ..pipeline.pipeline import Pipeline
    from ..state.directory import has_checkpoint

    checkpoint = checkpointing.checkpoint
    if checkpoint is not None and has_checkpoint(checkpoint):
        check_nothing_begins(checkpoint, starts, checkpointing.from_store)
        try:
            pipeline = Pipeline.resume(
                checkpoint, source, accept_gap=checkpointing.accept_gap,
                accept_journal_loss=checkpointing.accept_journal_loss, device=device, **settings,
            )  # fmt: skip
        except TopicsDiffer as error:
            if not (checkpoint / MEMORY).is_file():
                raise
            alone = f"`lpma ingest -c {checkpoint}` alone goes on as this stream was last run"
            raise TargetError(f"{error}; {alone}") from error
        try:
            check_same(pipeline.graph, asked, checkpoint)
        except typer.BadParameter:
            pipeline.close(checkpoint=False)
            raise
        return pipeline, True
    positions = begin_at(source, starts)
    check_counts_alike(checkpointing.from_store, positions)
    named, left = settings.get("names", False), getattr(source, "left", None)
    graph = begin_with(checkpointing.from_store, asked, device, named, left)
    begun = Pipeline(source, graph, checkpoint, positions=positions, device=device, **settings)
    return begun, False


def reading_kept(checkpoint: Path) -> RecordSettings | None:
    """How the stream of the newest checkpoint in a directory reads records; None if there is
    none."""
    from ..state.checkpoint import read_checkpoint
    from ..state.directory import checkpoint_numbers, checkpoint_path

    if not checkpoint.is_dir():
        return None
    for number in reversed(checkpoint_numbers(checkpoint)):
        with suppress(CheckpointError):
            found = read_checkpoint(checkpoint_path(checkpoint, number), number)
            return found.state.record_settings
    return None


def check_counts_alike(from_store: Path | None, positions: dict[Partition, Position]) -> None:
    """Refuse to begin within a record where the stream before did not count its late rows: a new
    stream cannot know which these were."""
    kept = None if from_store is None else reading_kept(from_store)
    if kept is not None and kept.late != "apply" and any(at.row for at in positions.values()):
        raise TargetError(
            f"{from_store}: its stream leaves out late rows, so rows of a record are not counted "
            "alike: first let it read on to the end of that record, as `lpma ingest` without "
            "--limit does"
        )


def begin_with(
    from_store: Path | None, asked: dict[str, Any], device: str, named: bool,
    left: int | None = None,
) -> lpma.Graph:  # fmt: skip
    """The graph that a new stream begins with: an empty one, or a saved one. named: whether the
    stream's vertices go by names. left: of a file with two kinds of vertices, how many ids the left
    side has."""
    import lpma

    if from_store is None:
        return lpma.Graph(device=device, names=named, left=left, **asked)
    opened = open_store(from_store, device, begun=False)
    if named != (opened.names.count is not None):
        what = "ids, not by names: leave out --names" if named else "names: give --names, too"
        raise TargetError(f"{from_store}: its vertices go by {what}")
    if left is not None and opened.graph.left != left:
        has = "none" if opened.graph.left is None else f"{opened.graph.left:,}"
        raise TargetError(
            f"{from_store}: its left side has {has} of its ids, and that of the file {left:,}: "
            "begin with an empty graph"
        )
    check_same(opened.graph, asked, from_store)
    return opened.graph


def check_nothing_begins(checkpoint: Path, starts: Starts | None, from_store: Path | None) -> None:
    """Refuse options that say where to begin: there is a checkpoint, which says so itself."""
    given = FROM_STORE if from_store is not None else FROM_OFFSETS if starts is not None else None
    if given is not None:
        raise TargetError(
            f"{checkpoint}: holds a checkpoint, which says where to go on: leave out {given}, or "
            "give another directory"
        )


def check_same(graph: Any, asked: dict[str, Any], checkpoint: Path) -> None:
    """Refuse options that contradict an existing graph."""
    has = made_with(graph)
    for name, value in asked.items():
        if has[name] != value:
            raise typer.BadParameter(
                f"the graph in {checkpoint} was made with {_option(name, has[name])}, which a "
                "resume cannot change",
                param_hint=_option(name, value),
            )


def _option(name: str, value: Any) -> str:
    """What makes a graph so."""
    if name in RARE_OF_GRAPH:
        return f"{SET} graph.{name}={str(value).lower()}"
    no = "--undirected" if name == "directed" else f"--no-{name}"
    return f"--{name}" if value else no


def run(
    pipeline: Pipeline,
    limit: int | None,
    follow: bool,
    on_batch: Callable[[BatchStats], None],
    on_step: Callable[[], None],
) -> int:
    """Run to the end of the log or, with `follow`, beyond it; at most `limit` operations. Returns
    how many were applied. on_step: called while the stream is followed, also when nothing comes."""
    stopped = threading.Event()

    def stop(*_: Any) -> None:
        stopped.set()
        pipeline.stop()

    with on_signals(stop):
        if limit is None:

            def goes_on(_: Pipeline) -> bool:
                on_step()
                return False

            return pipeline.run(goes_on if follow else "end", on_batch)
        done = 0
        while done < limit and not stopped.is_set():
            operations = pipeline.step(limit - done, drain=not follow)
            if operations:
                on_batch(pipeline.stats.history[-1])
            elif not follow and pipeline.intake.at_end():
                break
            if follow:
                on_step()
            done += operations
        return done


@contextmanager
def on_signals(stop: Callable[..., None]) -> Iterator[None]:
    """Within, SIGINT and SIGTERM call `stop`; outside the main thread they keep their handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Progress:
    """Shows after each batch how far a pipeline is: a bar on a terminal, an event every ten
    seconds. While a stream is followed, also what it rejects, in a line every ten seconds.

    clock: seconds."""

    def __init__(
        self,
        pipeline: Pipeline,
        screen: Screen,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pipeline = pipeline
        self._screen = screen
        self._clock = clock
        self._told = 0  # of those rejected
        self._tell_at = -LOG_EVERY_S
        self._lag = 0
        self._looked = -LOOK_EVERY_S
        self._logged = clock()
        self._operations = pipeline.stats.operations  # when last reported

    def __call__(self, batch: BatchStats) -> None:
        now = self._clock()
        self._show(now)
        if now - self._logged >= LOG_EVERY_S:
            rate = (batch.total_operations - self._operations) / (now - self._logged)
            log_event("progress", operations=batch.total_operations, lag=self._lag,
                      operations_per_second=round(rate))  # fmt: skip
            self._operations, self._logged = batch.total_operations, now

    def look(self) -> None:
        """After a step, which may have applied nothing."""
        now = self._clock()
        if now - self._looked >= LOOK_EVERY_S:
            self._show(now)
        rejected = self._pipeline.outputs.rejected
        if rejected > self._told and now >= self._tell_at:
            if (said := newest_rejected(self._pipeline.outputs)) is not None:
                self._screen.say(said)
            self._told, self._tell_at = rejected, now + LOG_EVERY_S

    def _show(self, now: float) -> None:
        """Move the bar."""
        if now - self._looked >= LOOK_EVERY_S:
            self._lag, self._looked = sum(self._pipeline.stats.lag().values()), now
        note = f", {self._lag:,} records behind" if self._lag else ""
        if rejected := self._pipeline.outputs.rejected:
            note += f", {rejected:,} rejected"
        source = self._pipeline.source
        share = share_read(source.path) if isinstance(source, FileSource) else None
        self._screen.progress("ingest", self._pipeline.stats.operations, None, note, share)


def list_lag(lag: dict[Partition, int]) -> list[dict[str, Any]]:
    """Records still to be read, by partition."""
    return [
        {"topic": partition.topic, "partition": partition.number, "records": records}
        for partition, records in sorted(lag.items())
    ]
