"""A cluster is one graph: at every epoch, whatever dies, on every engine."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import algorithms
import ingest
import lpma
from ingest import Ask, Cluster, ClusterError, PartitionedSink, SqliteLog, encode_updates
from ingest.cluster.partitioned import create_sharded
from lpma import Batch, Kind
from tests.support.cluster_driver import Driver
from tests.support.serving import every_query, ids_of
from tests.support.stream_model import same_answer

SETTINGS: dict[str, Any] = {"batch_interval": 0.01, "checkpoint_interval": 0.5}
VERTICES = 40
ANSWERED_S = 20.0  # after a kill; two cores start four processes


@contextmanager
def shards_of(log: SqliteLog, directory: Path, engine: str, shards: int, **options: Any) -> Any:
    with Cluster(log, shards, engine, checkpoint=directory / "state", **SETTINGS, **options) as c:
        yield c


class Written:
    """Writes random updates to a sharded topic, and to one graph beside it."""

    def __init__(self, log: SqliteLog, seed: int, **kind: Any) -> None:
        self.directed = kind.get("directed", True)
        self.sink = PartitionedSink(log, **kind)
        self.graph = lpma.Graph(
            device="cpu", directed=self.directed, predecessors=self.directed, names=kind.get("names", False)
        )
        self._named = kind.get("names", False)
        self._rng = np.random.default_rng(seed)

    def write(self, count: int, kinds: tuple[Kind, ...] = (Kind.APPEND, Kind.REMOVE)) -> None:
        chosen = self._rng.choice([int(kind) for kind in kinds], count)
        src, dst = self._rng.integers(0, VERTICES, (2, count))
        times = np.arange(count) + 1
        for kind, u, v, t in zip(chosen.tolist(), src.tolist(), dst.tolist(), times.tolist(), strict=True):
            pass
        data = encode_updates(src, dst, kind=chosen.astype(np.uint8), time=times)
        self.sink.produce_many("updates", [data])
        self.graph.apply(ingest.decode(data))


def edges_of(snapshot: Any) -> dict[tuple[int, int], tuple[float, int]]:
    """(u, v) → (weight, time), of a Snapshot."""
    s = snapshot.to_numpy()
    src = np.repeat(np.arange(len(s["indptr"]) - 1), np.diff(s["indptr"]))
    return {
        (u, v): (w, t)
        for u, v, w, t in zip(
            src.tolist(), s["indices"].tolist(), s["weights"].tolist(), s["times"].tolist(), strict=True
        )
    }
