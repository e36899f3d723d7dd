"""A cluster without shards, for the command line's own tests: it answers at once, from a table."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import algorithms
import lpma
from ingest.cluster.coordinator import Epoch
from ingest.errors import ClusterError
from ingest.types import Closing
from tests.support.waiting import HANGS_S

SRC, DST = [0, 0, 1, 2, 5], [1, 2, 2, 0, 5]


class Whole:
    """A graph that stands for a sharded snapshot of it."""

    def __init__(self) -> None:
        graph = lpma.Graph(device="cpu", directed=False)
        graph.insert(SRC, DST)
        self.graph = graph.snapshot()
        self.epoch, self.time, self.versions = 1_700_000_000_500, 1_700_000_000_000, (3, 4)
        self.num_rows, self.num_edges = self.graph.num_rows, self.graph.num_edges
        self.directed, self.names = False, None

    @property
    def present(self) -> Any:
        return np.isin(np.arange(self.num_rows), [0, 1, 2, 5])

    def degrees(self) -> Any:
        return np.diff(self.graph.indptr)

    def gather(self) -> lpma.Snapshot:
        return self.graph

    def write_parquet(self, directory: str) -> None:
        Path(directory).mkdir()
        (Path(directory) / "manifest.json").write_text("{}")


class Plain:
    """The algorithms of a whole snapshot, for one that stands for it."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda s, *given, **named: getattr(algorithms, name)(s.graph, *given, **named)


class Dropping:
    """Sends its process a signal in its finalizer, from which nothing is raised."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


class StandIn(Closing):
    """problems: what its status says. made: what it was made with, by the newest one."""

    problems: tuple[str, ...] = ()
    made: dict[str, Any]
    open = 0
    views: ClassVar[list[dict[str, int]]] = []  # what was asked of `run`

    def __init__(self, source: str, shards: int, **given: Any) -> None:
        if source == "refused":
            raise ClusterError("it is in the way", 1)
        if source == "slow":
            Path("slow").touch()  # in the test's folder: a signal meets this sleep from now on
            time.sleep(HANGS_S)
        if source == "dropping":
            Dropping()
        type(self).made = {"source": source, "shards": shards, **given}
        type(self).open += 1
        self._shards = shards

    def status(self) -> Any:
        own = {
            "operations": 10, "edges": 4, "lag": 1, "version": 3, "epoch": 1_700_000_000_500,
            "checkpoint_time": None, "device": "cpu", "problem": "not kept: the bucket is away",
        }  # fmt: skip
        views = [
            {"number": i, "state": "running", "restarts": i, "problem": None, "status": own}
            for i in range(self._shards)
        ]
        if self.problems:
            views[-1] |= {"state": "unreachable", "status": None, "problem": "gone"}
        found = {"shards": views, "epoch": {"number": 1_700_000_000_500},
                 "problems": self.problems, "restarts": 1}  # fmt: skip
        return type("Status", (), {
            "problems": self.problems, "to_json": staticmethod(lambda: json.dumps(found)),
        })  # fmt: skip

    def epoch(self, timeout_s: float) -> Epoch:
        if timeout_s < 1:
            raise ClusterError("has not closed epoch 5 in time", 1)
        return Epoch(1_700_000_000_500, 1_700_000_000_000, (3, 4), (2, 3))

    def run(self, work: Callable[[Any], Any], timeout_s: float, **view: int) -> Any:
        type(self).views.append(view)
        return work(Whole())

    def check(self) -> None:
        """It is never lost."""

    def close(self) -> None:
        type(self).open -= 1
