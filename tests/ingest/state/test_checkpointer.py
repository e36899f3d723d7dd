"""Checkpoints beside the stream: what goes on meanwhile, what happens when they fail."""

from __future__ import annotations

import errno
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import CheckpointError, Pipeline, PipelineError, SqliteLog, timers
from ingest.state import checkpoint, checkpointer
from ingest.state.inspection import segment_sizes
from lpma import OutOfMemory
from lpma.display.words import size_of
from lpma.file.atomic import Writable
from tests.conftest import soak
from tests.support.stream_model import SavedImage, SavedModel, random_records, serial, weighted

OPTIONS: dict[str, Any] = {
    "batch_size": 5,
    "batch_interval": 10.0,
    "query_interval": 10.0,  # batches close by size, in every run alike
    "poll_records": 4,
}


class HeldImage(SavedImage):
    """Waits with writing until it is let go; then writes, or fails."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.failure: BaseException | None = None

    def write(self, file: Writable) -> None:
        super().write(file)
        self.begun.set()
        assert self.go_on.wait(60)
        if self.failure is not None:
            raise self.failure


class Held(SavedModel):
    """A model whose images, but the first, are held."""

    def __init__(self) -> None:
        super().__init__(predecessors=True)
        self.images: list[HeldImage] = []
        self.given: list[object] = []

    def image(self, old: object = None) -> HeldImage:
        self.given.append(old)
        image = HeldImage(super().image().content)
        self.images.append(image)
        if len(self.images) == 1:
            image.go_on.set()
        return image


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteLog]:
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", random_records(np.random.default_rng(4), 80))
        yield log


def numbers(path: Path) -> list[int]:
    return sorted(int(found.name[-10:]) for found in path.glob("checkpoint-*"))


def resumed(path: Path, log: SqliteLog) -> tuple[Any, ...]:
    """What a resume from a copy of the directory, as a crash would leave it, comes to."""
    copy = path.with_name("copy")
    shutil.copytree(path, copy)
    with SqliteLog(log.path) as source:
        pipeline = Pipeline.resume(copy, source, load=SavedModel.load, **OPTIONS)
        content = pipeline.graph.content()  # type: ignore[attr-defined]
        pipeline.close(checkpoint=False)
    shutil.rmtree(copy)
    return content


def test_the_stream_goes_on_while_a_checkpoint_is_written(log: SqliteLog, tmp_path: Path) -> None:
    path = tmp_path / "c"
    graph = Held()
    pipeline = Pipeline(log, graph, path, checkpoint_operations=10, **OPTIONS)
    assert pipeline.stats.checkpoint_figures is not None
    for _ in range(2):
        pipeline.step()
    held = graph.images[1]
    assert held.begun.wait(60)
    for _ in range(5):
        pipeline.step()
        assert len(graph.images) == 2, "one at a time, and one image"
        assert numbers(path) == [0]
        assert resumed(path, log) == graph.content(), "it is as if none had been begun"
    assert pipeline.stats.checkpoint_figures.number == 0
    held.go_on.set()
    pipeline._checkpoints.finish()  # type: ignore[union-attr]
    assert numbers(path) == [0, 1]
    assert resumed(path, log) == graph.content(), "what came meanwhile is in the journal"
    figures = pipeline.stats.checkpoint_figures
    assert (figures.number, figures.operations) == (1, 10)
    assert figures.bytes == len(held.content)
    assert 0 < figures.stopped <= figures.seconds
    pipeline.step()
    assert len(graph.images) == 3, "the one that was due meanwhile"
    assert graph.given[2] is held, "over the memory of the one before"
    graph.images[2].go_on.set()
    pipeline.close(checkpoint=False)
    assert numbers(path) == [1, 2], "close waits for the one under way"


def test_what_stops_a_commit_is_told_by_the_next_step(log: SqliteLog, tmp_path: Path) -> None:
    path = tmp_path / "c"
    graph = Held()
    pipeline = Pipeline(log, graph, path, checkpoint_operations=10, **OPTIONS)
    for _ in range(4):
        pipeline.step()
    held = graph.images[1]
    held.failure = OSError(errno.ENOSPC, "No space left on device")
    held.go_on.set()
    wait_for_the_commit(pipeline)
    with pytest.raises(CheckpointError, match=r"checkpoint 1 was not written .*No space left"):
        pipeline.step()
    with pytest.raises(PipelineError, match="resume"):
        pipeline.step()
    pipeline.close()
    assert numbers(path) == [0]
    assert not list(path.glob(".tmp-*"))
    assert resumed(path, log) == graph.content(), "nothing is lost"
    again = Pipeline.resume(path, log, load=SavedModel.load, **OPTIONS)
    again.run(until="end")
    again.close()
    records = [bytes(r.value) for r in SqliteLog(log.path).poll(10**6)]  # type: ignore[arg-type]
    assert weighted(again.graph) == weighted(serial(records)[0])


def test_a_full_disk_is_told_with_what_is_needed_and_what_can_be_freed(
    log: SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c"
    pipeline = Pipeline(log, SavedModel(predecessors=True), path, **OPTIONS)
    content = SavedModel.image(pipeline.graph).content  # type: ignore[arg-type]
    said = refused_for_room(pipeline, monkeypatch)
    assert f"No space left on device): it needs {size_of(len(content))}, and " in said
    assert " are free; free the disk and resume" in said, "one alone is needed"
    monkeypatch.undo()
    pipeline = Pipeline.resume(path, log, load=SavedModel.load, **OPTIONS)
    pipeline.checkpoint_now()
    assert numbers(path) == [0, 1]
    size = sum(file.stat().st_size for file in (path / "checkpoint-0000000000").iterdir())
    said = refused_for_room(pipeline, monkeypatch)
    assert f"`lpma checkpoint prune {path}` frees {size_of(size)} of older checkpoints" in said
    assert numbers(path) == [0, 1]
    assert not list(path.glob(".tmp-*"))


def refused_for_room(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is said of a checkpoint for which there is no room, of a pipeline that then ends."""
    monkeypatch.setattr(checkpoint, "sync", no_room)
    with pytest.raises(CheckpointError) as raised:
        pipeline.checkpoint_now()
    pipeline.close(checkpoint=False)
    return str(raised.value)


