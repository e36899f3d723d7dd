"""What the tests of faults share: a stream on the fault broker, a pipeline that reads it, and the
check that nothing was lost, repeated or misplaced."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest import DeadLetter, KafkaSource, Partition, Pipeline, Reply
from tests.support.fault_broker import FaultBroker
from tests.support.own_time import OwnTime
from tests.support.stream_model import SavedModel, random_records, same_answer, serial, weighted
from tests.support.waiting import HANGS_S

PROMISE_S = 10.0  # from a fault's end to the stream's end
PATIENCE_S = 30.0
UPDATES = Partition("updates", 0)


class Stream:
    """Records on a broker's topic "updates", and a pipeline over them with checkpoints."""

    def __init__(
        self, broker: FaultBroker, own_time: OwnTime, directory: Path, seed: int = 1
    ) -> None:
        self.broker = broker
        self.own_time = own_time
        self.directory = directory
        self.sent: list[bytes] = []
        self.replies: dict[str, list[Reply]] = {}
        self.letters: set[int] = set()  # offsets
        self._rng = np.random.default_rng(seed)
        self.settings: dict[str, Any] = {
            "batch_size": 25,
            "batch_interval": 0.02,
            "checkpoint_operations": 60,
            "replies": self._reply,
            "dead_letters": self._letter,
        }

    def _reply(self, reply: Reply) -> None:
        self.replies.setdefault(reply.id, []).append(reply)

    def _letter(self, letter: DeadLetter) -> None:
        assert letter.value == self.sent[letter.offset][: len(letter.value)]
        self.letters.add(letter.offset)

    def send(self, records: Sequence[bytes] | int) -> None:
        """Append these records, or so many random ones, in batches of a few."""
        if isinstance(records, int):
            records = random_records(self._rng, records, first=len(self.sent))
        at = 0
        while at < len(records):
            size = int(self._rng.integers(1, 8))
            self.broker.produce("updates", records[at : at + size])
            at += size
        self.sent += records

    def away(self, seconds: float, how: str) -> float:
        """For so long the broker is "stopped" or "silent"; when, on the stream's own time, that
        ends."""
        self.own_time.stop(how)
        self.own_time.after(seconds, self.own_time.start)
        return self.own_time.now() + seconds

    @contextmanager
    def reading(self, **source: Any) -> Iterator[Pipeline]:
        """A pipeline from the start, or from the directory's checkpoint, left without a last
        word, as by a kill."""
        options: dict[str, Any] = {"patience": PATIENCE_S, **source}
        with KafkaSource(self.broker.bootstrap, ["updates"], **options) as log:
            if self.directory.exists():
                pipeline = Pipeline.resume(
                    self.directory, log, load=SavedModel.load, **self.settings
                )
            else:
                model = SavedModel(predecessors=True)
                pipeline = Pipeline(log, model, self.directory, **self.settings)
            try:
                yield pipeline
            finally:
                pipeline.close(checkpoint=False)

    @contextmanager
    def read_to_end(self, **source: Any) -> Iterator[Pipeline]:
        """The same, with all applied that was sent so far."""
        with self.reading(**source) as pipeline:
            self.run_to_end(pipeline)
            yield pipeline

    def run_to_end(self, pipeline: Pipeline) -> float:
        """Step until all that was sent is applied; when that was, by the stream's own time."""
        deadline = time.monotonic() + HANGS_S
        while pipeline.positions()[UPDATES] != (len(self.sent), 0):
            assert time.monotonic() < deadline, f"stands at {pipeline.positions()}"
            pipeline.step()
        return self.own_time.now()

    def check(self, pipeline: Pipeline) -> None:
        """The graph, the replies and the dead letters are those of serial execution."""
        expected, answers, bad = serial(self.sent)
        assert weighted(pipeline.graph) == weighted(expected)
        assert pipeline.graph.markers == expected.markers  # type: ignore[attr-defined]
        assert self.letters == set(bad)
        assert self.replies.keys() == answers.keys()
        for id, repeats in self.replies.items():
            for reply in repeats:
                assert same_answer(reply.answer, answers[id]), id
                assert (reply.version, reply.time) == (repeats[0].version, repeats[0].time)

    def check_resumed(self) -> None:
        """What the directory and the journal say is the same state."""
        with self.read_to_end() as pipeline:
            self.check(pipeline)

    def check_refused(self, error: type[Exception], message: str) -> None:
        """No pipeline goes on from the directory: `error` with such a message says why."""
        with pytest.raises(error, match=message), self.reading():
            pass
