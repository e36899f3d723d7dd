"""Killed wherever it is, a service loses nothing that it acknowledged, and what its clients send
again is applied once."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import ingest
from ingest import Pipeline, SqliteLog
from ingest.formats.kinds import WORDS
from lpma.batch.columns import Columns
from tests.conftest import soak
from tests.support.killed_service import POINTS, Origin, Service
from tests.support.kills import Place
from tests.support.stream_model import SavedModel, weighted

from .http import ask

CLIENTS = 3
VERTICES = 6  # of each client, which has them for itself: the others' order is no matter
GIVE_UP_S = 600.0  # only ends a hang


class Client:
    """Sends updates in a thread, each until it is acknowledged, wherever the service is."""

    def __init__(self, number: int, seed: int, where: Where) -> None:
        self.acknowledged: list[Columns] = []
        self.answers = 0  # refusals and broken connections left out
        self._rng = np.random.default_rng([seed, number])
        self._number = number
        self._where = where
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join(GIVE_UP_S)
        assert self.failure is None, self.failure

    def _work(self) -> None:
        try:
            while not self._where.ending.is_set():
                self._send(len(self.acknowledged), self._drawn())
        except BaseException as error:  # noqa: BLE001 - the test is told
            self.failure = error

    def _drawn(self) -> Columns:
        rows, low = int(self._rng.integers(1, 5)), VERTICES * self._number
        src, dst = low + self._rng.integers(0, VERTICES, (2, rows))
        weight = self._rng.integers(-8, 9, rows) / 4
        kind = self._rng.choice([0, 0, 0, 0, 1, 2, 3, 11, 11], rows)
        return Columns.validated(kind, src, dst, weight, None)

    def _send(self, seq: int, columns: Columns) -> None:
        source = f"client-{self._number}"
        path, body, kind = REQUESTS[int(self._rng.integers(len(REQUESTS)))](source, seq, columns)
        if self._rng.random() < 0.3:
            path += "&wait=applied" if "?" in path else "?wait=applied"
        until = time.monotonic() + GIVE_UP_S
        while True:
            assert time.monotonic() < until, "never acknowledged"
            try:
                answer = ask(self._where.url, "POST", path, body, {"Content-Type": kind}, 60.0)
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)
                continue
            if answer.status in (200, 202):
                break
            assert answer.status == 503, answer.body
            time.sleep(0.01)
        self.acknowledged.append(columns)


class Where:
    """Where the service is now, and whether the clients are to end."""

    def __init__(self) -> None:
        self.url = "http://127.0.0.1:9"
        self.ending = threading.Event()


def _as_json(source: str, seq: int, c: Columns) -> tuple[str, bytes, str]:
    import json

    body = {
        "src": c.src.tolist(), "dst": c.dst.tolist(), "weight": c.weight.tolist(),  # type: ignore[union-attr]
        "kind": [WORDS[kind] for kind in c.kind.tolist()], "source": source, "seq": seq,
    }  # fmt: skip
    return "/v1/updates", json.dumps(body).encode(), "application/json"


def _as_msgpack(source: str, seq: int, c: Columns) -> tuple[str, bytes, str]:
    body = ingest.encode_updates(c.src, c.dst, c.weight, None, c.kind, producer=source, seq=seq)
    return "/v1/updates", body, "application/msgpack"


def _as_arrow(source: str, seq: int, c: Columns) -> tuple[str, bytes, str]:
    columns = {"src": c.src, "dst": c.dst, "weight": c.weight, "kind": c.kind}
    table, sink = pyarrow.table(columns), pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    path = f"/v1/updates?source={source}&seq={seq}"
    return path, sink.getvalue().to_pybytes(), "application/vnd.apache.arrow.stream"


REQUESTS = (_as_json, _as_msgpack, _as_arrow)


def killed_and_resumed(
    origin: Origin, checkpoint: Path, places: Sequence[Place], seed: int = 0,
    count: int = CLIENTS, mutant: bool = False,
) -> list[Client]:  # fmt: skip
    """Clients that send while the service dies at each of these places, and is started again; in
    the end it goes on until all have what they sent acknowledged, and ends by itself."""
    where = Where()
    clients: list[Client] = []
    for place in [*places, None]:
        with Service(origin, checkpoint, place, mutant) as service:
            url = service.url()
            if url is not None:
                where.url = url
                clients = clients or [Client(i, seed, where) for i in range(count)]
            if place is not None:
                assert service.died(), f"{place} was never met"
                continue
            where.ending.set()
            for client in clients:
                client.join()
            service.end()
    return clients


def check(origin: Origin, checkpoint: Path, clients: list[Client]) -> None:
    """That the stream, resumed and read to its end, has what was acknowledged, once."""
    expected = SavedModel(predecessors=True)
    for client in clients:
        for columns in client.acknowledged:
            expected.apply(columns)
    source = origin.open()
    pipeline = Pipeline.resume(checkpoint, source, load=SavedModel.load)
    pipeline.run(until="end")
    graph: Any = pipeline.graph
    pipeline.close()
    source.close()
    assert weighted(graph) == weighted(expected), "an update was lost, or repeated"
    assert graph.markers == expected.markers
    assert pipeline.outputs.rejected == 0


def new_log(path: Path) -> Origin:
    with SqliteLog(path) as log:
        log.create_topic("updates")
    return Origin(str(path))


FEW = [
    Place("ingest.sources.sqlite.log:bounds_of", 4, after=True),
    Place("ingest.service.updates:JSONResponse", 3),
    Place("ingest.state.journal:Journal.append", 3, after=True),
    Place("ingest.state.directory:CheckpointDirectory.commit", 1, after=True),
]


def test_a_kill_loses_and_repeats_nothing(tmp_path: Path) -> None:
    origin, checkpoint = new_log(tmp_path / "log"), tmp_path / "state"
    clients = killed_and_resumed(origin, checkpoint, FEW)
    assert all(client.acknowledged for client in clients)
    check(origin, checkpoint, clients)


@pytest.mark.soak
@pytest.mark.integration
def test_a_kill_anywhere_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """28 kills, before and after each point; under `make soak` 560. The clients send until a place
    is met, whenever that is."""
    rng = np.random.default_rng(19)
    for number in range(soak(1, 20)):
        origin, checkpoint = new_log(tmp_path / f"log{number}"), tmp_path / f"state{number}"
        both = [(point, after) for point in POINTS for after in (False, True)]
        order = [both[i] for i in rng.permutation(len(both))]
        places = [Place(point, int(rng.integers(1, 6)), after) for point, after in order]
        clients = killed_and_resumed(origin, checkpoint, places, number)
        assert all(client.acknowledged for client in clients)
        check(origin, checkpoint, clients)


def test_an_acknowledgement_that_waits_for_nothing_is_noticed(tmp_path: Path) -> None:
    """The test of the test."""
    origin = new_log(tmp_path / "log")
    places = [Place("ingest:SqliteLog.produce_parts", 2)]
    clients = killed_and_resumed(origin, tmp_path / "state", places, count=1, mutant=True)
    with pytest.raises(AssertionError, match="was lost"):
        check(origin, tmp_path / "state", clients)