def no_room(file: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_the_age_of_a_checkpoint_outlives_its_process(
    log: SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a disk is full, and each start ends at its first checkpoint, the age still grows; but
    no checkpoint is due because the stream stood still."""
    path = tmp_path / "c"
    with Pipeline(log, SavedModel(predecessors=True), path, **OPTIONS) as pipeline:
        pipeline.step()
    now = timers.now_ms() + 3_600_000
    monkeypatch.setattr(checkpointer, "now_ms", lambda: now)
    for _ in range(2):
        again = Pipeline.resume(path, log, load=SavedModel.load, **OPTIONS)
        age = again.stats.checkpoint_age
        assert age is not None
        assert age >= 3600
        again.step()
        assert again.stats.checkpoint_figures is None
        held = again._checkpoints
        assert held is not None
        assert not held.is_due(again._stream.state)
        again.close(checkpoint=False)
    again = Pipeline.resume(path, log, load=SavedModel.load, **OPTIONS)
    again.step()
    again.checkpoint_now()
    age = again.stats.checkpoint_age
    assert age is not None
    assert age < 3600, "it is of this process"
    again.close(checkpoint=False)


def wait_for_the_commit(pipeline: Pipeline) -> None:
    running = pipeline._checkpoints._running  # type: ignore[union-attr]
    assert running is not None
    running.exception(60)


@pytest.mark.parametrize("call", ["close", "checkpoint_now"])
def test_what_stops_a_commit_is_told_by_what_waits_for_it(
    log: SqliteLog, tmp_path: Path, call: str
) -> None:
    graph = Held()
    pipeline = Pipeline(log, graph, tmp_path / "c", checkpoint_operations=10, **OPTIONS)
    for _ in range(3):
        pipeline.step()
    graph.images[1].failure = OSError(errno.EIO, "Input/output error")
    graph.images[1].go_on.set()
    with pytest.raises(CheckpointError, match="Input/output error"):
        getattr(pipeline, call)()
    pipeline.close()
    assert resumed(tmp_path / "c", log) == graph.content()


def test_a_checkpoint_keeps_the_sources_of_its_moment(log: SqliteLog, tmp_path: Path) -> None:
    """Producers' numbers that came after it was taken are not in it, or a replay would drop
    their records."""
    log.produce_many(
        "queries",
        [ingest.encode_updates([i], [i], producer="p", seq=i) for i in range(20)],
    )
    source = SqliteLog(log.path, topics=("queries",))
    graph = Held()
    pipeline = Pipeline(source, graph, tmp_path / "c", checkpoint_operations=5, **OPTIONS)
    for _ in range(3):
        pipeline.step()
    graph.images[1].go_on.set()
    pipeline.close(checkpoint=False)
    assert numbers(tmp_path / "c") == [0, 1]
    again = Pipeline.resume(tmp_path / "c", source, load=SavedModel.load, **OPTIONS)
    assert again.stats.replayed == 10
    assert again.stats.duplicates == 0
    assert again.graph.content() == graph.content()  # type: ignore[attr-defined]
    again.close()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(soak(4, 30)))
def test_what_producers_send_again_is_dropped_through_any_crash(tmp_path: Path, seed: int) -> None:
    """Producers go back and send again, the pipeline is stopped and resumed: each number once."""
    rng = np.random.default_rng(seed)
    sent: list[bytes] = []
    following = {"a": 0, "b": 0}
    expected: dict[tuple[int, int], float] = {}
    for _ in range(120):
        source = str(rng.choice(list(following)))
        seq = int(rng.integers(max(0, following[source] - 5), following[source] + 1))
        edge = ord(source), seq
        sent.append(ingest.encode_updates([edge[0]] * 3, [seq] * 3, producer=source, seq=seq))
        following[source] = max(following[source], seq + 1)
        expected[edge] = 3.0
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", sent)
        options: dict[str, Any] = {**OPTIONS, "checkpoint_operations": 20}
        pipeline = Pipeline(log, SavedModel(), tmp_path / "c", **options)
        pipeline.close()
        operations = 1
        while operations:
            pipeline = Pipeline.resume(tmp_path / "c", log, load=SavedModel.load, **options)
            operations = sum(pipeline.step(drain=True) for _ in range(int(rng.integers(1, 9))))
            pipeline.close(checkpoint=bool(rng.integers(0, 2)))
        assert weighted(pipeline.graph) == expected
        assert pipeline.stats.operations == 3 * len(expected)


def test_replies_have_left_before_a_checkpoint_is_taken(tmp_path: Path) -> None:
    events: list[str] = []

    class Watched(SavedModel):
        def image(self, old: SavedImage | None = None) -> SavedImage:
            events.append("image")
            return super().image(old)

    with SqliteLog(tmp_path / "log") as log:
        queries = [ingest.encode_query(f"q{i}", lpma.Kind.DEGREE, 1) for i in range(20)]
        log.produce_many("updates", queries)
        pipeline = Pipeline(
            log, Watched(), tmp_path / "c", checkpoint_operations=5,
            replies=lambda reply: events.append(reply.id), **OPTIONS,
        )  # fmt: skip
        pipeline.run(until="end")
        pipeline.close()
    for place in [i for i, event in enumerate(events) if event == "image"][1:]:
        assert len([e for e in events[:place] if e != "image"]) % 5 == 0


def test_a_batch_that_memory_ran_out_for_is_in_the_checkpoint_as_waiting(
    log: SqliteLog, tmp_path: Path
) -> None:
    class Full(SavedModel):
        fail = False

        def apply(self, batch: Any) -> Any:
            if self.fail:
                raise OutOfMemory("cut the batch")
            return super().apply(batch)

    graph = Full(predecessors=True)
    pipeline = Pipeline(log, graph, tmp_path / "c", **OPTIONS)
    for _ in range(3):
        pipeline.step()
    graph.fail = True
    with pytest.raises(OutOfMemory):
        pipeline.step()
    before = graph.content()
    pipeline.checkpoint_now()
    pipeline.close(checkpoint=False)
    records = [bytes(r.value) for r in SqliteLog(log.path).poll(10**6)]  # type: ignore[arg-type]
    again = Pipeline.resume(tmp_path / "c", SqliteLog(log.path), load=SavedModel.load, **OPTIONS)
    content = again.graph.content()  # type: ignore[attr-defined]
    assert again.stats.replayed == 5, "the batch as it was cut"
    assert content[2] == before[2] + 1
    again.run(until="end")
    assert weighted(again.graph) == weighted(serial(records)[0])
    again.close()


def test_images_that_find_no_room_leave_all_as_it_was(log: SqliteLog, tmp_path: Path) -> None:
    class Full(SavedModel):
        fail = False

        def image(self, old: SavedImage | None = None) -> SavedImage:
            if self.fail:
                raise OutOfMemory("free memory")
            return super().image(old)

    graph = Full(predecessors=True)
    pipeline = Pipeline(log, graph, tmp_path / "c", checkpoint_operations=10, **OPTIONS)
    pipeline.step()
    graph.fail = True
    with pytest.raises(OutOfMemory):
        pipeline.step()
    assert pipeline.stats.operations == 10
    graph.fail = False
    pipeline.step()
    pipeline.close(checkpoint=False)
    assert numbers(tmp_path / "c") == [0, 1], "the next step took it"
    assert resumed(tmp_path / "c", log) == graph.content()


def test_a_long_journal_makes_a_checkpoint_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many operations a checkpoint may wait for, and however long: a replay stays short."""
    assert checkpointer.MAX_JOURNAL_BYTES == 64 << 20
    monkeypatch.setattr(checkpointer, "MAX_JOURNAL_BYTES", 400)
    never: dict[str, Any] = {"checkpoint_operations": 10**9, "checkpoint_interval": 1e9}
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", [ingest.encode_row(u, u + 1) for u in range(300)])
        pipeline = Pipeline(log, SavedModel(), tmp_path / "c", **never, **OPTIONS)
        longest = 0
        while pipeline.step(drain=True):
            if pipeline._checkpoints._running is not None:  # type: ignore[union-attr]
                wait_for_the_commit(pipeline)
            sizes = segment_sizes(tmp_path / "c")
            longest = max(longest, sizes[max(sizes)])
        pipeline.close(checkpoint=False)
        assert len(numbers(tmp_path / "c")) == 2
        assert numbers(tmp_path / "c")[-1] > 3
        assert longest < 400 + 200, "and what one batch adds"
        resumed = Pipeline.resume(tmp_path / "c", log, load=SavedModel.load, **OPTIONS)
        assert resumed.stats.operations == 300
        assert resumed.stats.replayed < 60
        resumed.close()


def test_the_store_is_the_same_from_any_checkpoint(tmp_path: Path) -> None:
    """Batch after batch into a real graph, with one commit after the other beside it: both
    checkpoints that are left, and the journal, lead to its edges, times and version."""
    rng = np.random.default_rng(8)
    with SqliteLog(tmp_path / "log") as log:
        for _ in range(60):
            src, dst = rng.integers(0, 500, (2, 400))
            kind = rng.choice([0, 0, 0, 1], 400).astype(np.uint8)
            log.produce("updates", ingest.encode_updates(src, dst, None, None, kind))
        graph = lpma.Graph(device="cpu", segment_size=8)
        options = {**OPTIONS, "batch_size": 700}
        pipeline = Pipeline(log, graph, tmp_path / "c", checkpoint_operations=700, **options)
        while pipeline.step(drain=True):
            if pipeline.stats.batches % 8 == 0:  # a slow disk would else have time for one or two
                wait_for_the_commit(pipeline)
        pipeline.close(checkpoint=False)
        newest = numbers(tmp_path / "c")[-1]
        assert newest > 2
        expected = tmp_path / "expected"
        graph.save(expected)
        for _ in range(2):
            again = Pipeline.resume(tmp_path / "c", log, device="cpu", **options)
            assert isinstance(again.graph, lpma.Graph)
            again.graph.check()
            again.graph.save(tmp_path / "again")
            assert (tmp_path / "again").read_bytes() == expected.read_bytes()
            again.close(checkpoint=False)
            (tmp_path / "c" / f"checkpoint-{newest:010d}" / "graph.lpma").write_bytes(b"")
