"""A shard in a hundred lines: it reads its partition of an embedded log from the beginning at each
start, keeps the edges in a dict, and goes wrong on demand.

`settings` of its specification say how: "trouble", a file whose content is what happens: "start"
and it cannot be started, "hang" and its status never comes, "deaf" and it closes no epoch.
"""

from __future__ import annotations

import secrets
import threading
import time
from pathlib import Path
from typing import Any

import lpma
from ingest import Partition, SqliteLog, decode_record
from ingest.cluster.spec import EpochClosed, ShardSpec, ShardState, ShardStatus
from ingest.formats.markers import marker_of
from ingest.timers import now_ms


class StandInShard:
    """What `ingest.cluster.shard.Shard` promises, of one partition."""

    def __init__(self, spec: ShardSpec) -> None:
        self._spec = spec
        self._edges: dict[tuple[int, int], None] = {}
        self._held: dict[int, tuple[EpochClosed, Any]] = {}
        self._expected: set[int] = set()
        self._state: ShardState = "starting"
        self._problem: str | None = None
        self._incarnation = secrets.token_hex(8)
        self._highest = 0
        self._floor = now_ms()  # no epoch begun before this start is closed
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        if self._trouble() == "start":
            raise OSError("there is trouble at the start")
        self._thread.start()

    def _trouble(self) -> str:
        path = Path(self._spec.settings.get("trouble", "/none"))
        return path.read_text() if path.is_file() else ""

    def _run(self) -> None:
        self._state = "running"
        place = Partition(self._spec.topic, self._spec.number)
        with SqliteLog(self._spec.source, (self._spec.topic,)) as log:
            while self._state == "running":
                polled = log.poll_one(place, 500)
                for record in polled:
                    self._apply(record.value)
                if not polled:
                    time.sleep(0.005)

    def _apply(self, value: Any) -> None:
        epoch = marker_of(value)
        if epoch is None:
            batch = decode_record(value).batch
            self._edges |= dict.fromkeys(zip(batch.src.tolist(), batch.dst.tolist(), strict=True))
            return
        with self._changed:
            self._highest = epoch
            if epoch > self._floor and self._trouble() != "deaf":
                graph = lpma.Graph(device="cpu")
                for u, v in self._edges:
                    graph.insert(u, v)
                number = len(self._edges)
                self._held[epoch] = (
                    EpochClosed(epoch, number, epoch, number, True),
                    graph.snapshot(),
                )
            self._changed.notify_all()

    def close(self) -> None:
        self.kill()
        self._state = "stopped"

    def kill(self) -> None:
        self._state, self._problem = "failed", "it was killed"

    def status(self) -> ShardStatus:
        while self._trouble() == "hang":
            time.sleep(0.05)
        spec = self._spec
        return ShardStatus(
            spec.number, spec.shards, self._state, self._problem, self._incarnation, spec.device,
            edges=len(self._edges), version=len(self._edges), highest_epoch=self._highest,
        )  # fmt: skip

    def expect(self, epoch: int, or_later: bool = False) -> None:
        assert not or_later
        self._expected.add(epoch)

    def closed(self, epoch: int, timeout_s: float, or_later: bool = False) -> EpochClosed | None:
        with self._changed:
            self._changed.wait_for(lambda: epoch in self._held, timeout_s)
        return self._held[epoch][0] if epoch in self._held else None

    def worker(self, epoch: int) -> Any:
        _, snapshot = self._held[epoch]
        from algorithms.sharded import Part, Worker

        return Worker(Part.of(snapshot, self._spec.number, self._spec.shards))

    def forget(self, epoch: int) -> None:
        self._held.pop(epoch, None)
