"""What a cluster that runs does when another process asks it: called by name, from the control
socket's threads. They return plain values; see `_ask.py` for who prints them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import IngestError

if TYPE_CHECKING:
    from ...cluster.cluster import Cluster


class Actions:
    """cluster: None until all shards run; then everything but `status` is refused."""

    def __init__(self, source: str, checkpoint: Path) -> None:
        self.cluster: Cluster | None = None
        self._place = {"source": source, "checkpoint": str(checkpoint.absolute())}
        self._started = time.monotonic()

    def by_name(self) -> dict[str, Callable[..., Any]]:
        return {
            "status": self.status,
            "epoch": self.epoch,
            "run-algorithm": self.run_algorithm,
            "snapshot": self.snapshot,
        }

    def _running(self) -> Cluster:
        if self.cluster is None:
            raise IngestError("the cluster is starting: not every shard runs yet, ask again")
        return self.cluster

    def status(self) -> dict[str, Any]:
        """The shards and what is wrong with them."""
        facts = {
            **self._place,
            "pid": os.getpid(),
            "seconds": round(time.monotonic() - self._started, 1),
            "time": time.time_ns() // 1_000_000,
        }
        if self.cluster is None:
            return {**facts, "state": "starting", "shards": [], "epoch": None, "problems": [],
                    "engine_problem": None}  # fmt: skip
        status: dict[str, Any] = json.loads(self.cluster.status().to_json())
        return {**facts, "state": "running", **status}

    def epoch(self, timeout_s: float) -> dict[str, Any]:
        """A new epoch."""
        started = time.perf_counter()
        epoch = self._running().epoch(timeout_s)
        return {**asdict(epoch), "seconds": round(time.perf_counter() - started, 4)}

    def run_algorithm(
        self, algorithm: str, given: dict[str, Any], top: int, out: str | None, timeout_s: float,
        view: dict[str, int],
    ) -> dict[str, Any]:  # fmt: skip
        """Run an algorithm on a new epoch's snapshot, or on a view in time of it; the values go to
        the file `out`."""
        from ...analyses.of_shards import ANALYSES, vertices_of
        from ..run import _result_files

        started = time.perf_counter()

        def work(s: Any) -> dict[str, Any]:
            found = ANALYSES[algorithm](s, vertices := vertices_of(s), **given)
            if out is not None:
                _result_files.write(out, found.columns)
            return {
                "algorithm": algorithm,
                **given,
                **_facts(s),
                "vertices": len(vertices.ids),
                **found.summary,
                "value": found.value,
                "top": found.top(top),
                "out": out,
            }

        document = self._running().run(work, timeout_s, **view)
        return {**document, "seconds": round(time.perf_counter() - started, 4)}

    def snapshot(self, target: str, timeout_s: float, view: dict[str, int]) -> dict[str, Any]:
        """Write a new epoch's snapshot, or a view in time of it: a folder of Parquet, a file a
        shard, or one file."""
        from ..export import write_snapshot

        started = time.perf_counter()

        def work(s: Any) -> dict[str, Any]:
            if suffix := Path(target).suffix:
                if suffix == ".mtx" and s.names is not None:
                    raise IngestError("Matrix Market has no place for names: take another format")
                write_snapshot(s.gather(), Path(target), suffix.removeprefix("."))
            else:
                s.write_parquet(target)
            return {"path": target, **_facts(s)}

        document = self._running().run(work, timeout_s, **view)
        return {**document, "seconds": round(time.perf_counter() - started, 4)}


def _facts(s: Any) -> dict[str, Any]:
    return {
        "epoch": s.epoch,
        "time": s.time,
        "versions": list(s.versions),
        "rows": s.num_rows,
        "edges": s.num_edges,
        "directed": s.directed,
    }
