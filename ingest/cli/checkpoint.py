"""`lpma checkpoint`: list, verify and prune the checkpoints of a directory."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpma.display.words import size_of

from ._console import JsonOption, emit, failing_in_one_line, format_value, report, table
from ._targets import list_positions, place_of
from ._typer import App

if TYPE_CHECKING:
    from ..state.inspection import FoundCheckpoint, Report

app = App(help="List, verify and prune the checkpoints of a directory.", no_args_is_help=True)

Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="What `lpma ingest --checkpoint` was given.")
]


@app.command("ls")
@failing_in_one_line
def ls(directory: Directory, as_json: JsonOption = False) -> None:
    """List the checkpoints, and the past views that can be had: a quick look at manifests and
    sizes, not at every byte. Those that are kept for past views were verified once.

    Safe while a pipeline writes there."""
    from ..past.reach import described, reachable
    from ..state.inspection import find_checkpoints, segment_sizes

    rows = [_facts(found) for found in find_checkpoints(directory, every_byte=False)]
    segments, past = segment_sizes(directory), reachable(directory)
    if as_json:
        journal = [{"segment": number, "bytes": size} for number, size in segments.items()]
        facts = {"checkpoints": rows, "journal": journal, "past": list(map(asdict, past))}
        emit({"directory": str(directory), **facts})
        return
    _list(rows)
    for accepted in rows[-1].get("accepted", []):
        print(f"given up: {_format_accepted(accepted)}")
    print(f"journal: {size_of(sum(segments.values()))} in {len(segments)} segments")
    print(f"past views, if the log holds the records: {described(past)}")


def _facts(found: FoundCheckpoint) -> dict[str, Any]:
    facts: dict[str, Any] = {"number": found.number}
    checkpoint = found.checkpoint
    if checkpoint is not None:
        facts |= {
            "time": checkpoint.time,
            "age_seconds": round(_age_seconds(checkpoint.time), 3),
            "bytes": checkpoint.nbytes,
            "operations": checkpoint.state.operations,
            "version": checkpoint.state.version,
            "stamp": checkpoint.state.stamp,
            "verified": checkpoint.is_verified,
            "positions": list_positions(checkpoint.state),
            "accepted": [asdict(accepted) for accepted in checkpoint.state.accepted],
        }
    return {**facts, "good": found.problem is None, "problem": found.problem}


def _list(rows: list[dict[str, Any]]) -> None:
    from ..past.reach import moment

    lines = []
    for row in rows:
        age, size = row.get("age_seconds"), row.get("bytes")
        offsets = [f"{p['topic']}/{p['partition']} {place_of(p)}" for p in row.get("positions", [])]
        lines.append(
            [
                str(row["number"]),
                "–" if age is None else format_age(age),
                "–" if size is None else size_of(size),
                format_value(row.get("operations")),
                format_value(row.get("version")),
                moment(row["stamp"]) if "stamp" in row else "–",
                format_value(row.get("verified")),
                ", ".join(offsets) or "–",
                "yes" if row["good"] else row["problem"],
            ]
        )
    header = "checkpoint age size operations version stream_time verified offsets good"
    table([name.replace("_", " ") for name in header.split()], lines)


def _age_seconds(time_ms: int) -> float:
    return time.time() - time_ms / 1000


def format_age(seconds: float) -> str:
    """An age as people say it, as "3.5 h"."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


@app.command("verify")
@failing_in_one_line
def verify(directory: Directory, as_json: JsonOption = False) -> None:
    """Read every byte of the checkpoints and of the journal, and say what a resume would do.

    Exit status 1, after the report, if anything is damaged or missing, and so whenever the
    directory would make a resume fail; only the resume can tell whether the log still holds the
    records. What a crash tore off the journal's end is not damage. Safe while a pipeline writes
    there."""
    from ..errors import CheckpointError
    from ..state.inspection import segment_sizes, verify_directory

    found = verify_directory(directory)
    rows = _report_rows(found)
    if not found.good:
        rows["journal"] = (
            f"{len(segment_sizes(directory))} segments, unread for want of a checkpoint"
        )
    if not as_json:
        _list([_facts(each) for each in found.checkpoints])
    report(as_json, _document(directory, found), str(directory), rows)
    if found.resume is None:
        bad = [f"checkpoint {c.number}: {c.problem}" for c in found.checkpoints if c.problem]
        raise CheckpointError(f"a resume is refused: {'; '.join([*bad, str(found.refusal)])}")
    if found.problems:
        used = found.resume.checkpoint
        raise CheckpointError(
            f"{directory}: {'; '.join(found.problems)} (a resume uses checkpoint {used})"
        )


def _report_rows(found: Report) -> dict[str, Any]:
    resume = found.resume
    segments = found.segments
    torn = segments[-1].torn if segments else 0
    rows: dict[str, Any] = {"a resume uses": "none: it is refused"}
    if resume is not None:
        first, last = resume.segments[0], resume.segments[-1]
        journal = f"journal {first}" if first == last else f"journal {first} … {last}"
        rows["a resume uses"] = f"checkpoint {resume.checkpoint} and {journal}"
        rows["it applies again"] = f"{format_value(resume.operations)} operations"
    rows["journal"] = f"{len(segments)} segments" + (
        f", {torn} bytes torn off its end by a crash" if torn else ""
    )
    for segment in segments:
        if segment.problem:
            rows[f"journal {segment.number}"] = segment.problem
    if found.good and (accepted := found.good[-1].state.accepted):
        rows["given up before"] = "; ".join(_format_accepted(asdict(one)) for one in accepted)
    return rows


def _format_accepted(accepted: dict[str, Any]) -> str:
    """A loss that whoever runs the pipeline accepted: what, when, how much."""
    detail = ", ".join(
        f"{name} {format_value(value)}" for name, value in accepted["detail"].items()
    )
    age = format_age(_age_seconds(accepted["time"]))
    return f"{accepted['kind']} ({detail}), {age} ago"


def _document(directory: Path, found: Report) -> dict[str, Any]:
    resume = found.resume
    return {
        "directory": str(directory),
        "good": not found.problems,
        "used": None if resume is None else resume.checkpoint,
        "used_segments": None if resume is None else resume.segments,
        "replayed_operations": None if resume is None else resume.operations,
        "refusal": found.refusal,
        "checkpoints": [_facts(each) for each in found.checkpoints],
        "journal": [
            {"segment": s.number, "bytes": s.size, "torn_bytes": s.torn,
             "good": s.problem is None, "problem": s.problem} for s in found.segments
        ],
    }  # fmt: skip


@app.command("prune")
@failing_in_one_line
def prune(
    directory: Directory,
    keep: Annotated[int, typer.Option(min=1, help="Good checkpoints to keep.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Remove all but the newest good checkpoints, and the journal that they do not need.

    Refuses if a pipeline writes there, if no checkpoint is good, or if the newest is not and the
    journal since the one before it is damaged too."""
    from ..state import inspection

    gone, kept, found = inspection.prune(directory, keep)
    document = {"directory": str(directory), "removed": gone, "kept": kept,
                "refusal": found.refusal}  # fmt: skip
    rows = {"removed": _numbered(gone), "kept": _numbered(kept)}
    if found.refusal:
        rows["a resume is refused"] = found.refusal
    report(as_json, document, f"pruned {directory}", rows)


def _numbered(numbers: list[int]) -> str:
    """Which checkpoints, so that a number is not taken for a count."""
    return ", ".join(f"checkpoint {number}" for number in numbers) or "none"
