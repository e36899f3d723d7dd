"""What the tests of clusters begin with: a sharded log, a Ray for all of them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ingest import SqliteLog
from ingest.cluster.partitioned import create_sharded
from tests.conftest import missing

ROOT = Path(__file__).parents[3]
STORE_BYTES = 150 << 20


@pytest.fixture(scope="session")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module `ray`, connected to a Ray that was started for the tests, of one node. Actors that
    a test leaves are its own to end."""
    if find_spec("ray") is None:
        missing("ray", "Ray is not installed: pip install ray")
    token = tmp_path_factory.mktemp("ray") / "token"  # or Ray would write one into the home folder
    token.write_text(secrets.token_hex(32))
    os.environ["RAY_AUTH_TOKEN_PATH"] = os.fspath(token)
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    import ray

    try:
        ray.init(
            "local", num_cpus=8, include_dashboard=False, object_store_memory=STORE_BYTES,
            log_to_driver=False, namespace="lpma",
            runtime_env={"env_vars": {"PYTHONPATH": os.fspath(ROOT)}},
        )  # fmt: skip
    except (OSError, RuntimeError, ConnectionError) as error:
        missing("ray", f"Ray does not start: {error}")
    yield ray
    ray.shutdown()


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
