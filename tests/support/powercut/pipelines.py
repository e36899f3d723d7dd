"""The pipeline under power cuts: its log elsewhere, and its log on the same disk.

Both run some batches, take checkpoints that are written while the stream goes on, are killed
without a word to the disk and resumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from threading import Event
from typing import Any

import ingest
from ingest import Partition, Pipeline, SqliteLog, has_checkpoint
from ingest.formats.replies import DeadLetter
from ingest.state import inspection
from ingest.state.journal import HEAD_BYTES, segment_numbers, segment_path
from ingest.types import Position, Reply
from lpma.file.atomic import Writable
from tests.support.stream_model import (
    SavedImage,
    SavedModel,
    check_outputs,
    same_answer,
    serial,
    weighted,
)

from .cases import Ticks, records, told
from .logs import ToldLog, check_partition, remade
from .trace import mark

COUNT = 44  # records
OPTIONS: dict[str, Any] = {
    "batch_size": 6,
    "batch_interval": 1e6,
    "query_interval": 1e6,  # batches close by size
    "poll_records": 5,
    "checkpoint_operations": 24,
}
UPDATES = Partition("updates", 0)


class HeldImage(SavedImage):
    """Is written when it may be."""

    def __init__(self, content: bytes, held: Event) -> None:
        super().__init__(content)
        self.held = held

    def write(self, file: Writable) -> None:
        assert self.held.wait(60)
        super().write(file)


class HeldModel(SavedModel):
    """Its checkpoints are committed when `release` is called, and otherwise stay under way."""

    held: Event | None = None

    def image(self, old: SavedImage | None = None) -> SavedImage:
        content = super().image(old).content
        # The first, which is waited for, is not held.
        event, self.held = self.held, Event()
        return SavedImage(content) if event is None else HeldImage(content, self.held)


def opened(state: Path, log: Any, marks: Sequence[bytes], options: dict[str, Any]) -> Pipeline:
    """A pipeline resumed from what a power cut left in `state`; a new one where nothing is there,
    which may be only where none had started."""
    if has_checkpoint(state):
        return Pipeline.resume(state, log, load=SavedModel.load, **options)
    assert b"started" not in marks, "the checkpoints are gone"
    return Pipeline(log, SavedModel(predecessors=True), state, **options)


def steps(pipeline: Pipeline, count: int, lead: int) -> None:
    """So many batches. A checkpoint is committed when `lead` more were applied since it was
    begun, and the stream waits then: one thread at a time."""
    since = 0
    for _ in range(count):
        pipeline.step(drain=True)
        since = since + 1 if is_committing(pipeline) else 0
        if since > lead:
            release(pipeline)
    release(pipeline)


def is_committing(pipeline: Pipeline) -> bool:
    assert pipeline._checkpoints is not None
    return pipeline._checkpoints._running is not None


def release(pipeline: Pipeline) -> None:
    assert pipeline._checkpoints is not None
    running = pipeline._checkpoints._running
    if running is not None and isinstance(pipeline.graph, HeldModel):
        assert pipeline.graph.held is not None
        pipeline.graph.held.set()
        running.exception(60)
        pipeline._checkpoints.look()


def close(pipeline: Pipeline) -> None:
    """With a last checkpoint, which is waited for, so not held."""
    if isinstance(pipeline.graph, HeldModel):
        pipeline.graph.held = None
    pipeline.close()


@lru_cache(maxsize=1000)
def state_at(offset: int, row: int) -> tuple[dict[tuple[int, int], float], set[int]]:
    """The model before the record at `offset`, and with some rows of that."""
    given = records(COUNT)
    model, _, _ = serial(given[:offset])
    if row:
        model.apply(ingest.decode_record(given[offset]).batch.rows(0, row))
    return weighted(model), model.markers


def check_state(pipeline: Pipeline) -> Position:
    """That the graph is the model where the stream stands; where that is."""
    position = pipeline.positions()[UPDATES]
    graph = pipeline.graph
    assert isinstance(graph, SavedModel)
    assert (weighted(graph), graph.markers) == state_at(*position)
    return position


class Remote:
    """The log and whoever reads the replies are elsewhere: the power cut takes the checkpoint
    directory alone, which lies in a directory that is not there yet either.

    It goes on where something is left, so it can run again after a power cut. Not `held`:
    checkpoints are written beside the stream, as each has the time."""

    def __init__(self, held: bool = True) -> None:
        self.model = HeldModel if held else SavedModel

    def prepare(self, directory: Path) -> None:
        with SqliteLog(directory / "log") as log:
            log.produce_many("updates", records(COUNT))

    def run(self, directory: Path, root: Path) -> None:
        """Some batches, a kill, more, a kill and a clean directory, and on to the end."""

        def reply(reply: Reply) -> None:
            mark(b"reply " + ingest.formats.replies.encode_reply(reply))

        def letter(letter: DeadLetter) -> None:
            mark(b"letter %d" % letter.offset)

        def begin() -> Pipeline:
            if has_checkpoint(state):
                return Pipeline.resume(state, log, load=self.model.load, **given)
            return Pipeline(log, self.model(predecessors=True), state, **given)

        state = root / "here" / "state"
        clock = Ticks(10**6 if state.exists() else 0)
        given: dict[str, Any] = {**OPTIONS, "clock": clock, "replies": reply,
                                 "dead_letters": letter}  # fmt: skip
        with SqliteLog(directory / "log") as log:
            pipeline = begin()
            mark(b"started")
            steps(pipeline, 6, lead=2)
            pipeline.close(checkpoint=False)  # syncs no more than a kill does
            pipeline = begin()
            steps(pipeline, 5, lead=0)
            pipeline.close(checkpoint=False)
            inspection.prune(state, keep=1)
            pipeline = begin()
            steps(pipeline, 30, lead=1)
            close(pipeline)

    def check(self, directory: Path, root: Path, marks: Sequence[bytes]) -> None:
        state = root / "here" / "state"
        said = [*told(marks, "reply")]
        letters = [*map(int, told(marks, "letter"))]
        given: dict[str, Any] = {
            **OPTIONS,
            "batch_size": 5,  # what was cut already must not change
            "clock": Ticks(10**9),
            "replies": lambda reply: said.append(ingest.formats.replies.encode_reply(reply)),
            "dead_letters": lambda letter: letters.append(letter.offset),
        }
        with SqliteLog(directory / "log") as log:
            pipeline = opened(state, log, marks, given)
            try:
                position = check_state(pipeline)
                asked = {ingest.decode_reply(data).id for data in told(marks, "reply")}
                assert all(int(id[1:]) < position.offset for id in asked), "a reply was forgotten"
                pipeline.run(until="end")
                assert check_state(pipeline).offset == COUNT
            finally:
                pipeline.close(checkpoint=False)
        check_said(said, letters)


class CutShort:
    """As `Remote`, and what the power cut leaves of the newest segment of the journal loses
    everything behind its head. That is refused, or no reply rests on it."""

    def __init__(self) -> None:
        self._remote = Remote()

    def prepare(self, directory: Path) -> None:
        self._remote.prepare(directory)

    def run(self, directory: Path, root: Path) -> None:
        self._remote.run(directory, root)

    def check(self, directory: Path, root: Path, marks: Sequence[bytes]) -> None:
        state = root / "here" / "state"
        if has_checkpoint(state):
            newest = segment_path(state, segment_numbers(state)[-1])
            newest.write_bytes(newest.read_bytes()[:HEAD_BYTES])
        with suppress(ingest.errors.JournalError):
            self._remote.check(directory, root, marks)


def check_said(said: Iterable[bytes], letters: Iterable[int]) -> None:
    """Every query was answered, rightly, and in the same words whenever it was."""
    _, answers, bad = expected(COUNT)
    first: dict[str, bytes] = {}
    for data in said:
        reply = ingest.decode_reply(data)
        assert same_answer(reply.answer, answers[reply.id])
        assert data == first.setdefault(reply.id, data), "a repeated reply says another thing"
    assert first.keys() == answers.keys(), "no reply is lost"
    assert set(letters) == set(bad)


@lru_cache(maxsize=100)
def expected(count: int) -> tuple[SavedModel, dict[str, Any], list[int]]:
    return serial(records(COUNT)[:count])


class Embedded:
    """Log, replies and checkpoints are on the disk that fails. What is appended while the pipeline
    runs, and was acknowledged, is there and leads to the same graph."""

    def prepare(self, directory: Path) -> None:
        pass

    def run(self, directory: Path, root: Path) -> None:
        log, state = ToldLog(root / "log"), root / "state"
        mark(b"made")
        options: dict[str, Any] = {**OPTIONS, "clock": Ticks()}
        left = records(COUNT)
        pipeline = Pipeline(log, HeldModel(predecessors=True), state, **options)
        mark(b"started")
        for lead in (1, 3):
            for _ in range(5):
                log.produce_many("updates", left[:4])
                del left[:4]
                steps(pipeline, 2, lead)
            pipeline.close(checkpoint=False)
            log.close()
            log = ToldLog(log.path)
            pipeline = Pipeline.resume(state, log, load=HeldModel.load, **options)
        close(pipeline)
        log.close()

    def check(self, directory: Path, root: Path, marks: Sequence[bytes]) -> None:
        with remade(root / "log", marks, ("updates", "queries")) as log:
            for topic in ("replies", "dead-letters"):
                check_partition(log, marks, topic)
            count = len(check_partition(log, marks, "updates"))
            state = root / "state"
            options: dict[str, Any] = {**OPTIONS, "batch_size": 5, "clock": Ticks(10**9)}
            pipeline = opened(state, log, marks, options)
            try:
                check_state(pipeline)
                pipeline.run(until="end")
                assert check_state(pipeline).offset == count
            finally:
                pipeline.close(checkpoint=False)
        _, answers, bad = expected(count)
        check_outputs(root / "log", answers, bad)
