"""Refuses a place for results that this command writes or reads otherwise: `--results-file`,
`--results-topic`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..types import DEAD_LETTERS, REPLIES

if TYPE_CHECKING:
    from ._ingest_options import CheckpointOptions, EndpointOptions, StreamOptions

FILE, TOPIC = "--results-file", "--results-topic"
_BESIDE_A_LOG = ("-wal", "-shm", "-journal")  # what SQLite keeps there


def check_results_place(
    options: StreamOptions,
    checkpointing: CheckpointOptions,
    endpoints: EndpointOptions,
    source: Path | None,
) -> None:
    """Raise typer.BadParameter if results would go to a file or topic that has another use here,
    SourceError if the file can hold none."""
    file, topic = endpoints.results_file, endpoints.results_topic
    if topic is not None:
        if file is not None:
            raise typer.BadParameter("a topic or a file, not both", param_hint=FILE)
        _check_topic(topic, endpoints)
    if file is None:
        return
    for use, path in _used(options, checkpointing, endpoints, source):
        if _same(file, path):
            raise typer.BadParameter(f"{file} is {use}: name another file", param_hint=FILE)
    checkpoint = checkpointing.checkpoint
    if checkpoint is not None and _real(checkpoint) in (_real(file), *_real(file).parents):
        raise typer.BadParameter(
            f"{file} lies in the directory of --checkpoint: name a file elsewhere", param_hint=FILE
        )
    from ..results.sinks import check_holds_results

    check_holds_results(file)


def _check_topic(topic: str, endpoints: EndpointOptions) -> None:
    """The topics that are read are looked at when all outputs are."""
    if topic in (endpoints.reply_topics or (REPLIES,)):
        use = "replies"
    elif topic == (endpoints.dead_letter_topic or DEAD_LETTERS):
        use = "dead letters"
    else:
        return
    raise typer.BadParameter(f"{topic} is the topic of {use}: name another one", param_hint=TOPIC)


def _used(
    options: StreamOptions,
    checkpointing: CheckpointOptions,
    endpoints: EndpointOptions,
    source: Path | None,
) -> Iterator[tuple[str, Path]]:
    """What the command writes and reads besides, and where."""
    if source is not None:
        yield "what is read", source
        for suffix in _BESIDE_A_LOG:
            yield "a part of the log that is read", Path(f"{_real(source)}{suffix}")
    for name, path in (
        ("--save", options.save),
        ("outputs.statistics", options.statistics),
        ("--from-store", checkpointing.from_store),
        ("--kafka-config", endpoints.kafka_config),
    ):
        if path is not None:
            yield f"the file of {name}", path


def _same(one: Path, other: Path) -> bool:
    """Whether these are one file, also by a link, or would be."""
    if one.exists() and other.exists():
        return os.path.samefile(one, other)
    return _real(one) == _real(other)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
