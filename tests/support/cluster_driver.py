"""A driver of a cluster in a process of its own, to be killed: it takes epochs, and tells of them.

    python -m tests.support.cluster_driver LOG CHECKPOINT ENGINE SHARDS PATIENCE_S

Each line that it prints is a JSON object: an epoch's number, its edges, the shards' processes. The
first comes when all shards run. Numbers of epochs are ms since 1970.
It ends when its standard input does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Self

import ingest
from ingest.cluster.engine import try_all
from tests.support.waiting import HANGS_S, wait_for

ROOT = Path(__file__).parents[2]


class Driver:
    """Such a process, as a test has it."""

    def __init__(
        self,
        log: str,
        checkpoint: Path,
        engine: str,
        shards: int,
        patience_s: float = HANGS_S,
        **env: str,
    ) -> None:
        words = [log, os.fspath(checkpoint), engine, str(shards), str(patience_s)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, *words],
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

    def until(self, edges: int) -> None:
        """Read on to an epoch with so many edges."""
        wait_for(lambda: self.next()["edges"] == edges, f"an epoch with {edges} edges")

    def next_from(self, time_ms: int) -> dict[str, Any]:
        """The next line of an epoch begun at that time or later."""
        while (found := self.next())["epoch"] < time_ms:
            pass
        return found

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.communicate()

    def failed(self) -> None:
        """Wait until it ends because Ray is gone."""
        while "error" not in (found := self.next()):
            pass
        assert found["error"] == "EngineLost"
        assert self._process.wait(HANGS_S) == 1

    def close(self) -> None:
        """Let it close its cluster, and end."""
        self._process.communicate(timeout=HANGS_S)
        assert self._process.returncode == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.communicate()


def main(log: str, checkpoint: str, engine: str, shards: str, patience_s: str) -> None:
    """Take epochs until standard input ends."""
    ended = threading.Event()

    def watch() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    with ingest.Cluster(log, int(shards), engine, checkpoint=checkpoint) as cluster:
        while not ended.is_set():
            epoch = cluster.epoch(float(patience_s))
            hosts = try_all(cluster._handles, "status")  # one may have died since
            pids = [host.pid for host in hosts if not isinstance(host, Exception)]
            said = {"epoch": epoch.number, "edges": epoch.num_entries, "pids": pids}
            print(json.dumps(said), flush=True)
            ended.wait(0.05)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ingest.ClusterError as problem:  # Ray's own hook would ask a head that may be gone
        print(json.dumps({"error": type(problem).__name__, "told": str(problem)}), flush=True)
        sys.exit(1)
