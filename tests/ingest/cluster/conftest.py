"""What the tests of clusters begin with: a sharded log, each engine, a place for checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import lpma
from ingest import Pipeline, SqliteLog
from ingest.cluster.partitioned import create_sharded
from ingest.cluster.storage import Storage
from tests.ingest.cluster.keeping import OPTIONS, fill
from tests.support.object_store import ObjectStore


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


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore()


@pytest.fixture
def place(store: ObjectStore) -> Storage:
    return Storage(store.filesystem(), "bucket/kept")


@pytest.fixture
def stream(log: SqliteLog, tmp_path: Path) -> Iterator[Pipeline]:
    """A stream of which a part is read, with something buffered that is not applied."""
    fill(log, np.random.default_rng(3), 30)
    with Pipeline(log, lpma.Graph(device="cpu"), tmp_path / "state", **OPTIONS) as pipeline:
        yield pipeline
