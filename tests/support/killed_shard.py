"""A shard, as a process that may be killed runs it: it writes every epoch that it closes to a file,
whole or not at all, before it reads on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np

from ingest.cluster import epoch_log
from ingest.cluster.epoch_log import Taken
from ingest.cluster.shard import Shard
from ingest.cluster.spec import ShardSpec
from tests.support.waiting import HANGS_S


def run_until_closed(spec: ShardSpec, last: int, directory: Path) -> None:
    """Run the shard until it has closed the epoch `last`, and close it. What it holds of epochs is
    in `directory`/epoch-E-I.npz, where I is its incarnation."""
    epoch_log.KEPT = 1000  # one of two pipelines may be far ahead
    shard = Shard(spec)
    with shard:
        _write_each(shard, directory)
        shard.start()
        assert shard.closed(last, HANGS_S) is not None, shard.status().problem


def _write_each(shard: Shard, directory: Path) -> None:
    book = shard._epoch_log
    ended = book.ended

    def written(direction: str, floor: int, closed: Future[Taken] | None) -> None:
        with book._changed:  # or the other pipeline might close one that nobody expects yet
            ended(direction, floor, closed)
            for epoch in book.held():
                _write(directory, shard, epoch)
                book.forget(epoch)
                book.expect(epoch + 1, or_later=True)

    book.ended = written  # type: ignore[method-assign]
    book.expect(0, or_later=True)


def _write(directory: Path, shard: Shard, epoch: int) -> None:
    part = shard.worker(epoch).part
    parts = dict(_arrays("out", part))
    if part.in_part is not None:
        parts |= _arrays("in", part.in_part)
    incarnation = shard.status().incarnation
    temporary = directory / f".{epoch}-{incarnation}.npz"
    np.savez(temporary, **parts)
    os.replace(temporary, directory / f"epoch-{epoch}-{incarnation}.npz")


def _arrays(way: str, part: Any) -> Iterator[tuple[str, Any]]:
    for name in ("indptr", "indices", "weights"):
        yield f"{way}_{name}", getattr(part, name)
