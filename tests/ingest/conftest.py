"""What several tests of streams begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest import SqliteLog


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteLog]:
    """An embedded log with a topic of updates."""
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        yield log
