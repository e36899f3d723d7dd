"""What the tests of clusters begin with: a sharded log, each engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest import SqliteLog
from ingest.cluster.partitioned import create_sharded


@pytest.fixture(params=["local", pytest.param("ray", marks=pytest.mark.ray)])
def engine(request: pytest.FixtureRequest) -> str:
    """Every engine: one test body for all."""
    name: str = request.param
    if name == "ray":
        request.getfixturevalue("ray_cluster")
    return name


@pytest.fixture
def sharded_log(tmp_path: Path) -> Iterator[SqliteLog]:
    """A log with sharded topics of four partitions."""
    with SqliteLog(tmp_path / "log") as log:
        create_sharded(log, "updates", 4)
        yield log
