"""A driver of a cluster in a process of its own, to be killed: takes epochs and says what they hold.

    python -m tests.support.cluster_driver LOG CHECKPOINT ENGINE SHARDS

Each line that it prints is a JSON object: {"epoch": …, "edges": …}, the first when all shards run.
It ends when its standard input does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Self

import ingest

ROOT = Path(__file__).parents[2]


class Driver:
    """Such a process, as a test has it."""

    def __init__(self, log: str, checkpoint: Path, engine: str, shards: int, **env: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, log, os.fspath(checkpoint), engine, str(shards)],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": os.fspath(ROOT), **env}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def next(self) -> dict[str, Any]:
        """The next line. Fails if the process ends instead."""
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise AssertionError(f"the driver ended with {self._process.wait()}")

    def until(self, edges: int, limit_s: float = 60.0) -> float:
        """Read on to an epoch with so many edges; the seconds that it took."""
        began = time.monotonic()
        while self.next()["edges"] != edges:
            assert time.monotonic() - began < limit_s
        return time.monotonic() - began

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.communicate()

    def close(self) -> None:
        """Let it close its cluster, and end."""
        self._process.communicate(timeout=120)
        assert self._process.returncode == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.communicate()


def main(log: str, checkpoint: str, engine: str, shards: str) -> None:
    """Take epochs until standard input ends."""
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    with ingest.Cluster(log, int(shards), engine, checkpoint=checkpoint) as cluster:
        while not ended.is_set():
            epoch = cluster.epoch(60.0)
            print(json.dumps({"epoch": epoch.number, "edges": epoch.num_entries}), flush=True)
            time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
