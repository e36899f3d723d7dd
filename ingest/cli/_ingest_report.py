"""What `lpma ingest` reports at its end: figures of the pipeline and of a file's lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import RecordError
from ..types import Rejected
from ._console import Screen, format_counts, format_value
from ._pipeline import list_lag
from ._targets import format_window, size_of

if TYPE_CHECKING:
    from ..formats.replies import DeadLetter
    from ..pipeline.pipeline import Pipeline
    from ..sources import FileSource
    from ..sources.files.left_out import LeftOut

# What the title, the lines before or `lpma info` say.
DETAILS = {
    "source", "resumed", "rejected", "rejected_by", "first_rejected", "stages", "device", "rows",
    "density", "header", "columns", "by_name", "unused_columns",
}  # fmt: skip


def file_facts(
    source: FileSource, left_out: LeftOut, screen: Screen, dry_run: bool
) -> dict[str, Any]:
    """What is reported about a file's lines; also printed to the screen."""
    columns = source.reading.facts()
    if dry_run:  # has examples of its own
        return columns
    if left_out.count:
        screen.say(f"{source.path}: {left_out}")
    # Late operations are rejected, too, but are not bad lines.
    return {name: value for name, value in left_out.facts().items() if name != "rejected"} | columns


def noting(source: FileSource, left_out: LeftOut) -> Callable[[DeadLetter], None]:
    """A function that counts a line of a file that the pipeline rejected, unless it was late."""

    reasons: dict[str, str] = {}  # of lines that were read, and refused: such as name a value

    def note(letter: DeadLetter) -> None:
        if letter.kind == "late":
            return
        bad = source.bad_line(letter.offset) or _row_of(letter, source.names)
        if not bad.reason:
            bad = replace(bad, reason=reasons.setdefault(letter.kind, letter.reason))
        left_out.add(bad)

    return note


def _row_of(letter: DeadLetter, names: bool) -> Rejected:
    """A line that is not remembered: as it stands or, if it was read, the ends of its edge."""
    from ..formats.records import decode_record

    try:
        record = decode_record(letter.value, names=names)
    except RecordError:
        return Rejected(letter.value, letter.reason)
    ends = record.names or record.batch
    return Rejected(f"{ends.src[0]} {ends.dst[0]}".encode(), "")


def figures_of(pipeline: Pipeline, seconds: float) -> dict[str, Any]:
    """What a pipeline did, which ran for so many seconds here."""
    graph: Any = pipeline.graph
    stats = pipeline.stats
    return {
        "total_operations": stats.operations,
        "replayed": stats.replayed,
        "queries": stats.queries,
        "duplicates": stats.duplicates,
        "skipped": dict(stats.skipped),
        "rejected": pipeline.outputs.rejected,
        "dead_letters": dict(pipeline.outputs.rejected_by),
        "results": results_facts(pipeline),
        "changes": changes_facts(pipeline),
        "unchanged": stats.unchanged.as_dict(),
        "window": stats.window_facts(),
        "expired": stats.expired,
        "other_units": dict(stats.other_units),
        "absent_fields": dict(stats.absent_fields),
        "lag": list_lag(stats.lag()),
        "named": None if pipeline.vertices is None else len(pipeline.vertices),
        "seconds": round(seconds, 4),
        "stages": {name: round(s, 4) for name, s in stats.stages.seconds().items()},
        "device": graph.device,
        **size_of(graph),
        "version": graph.version,
        "density": graph.density,
    }


def tell_untimed(pipeline: Pipeline, screen: Screen) -> None:
    """Say on the screen if a window by event stands still because updates have no time."""
    stats = pipeline.stats
    by_event = pipeline.settings.window_time == "event"
    if stats.untimed and by_event and stats.expired_before is None:
        screen.say(
            f"window: {stats.untimed:,} updates had no time, and nothing has moved it: where no "
            "record carries one, take --set records.window_time=arrival, with a new checkpoint"
        )


def results_facts(pipeline: Pipeline) -> dict[str, Any] | None:
    """What was published of the tracked figures; None if nothing was to be."""
    results = pipeline.results
    if results is None or results.published is None:
        return None
    return {
        "run": results.published.run,
        "begun": results.begun or None,
        "figures": list(results.figures),
        "records": results.records,
        "rows": results.rows,
        "alerts": results.alerts,
        "repeats": results.repeats,
        "waiting": results.waiting,
        "seconds": round(pipeline.stats.stages.results.seconds, 4),
    }


def changes_facts(pipeline: Pipeline) -> dict[str, Any] | None:
    """What was published of the edge feed; None if nothing was to be."""
    feed = pipeline.feed
    if feed is None or feed.published is None:
        return None
    return {
        "run": feed.published.run,
        "begun": feed.begun or None,
        "records": feed.records,
        "rows": feed.rows,
        "repeats": feed.repeats,
        "waiting": feed.waiting,
        "seconds": round(pipeline.stats.stages.feed.seconds, 4),
    }


def readable(document: dict[str, Any]) -> dict[str, Any]:
    """A document of `lpma ingest` for people: nested values in words, without what was said before
    or is nothing."""
    rows = _in_words(document)
    if rows.get("total_operations") == rows.get("operations"):
        rows.pop("total_operations", None)
    return {name: value for name, value in rows.items() if value and name not in DETAILS}


def _in_words(document: dict[str, Any]) -> dict[str, Any]:
    rows = dict(document)
    for name in (
        "updates", "refused", "dead_letters", "skipped", "unchanged", "other_units",
        "absent_fields",
    ):  # fmt: skip
        if name in rows:
            rows[name] = format_counts(rows[name])
    if rows.get("window") is not None:
        rows["window"] = format_window(rows["window"])
    if results := rows.get("results"):
        rows["results"] = (
            f"{results['records']:,} records of {', '.join(results['figures'])}, "
            f"{results['alerts']:,} alerts, {results['seconds']:.3g} s"
        )
    if changes := rows.get("changes"):
        rows["changes"] = f"{changes['rows']:,} in {changes['records']:,} records"
    gaps = {f"{gap['topic']}/{gap['partition']}": gap["records"] for gap in rows["gaps"]}
    rows["gaps"] = format_counts(gaps)
    for letter in rows.pop("examples", []):
        place = f"{letter['topic']}/{letter['partition']} {letter['offset']}"
        rows[f"bad: {place}"] = letter["reason"]
    behind = [
        f"{place['topic']}/{place['partition']} {format_value(place['records'])}"
        for place in rows["lag"]
    ]
    rows["lag"] = ", ".join(behind) or None
    return rows
