"""Where a new checkpoint begins: `--from-offsets`.

    from  := item ("," item)* | a JSON file: {topic: {partition: where} or where}
    item  := topic ":" partition "=" where | topic "=" where | where
    where := offset | "earliest" | "latest"

An item that names no partition counts for all of its topic, one that names no topic for all; an
offset needs a partition. A partition that no item is for begins at its earliest record.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import typer

from ..sources.base import Log
from ..types import Partition

HINT = "--from-offsets"
_ITEM = re.compile(r"(?:(?P<topic>[\w.-]+)(?::(?P<number>\d{1,9}))?=)?(?P<where>[^=:]+)", re.ASCII)

Starts = dict[tuple[str | None, int | None], str]  # (topic, partition): where, None: all


def read_starts(given: str) -> Starts:
    """What `given` says, or the file it names. Raises typer.BadParameter."""
    path = Path(given)
    if given.endswith(".json") or path.is_file():
        return _from_file(path)
    starts: Starts = {}
    for item in given.split(","):
        match = _ITEM.fullmatch(item.strip())
        if match is None:
            raise typer.BadParameter(
                f"{item!r}: expected TOPIC:PARTITION=OFFSET, earliest or latest", param_hint=HINT
            )
        number = match["number"]
        _add(starts, match["topic"], None if number is None else int(number), match["where"])
    return starts


def _from_file(path: Path) -> Starts:
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint=HINT) from None
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{path}: not JSON: {error}", param_hint=HINT) from None
    starts: Starts = {}
    for topic, places in content.items() if isinstance(content, dict) else [(None, None)]:
        for number, where in places.items() if isinstance(places, dict) else [(None, places)]:
            if topic is None or not re.fullmatch(r"\d{1,9}", number or "0", re.ASCII):
                raise typer.BadParameter(
                    f'{path}: expected {{"TOPIC": {{"PARTITION": OFFSET}}}}', param_hint=HINT
                )
            _add(starts, topic, None if number is None else int(number), str(where))
    return starts


def _add(starts: Starts, topic: str | None, number: int | None, where: str) -> None:
    place = "all" if topic is None else topic if number is None else f"{topic}:{number}"
    if (topic, number) in starts:
        raise typer.BadParameter(f"{place} is given twice", param_hint=HINT)
    if where not in ("earliest", "latest"):
        if not re.fullmatch(r"\d{1,18}", where, re.ASCII):
            raise typer.BadParameter(
                f"{place}: {where!r} is not an offset, earliest or latest", param_hint=HINT
            )
        if number is None:
            raise typer.BadParameter(
                f"{place}: an offset needs a partition, as TOPIC:0={where}", param_hint=HINT
            )
    starts[topic, number] = where


def positions(starts: Starts, log: Log) -> dict[Partition, int]:
    """Where to begin in a log that was just opened, and so stands at its earliest records. Raises
    typer.BadParameter on what it does not read, SourceError."""
    firsts = log.positions()
    for topic, number in starts:
        if not any(topic in (None, p.topic) and number in (None, p.number) for p in firsts):
            read = ", ".join(f"{p.topic}:{p.number}" for p in sorted(firsts))
            place = topic if number is None else f"{topic}:{number}"
            raise typer.BadParameter(f"{place} is not read; these are: {read}", param_hint=HINT)
    ends: dict[Partition, int] = log.end_offsets() if "latest" in starts.values() else {}
    found = {}
    for partition, first in firsts.items():
        places: Any = ((*partition,), (partition.topic, None), (None, None))
        where = next((starts[place] for place in places if place in starts), "earliest")
        known = {"earliest": first, "latest": ends.get(partition, first)}
        found[partition] = known[where] if where in known else int(where)
    return found
