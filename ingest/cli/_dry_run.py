"""`lpma ingest --dry-run`: what would be applied, counted, and nothing written."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..state.directory import has_checkpoint
from ._console import counts_said, said
from ._offsets import Starts
from ._opening import Origin, begin_at
from ._running import begin_with, check_new, check_same, on_signals
from ._targets import open_store

if TYPE_CHECKING:
    from ..dry_run import DryRun
    from ..state.gap import Gap
    from ..types import Partition

SHOWN_LETTERS = 5


def count(
    origin: Origin,
    source: Any,
    checkpoint: Path | None,
    starts: Starts | None,
    asked: dict[str, Any],
    limit: int | None,
    follow: bool,
    from_store: Path | None = None,
    accept_gap: bool = False,
    **settings: Any,
) -> dict[str, Any]:
    """The counts of a dry run, from where a pipeline with these options would begin."""
    if checkpoint is not None and has_checkpoint(checkpoint):
        check_new(checkpoint, starts, from_store)
        run, gaps = _resumed(origin, source, checkpoint, asked, accept_gap, settings)
        resumed = True
    else:
        run, gaps = _begun(origin, source, starts, from_store, asked, settings), []
        resumed = False
    started = time.perf_counter()
    with on_signals(lambda *_: run.stop()):
        run.run(limit, follow=follow)
    letters = list(run.outputs.kept)[:SHOWN_LETTERS]
    return {
        "source": str(origin),
        "dry_run": True,
        "resumed": resumed,
        "gaps": gaps_said(gaps),
        "records": run.records,
        "operations": run.operations,
        "updates": dict(run.updates),
        "queries": run.queries,
        "refused": dict(run.refused),
        "duplicates": run.duplicates,
        "rejected": run.outputs.rejected,
        "dead_letters": dict(run.outputs.rejected_by),
        "examples": [
            {"topic": d.topic, "partition": d.partition, "offset": d.offset, "reason": d.reason}
            for d in letters
        ],
        "lag": lag_said(run.lag()),
        "seconds": round(time.perf_counter() - started, 4),
    }


def _begun(
    origin: Origin,
    source: Any,
    starts: Starts | None,
    from_store: Path | None,
    asked: dict[str, Any],
    settings: dict[str, Any],
) -> DryRun:
    """A run from the beginning."""
    from ..dry_run import DryRun
    from ..settings import Settings
    from ..state.checkpoint import State

    if starts is not None:
        begin_at(source, starts)
    graph = begin_with(from_store, asked, "cpu")
    state = State(source.identity(), {})
    return DryRun(source, graph, Settings(**settings), state, answers=origin.is_log)


def _resumed(
    origin: Origin,
    source: Any,
    checkpoint: Path,
    asked: dict[str, Any],
    accept_gap: bool,
    settings: dict[str, Any],
) -> tuple[DryRun, list[Gap]]:
    """A run that goes on from a checkpoint, which is read without its lock; what it goes on
    behind."""
    from ..dry_run import DryRun
    from ..starting import stand_at

    opened = open_store(checkpoint)
    check_same(opened.graph, asked, checkpoint)
    assert opened.state is not None
    own, gaps = stand_at(opened.state, source, settings, accept_gap)
    return DryRun(source, opened.graph, own, opened.state, answers=origin.is_log), gaps


def gaps_said(gaps: list[Gap]) -> list[dict[str, Any]]:
    """Records that are gone, and were accepted to be."""
    return [gap.detail() for gap in gaps]


def lag_said(lag: dict[Partition, int]) -> list[dict[str, Any]]:
    return [
        {"topic": partition.topic, "partition": partition.number, "records": records}
        for partition, records in sorted(lag.items())
    ]


def readable(document: dict[str, Any]) -> dict[str, Any]:
    """A document of `lpma ingest` as people read it: what is nested, in words."""
    rows = dict(document)
    for name in ("updates", "refused", "dead_letters", "unchanged"):
        if name in rows:
            rows[name] = counts_said(rows[name])
    gaps = {f"{gap['topic']}/{gap['partition']}": gap["records"] for gap in rows["gaps"]}
    rows["gaps"] = counts_said(gaps)
    for name in ("rejected_by", "first_rejected"):  # said already
        rows.pop(name, None)
    if "unused_columns" in rows:
        rows["unused_columns"] = ", ".join(rows["unused_columns"]) or None
    for letter in rows.pop("examples", []):
        place = f"{letter['topic']}/{letter['partition']} {letter['offset']}"
        rows[f"bad: {place}"] = letter["reason"]
    behind = [
        f"{place['topic']}/{place['partition']} {said(place['records'])}" for place in rows["lag"]
    ]
    rows["lag"] = ", ".join(behind) or None
    if "stages" in rows:
        rows["stages"] = ", ".join(f"{name} {s:.3g} s" for name, s in rows["stages"].items())
    return rows
