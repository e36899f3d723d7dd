"""A shard whose process dies while it writes its file of an export, where a test says so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from algorithms.sharded.runtime import worker as worker_module
from ingest.cluster.shard import Shard
from ingest.cluster.spec import ShardSpec
from tests.support.kills import kill_this_process


def order_of(directory: Path, shard: int) -> Path:
    """The file that says when a shard dies next: "begun", before its Parquet file has its name, or
    "whole", before anybody is told of it."""
    return directory / f"shard-{shard}-dies"


def mortal_shard(directory: Path, spec: ShardSpec) -> Shard:
    """REQUIRES: its process has no other shard."""
    order = order_of(directory, spec.number)
    worker: Any = worker_module
    replace, described = os.replace, worker.described

    def dies(when: str) -> None:
        if order.exists() and order.read_text() == when:
            order.unlink()
            kill_this_process()

    def replaced(source: Any, target: Any) -> None:
        if Path(target).suffix == ".parquet":
            dies("begun")
        replace(source, target)

    def told(path: Path) -> dict[str, Any]:
        dies("whole")
        found: dict[str, Any] = described(path)
        return found

    os.replace, worker.described = replaced, told  # type: ignore[assignment]
    return Shard(spec)
