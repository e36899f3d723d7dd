"""`lpma ingest --dry-run`: count what would be applied, and write nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..errors import CheckpointError
from ..state.directory import check_can_begin, has_checkpoint
from ._origin import Starts, begin_at
from ._pipeline import (
    begin_with,
    check_counts_alike,
    check_nothing_begins,
    check_same,
    list_lag,
    on_signals,
)
from ._rejected import check_applied, explaining_bad
from ._targets import open_store

if TYPE_CHECKING:
    from ..pipeline.dry_run import DryRun
    from ..state.stream_state import Gap
    from ._stream import Stream

SHOWN_LETTERS = 5


def count(
    stream: Stream, source: Any, starts: Starts | None, settings: dict[str, Any]
) -> dict[str, Any]:
    """The counts of a dry run, from where a pipeline with these options would begin. Raises what
    would end the pipeline.

    settings: those of the pipeline that concern no sink."""
    origin, options, checkpointing = stream.origin, stream.options, stream.checkpointing
    checkpoint = checkpointing.checkpoint
    gaps: list[Gap] = []
    resumed = False
    if checkpoint is not None and has_checkpoint(checkpoint):
        resumed = True
        check_nothing_begins(checkpoint, starts, checkpointing.from_store)
        run, gaps = _resumed(stream, source, settings)
    else:
        if checkpoint is not None:
            check_can_begin(checkpoint)
        run = _begun(stream, source, starts, settings)
    started = time.perf_counter()
    with on_signals(lambda *_: run.stop()), explaining_bad(origin, run.outputs, run.settings):
        run.run(options.limit, follow=options.follow)
    if origin.is_log and not options.goes_on:
        check_applied(source, run.outputs, run.applied + run.operations, origin, run.settings)
    letters = list(run.outputs.kept)[:SHOWN_LETTERS]
    return {
        "source": str(origin),
        "dry_run": True,
        "resumed": resumed,
        "gaps": [gap.detail() for gap in gaps],
        "records": run.records,
        "operations": run.operations,
        "updates": dict(run.updates),
        "queries": run.queries,
        "refused": dict(run.refused),
        "window": run.stats.window_facts(),
        "expired": run.expired,
        "duplicates": run.stats.duplicates,
        "skipped": dict(run.stats.skipped),
        "rejected": run.outputs.rejected,
        "dead_letters": dict(run.outputs.rejected_by),
        "examples": [
            {"topic": d.topic, "partition": d.partition, "offset": d.offset, "reason": d.reason}
            for d in letters
        ],
        "lag": list_lag(run.lag()),
        "seconds": round(time.perf_counter() - started, 4),
    }


def _begun(stream: Stream, source: Any, starts: Starts | None, settings: dict[str, Any]) -> DryRun:
    """A run from the beginning."""
    from ..pipeline import recovery
    from ..pipeline.dry_run import DryRun
    from ..settings import Settings
    from ..state.checkpoint import State

    positions, store = begin_at(source, starts), stream.checkpointing.from_store
    check_counts_alike(store, positions)
    named, left = settings.get("names", False), getattr(source, "left", None)
    graph = begin_with(store, stream.asked, "cpu", named, left)
    own = Settings(**settings)
    recovery.check_lateness(own)
    state = State(source.identity(), recovery.begin_at(source, own, positions))
    is_log = stream.origin.is_log
    return DryRun(source, graph, own, state, answers=is_log, judged=own.stop_if_first_bad)


def _resumed(stream: Stream, source: Any, settings: dict[str, Any]) -> tuple[DryRun, list[Gap]]:
    """A run that goes on from a checkpoint, which is read without its lock, and the gaps that it
    skips."""
    from ..pipeline.dry_run import DryRun
    from ..pipeline.recovery import rows_of, verify_and_seek
    from ..state.inspection import verify_directory
    from ..state.table_rows import ROWS

    checkpointing = stream.checkpointing
    checkpoint = checkpointing.checkpoint
    assert checkpoint is not None
    opened = open_store(checkpoint, begun=False)
    check_same(opened.graph, stream.asked, checkpoint)
    assert opened.state is not None
    report = verify_directory(checkpoint)
    if report.resume is None and not checkpointing.accept_journal_loss:
        raise CheckpointError(f"{checkpoint}: a resume is refused: {report.refusal}")
    own, gaps = verify_and_seek(opened.state, source, settings, checkpointing.accept_gap)
    run = DryRun(
        source, opened.graph, own, opened.state, answers=stream.origin.is_log,
        checkpoint=checkpoint, rows=rows_of(own, opened.graph, opened.path.with_name(ROWS)),
    )  # fmt: skip
    return run, gaps
