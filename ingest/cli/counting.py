"""`lpma ingest --dry-run`: what would be applied, counted, and nothing written."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .console import counts_said, said
from .offsets import Starts
from .opening import Origin, begin_at
from .running import check_new, check_same, on_signals
from .targets import open_store

if TYPE_CHECKING:
    from ..dry_run import DryRun
    from ..sources.base import Partition

SHOWN_LETTERS = 5


def count(
    origin: Origin,
    source: Any,
    checkpoint: Path | None,
    starts: Starts | None,
    asked: dict[str, Any],
    limit: int | None,
    follow: bool,
    **settings: Any,
) -> dict[str, Any]:
    """The counts of a dry run, from where a pipeline with these options would begin."""
    run, resumed = _opened(origin, source, checkpoint, starts, asked, settings)
    started = time.perf_counter()
    with on_signals(lambda *_: run.stop()):
        run.run(limit, follow=follow)
    letters = list(run.outputs.kept)[:SHOWN_LETTERS]
    return {
        "source": str(origin),
        "dry_run": True,
        "resumed": resumed,
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


def _opened(
    origin: Origin,
    source: Any,
    checkpoint: Path | None,
    starts: Starts | None,
    asked: dict[str, Any],
    settings: dict[str, Any],
) -> tuple[DryRun, bool]:
    """The run, and whether it goes on from a checkpoint, which is read without its lock."""
    import lpma

    from ..checkpoint import State
    from ..directory import has_checkpoint
    from ..dry_run import DryRun
    from ..settings import Settings

    if checkpoint is None or not has_checkpoint(checkpoint):
        if starts is not None:
            begin_at(source, starts)
        graph = lpma.Graph(device="cpu", **asked)
        state = State(source.identity(), {})
        return DryRun(source, graph, Settings(**settings), state, answers=origin.is_log), False
    check_new(checkpoint, starts)
    opened = open_store(checkpoint)
    check_same(opened.graph, asked, checkpoint)
    assert opened.state is not None
    state = opened.state
    state.identity.check(source.identity())
    source.seek({partition: place.offset for partition, place in state.positions.items()})
    told = Settings(**{**settings, **state.reading.of(settings)})
    return DryRun(source, opened.graph, told, state, answers=origin.is_log), True


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
