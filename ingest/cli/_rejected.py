"""What commands say of records that were rejected, and when they end a command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..errors import AllRecordsBad
from ..types import DEAD_LETTERS
from ._console import Screen, format_counts, in_options
from ._origin import GO_ON, Origin
from ._targets import TargetError

if TYPE_CHECKING:
    from ..formats.replies import DeadLetter
    from ..pipeline.outputs import Outputs
    from ..pipeline.pipeline import Pipeline
    from ..settings import RecordSettings
    from ..sources.base import Source

MOST_FIELDS = 8  # of a record, that are named
MOST_BYTES = 60  # of a record, that are shown
FIRST_REASONS = 3  # told of a stream that stops for them


def tell_rejected(pipeline: Pipeline, origin: Origin, screen: Screen, *, fails: bool) -> None:
    """Say on the screen what of a log could not be applied. fails: end the command instead, if the
    whole log was read and nothing of it was applied.

    Raises TargetError. The pipeline is closed before, with its last checkpoint: the dead letters
    have been written, and another try would write them again."""
    said = rejected_words(pipeline.outputs)
    if said is None:
        return
    said += f"; see topic {letter_topic(pipeline)}"
    if not fails or pipeline.stats.operations or not pipeline.intake.at_end():
        screen.say(said)
        return
    pipeline.close()
    hint = _hint(pipeline.outputs, pipeline.settings, ", and begin a new checkpoint")
    raise TargetError(f"{origin}: nothing was applied: {said}{hint}")


def check_applied(
    source: Source, outputs: Outputs, operations: int, origin: Origin, settings: RecordSettings
) -> None:
    """As `tell_rejected` ends a command, for a dry run that brought the stream to so many
    operations."""
    said = rejected_words(outputs)
    if said is not None and not operations and source.at_end():
        raise TargetError(f"{origin}: nothing would be applied: {said}{_hint(outputs, settings)}")


@contextmanager
def explaining_bad(origin: Origin, outputs: Outputs, settings: RecordSettings) -> Iterator[None]:
    """Within, a new stream of bad records alone, or one none of whose records has a field that is
    named, ends the command with why."""
    try:
        yield
    except AllRecordsBad as error:
        if error.absent:
            why = f"nothing was applied: {error.absent}"
            raise TargetError(f"{origin}: {why}. {GO_ON}") from error
        said = rejected_words(outputs, reasons=FIRST_REASONS)
        raise TargetError(
            f"{origin}: nothing was applied: {said}{_hint(outputs, settings)}. {GO_ON}"
        ) from error


def _hint(outputs: Outputs, settings: RecordSettings, more: str = "") -> str:
    """What may help to read the records that were rejected."""
    fields = next((found for letter in _bad(outputs) if (found := _json_fields(letter))), ())
    if fields and settings.records == "msgpack":
        return (
            f". This looks like JSON with {', '.join(fields)}: say which field is what, as "
            f"--source {fields[0]} --target {fields[:2][-1]}{more}"
        )
    if not outputs.rejected_by["invalid"] or settings.names:
        return ""
    return f". If its vertices go by names, give --names{more}"


def _json_fields(letter: DeadLetter) -> list[str]:
    """The fields of a record that is an object of JSON, as dotted paths where it nests."""
    try:
        found = json.loads(letter.value) if letter.value.lstrip()[:1] == b"{" else None
        return list(islice(_paths(found), MOST_FIELDS)) if isinstance(found, dict) else []
    except (ValueError, RecursionError):
        return []


def _paths(found: dict[str, Any], above: str = "") -> Iterator[str]:
    for name, value in found.items():
        if isinstance(value, dict) and value:
            yield from _paths(value, f"{above}{name}.")
        else:
            yield f"{above}{name}"


def letter_topic(pipeline: Pipeline) -> str:
    """The topic of dead letters."""
    to = pipeline.settings.dead_letters
    return to[1] if isinstance(to, tuple) else DEAD_LETTERS


def rejected_words(outputs: Outputs, reasons: int = 1) -> str | None:
    """How many records were rejected, by kind, and the first of those that are known, with so many
    reasons. None if there were none but late ones: these are no bad records."""
    kept = _bad(outputs)
    if (said := _counted(outputs)) is None or not kept:
        return said
    first: dict[str, DeadLetter] = {}
    for letter in kept:
        first.setdefault(letter.reason, letter)
    which = "the first" if len(outputs.kept) == outputs.rejected else "one of them"
    shown = [_shown(letter) for letter in list(first.values())[:reasons]]
    return f"{said}, {which} at {'; '.join(shown)}"


def newest_rejected(outputs: Outputs) -> str | None:
    """The same with the newest of them, while a stream goes on."""
    kept = _bad(outputs)
    if (said := _counted(outputs)) is None or not kept:
        return said
    alone = "; nothing else came so far" if outputs.held else ""
    return f"{said}, the newest at {_shown(kept[-1])}{alone}"


def _bad(outputs: Outputs) -> list[DeadLetter]:
    """Those that are known, in their order; late ones are no bad records."""
    return [letter for letter in outputs.kept if letter.kind != "late"]


def _counted(outputs: Outputs) -> str | None:
    reasons = {kind: count for kind, count in outputs.rejected_by.items() if kind != "late"}
    if not (count := sum(reasons.values())):
        return None
    return f"rejected {count:,} {'record' if count == 1 else 'records'} ({format_counts(reasons)})"


def _shown(letter: DeadLetter) -> str:
    """Where it was, why it is bad, and how it begins, if it is text."""
    reason = in_options(" ".join(letter.reason.split())).rstrip(".")
    said = f"{letter.topic}/{letter.partition} {letter.offset}: {reason}"
    begins = letter.value[:MOST_BYTES].decode("utf-8", "ignore")
    return f"{said}: {begins!r}" if begins.isprintable() and begins.strip() else said
