"""A journal that is damaged or gone: noticed, or no reply rests on it; and given up where that is
accepted, with nothing lost or applied twice."""

from __future__ import annotations

import itertools
import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import Pipeline, Reply, SqliteLog
from ingest.errors import JournalError
from ingest.events import LOGGER, Event
from ingest.state.checkpoint import read_checkpoint
from ingest.state.directory import checkpoint_numbers, checkpoint_path
from ingest.state.inspection import verify_directory
from ingest.state.journal import Cut, read_synced, segment_numbers, segment_path
from ingest.state.journal_reader import read_journal
from tests.conftest import soak
from tests.support.command_line import document, run
from tests.support.stream_model import SavedModel, random_records, same_answer, serial, weighted

OPTIONS: dict[str, Any] = {
    "batch_size": 7,
    "batch_interval": 10.0,
    "query_interval": 10.0,  # batches close by size
    "poll_records": 9,
    "checkpoint_operations": 10**6,
    "max_hops": 2,
}


class Ran:
    """A stream that was ingested up to some point and then stopped as by a kill: the newest
    checkpoint has something waiting, and four segments behind it."""

    def __init__(self, path: Path) -> None:
        records = random_records(np.random.default_rng(11), 60)
        for i in range(8):
            numbered = ingest.encode_updates([50 + i] * 3, [i] * 3, producer="shop", seq=i)
            records.insert(8 * i, numbered)
        self.path = path
        self.model, self.answers, _ = serial(records)
        self.operations = sum(map(operations_of, records))
        records.append(records[0])  # sent again
        with SqliteLog(path / "log") as log:
            log.produce_many("updates", records)
        self.sent: dict[str, bytes] = {}
        pipeline = self.started(Pipeline, graph=SavedModel(predecessors=True))
        for _ in range(3):
            pipeline.step()
        pipeline.checkpoint_now()
        pipeline.step()
        pipeline.checkpoint_now()
        for _ in range(3):
            pipeline.step()
            pipeline.close(checkpoint=False)
            pipeline = self.started(Pipeline.resume, load=SavedModel.load)
        pipeline.step()
        while (synced := read_synced(path / "c")) and synced.number < segment_numbers(path / "c")[
            -1
        ]:
            pipeline.step()  # until a reply has left that rests on the newest segment
        pipeline.close(checkpoint=False)
        shutil.copytree(path / "c", path / "kept")

    def started(
        self,
        how: Callable[..., Pipeline],
        note: Callable[[Reply], object] | None = None,
        **more: Any,
    ) -> Pipeline:
        """A pipeline on the log. Its clock gives no stamp a second time."""
        log = SqliteLog(self.path / "log")
        ticks = itertools.count(getattr(self, "ticks", 10**12), 10)
        self.ticks = next(ticks) + 10**6
        options = {**OPTIONS, "clock": lambda: next(ticks), "replies": note or self.note, **more}
        if how is Pipeline:
            return Pipeline(log, options.pop("graph"), self.path / "c", **options)
        return how(self.path / "c", log, **options)

    def note(self, reply: Reply) -> None:
        data = ingest.formats.replies.encode_reply(reply)
        assert self.sent.setdefault(reply.id, data) == data, "what was said is said again"

    def restore(self) -> None:
        shutil.rmtree(self.path / "c")
        shutil.copytree(self.path / "kept", self.path / "c")


def operations_of(data: bytes) -> int:
    try:
        record = ingest.decode_record(data)
    except ingest.RecordError:
        return 0
    return len(record.batch) + len(record.queries)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return Ran(tmp_path_factory.mktemp("ran"))


@pytest.fixture
def ran(once: Ran) -> Iterator[Ran]:
    once.restore()
    sent = dict(once.sent)
    yield once
    once.sent = sent


def needed(ran: Ran) -> list[int]:
    """The segments that a resume reads."""
    report = verify_directory(ran.path / "c")
    assert report.resume is not None
    assert len(report.resume.segments) >= 4
    return report.resume.segments


@pytest.mark.soak
def test_any_byte_of_the_journal_that_changes_is_noticed_or_no_reply_rests_on_it(ran: Ran) -> None:
    refused = passed = 0
    assert len(ran.sent) > 5
    for number in needed(ran):
        path = segment_path(ran.path / "c", number)
        data = path.read_bytes()
        for at in range(0, len(data), soak(5, 1)):
            ran.restore()
            path.write_bytes(data[:at] + bytes([data[at] ^ 0x04]) + data[at + 1 :])
            said = verify_directory(ran.path / "c")
            if said.resume is None:
                refused += 1
                assert path.name in str(said.refusal)
                with pytest.raises(JournalError, match=re.escape(str(said.refusal))):
                    ran.started(Pipeline.resume, load=SavedModel.load)
                continue
            passed += 1
            assert at >= data.rindex(b"\xc1s") - 8, "the last proof or the seal, or behind it"
            pipeline = ran.started(Pipeline.resume, load=SavedModel.load)
            assert said.resume.operations == pipeline.stats.replayed
            pipeline.close(checkpoint=False)  # `note` has compared the replies
    assert refused > passed > 0


@pytest.mark.soak
def test_a_journal_that_is_cut_short_is_noticed_or_no_reply_rests_on_it(ran: Ran) -> None:
    """At any length of any segment, the newest one too, whose proofs go with its end."""
    directory = ran.path / "c"
    numbers, synced = needed(ran), read_synced(directory)
    assert synced is not None
    assert synced.number == numbers[-1]
    proven = {s.number: s.good for s in read_journal(directory, numbers[0]).segments}
    proven[numbers[-1]] = synced.whole
    refused = passed = 0
    for number in numbers:
        path = segment_path(directory, number)
        data = (ran.path / "kept" / path.name).read_bytes()
        for at in range(0, len(data), soak(5, 1)):
            ran.restore()
            path.write_bytes(data[:at])
            said = verify_directory(directory)
            assert (said.resume is None) == (at < proven[number])
            if said.resume is None:
                refused += 1
                with pytest.raises(JournalError, match=re.escape(str(said.refusal))):
                    ran.started(Pipeline.resume, load=SavedModel.load)
            else:
                passed += 1
                ran.started(Pipeline.resume, load=SavedModel.load).close(checkpoint=False)
    assert refused > passed > 0


def remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink()


def damages(ran: Ran) -> Iterator[tuple[Path, Callable[[], object]]]:
    """Each segment missing, cut short, damaged in its head, and in the middle; several missing."""
    numbers = needed(ran)
    for number in numbers:
        path = segment_path(ran.path / "c", number)
        data = path.read_bytes()
        yield path, path.unlink
        for at in (
            3,
            30,
            *([40] if data.rfind(b"\xc1s") > 50 else []),
        ):  # there something is synced
            changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            yield path, lambda path=path, changed=changed: path.write_bytes(changed)  # type: ignore[misc]
        yield path, lambda path=path, data=data: path.write_bytes(data[:20])  # type: ignore[misc]
        if (proof := data.rfind(b"\xc1s")) > 50:
            yield path, lambda path=path, data=data[: proof - 9]: path.write_bytes(data)  # type: ignore[misc]
    paths = [segment_path(ran.path / "c", number) for number in numbers]
    yield paths[0], lambda: remove(paths)
    yield paths[1], lambda: remove(paths[1:])


def test_a_loss_that_is_accepted_loses_and_repeats_nothing(
    ran: Ran, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER.name)
    number = checkpoint_numbers(ran.path / "c")[-1]
    taken = read_checkpoint(checkpoint_path(ran.path / "c", number), number)
    assert taken.waiting
    assert taken.state.producers
    for path, damage in list(damages(ran)):
        ran.restore()
        damage()
        before = read_journal(ran.path / "c", taken.segment)
        with pytest.raises(JournalError, match=r"loss=true.*accept_journal_loss=True"):
            ran.started(Pipeline.resume, load=SavedModel.load)
        replies: dict[str, Reply] = {}

        def note(reply: Reply, replies: dict[str, Reply] = replies) -> None:
            replies[reply.id] = reply

        caplog.clear()
        pipeline = ran.started(
            Pipeline.resume, note, load=SavedModel.load, accept_journal_loss=True
        )
        entries = [*taken.waiting, *before.entries]
        assert pipeline.stats.replayed == sum(e.operations for e in entries if isinstance(e, Cut))
        (accepted,) = pipeline.stats.accepted
        assert accepted.kind == "journal"
        assert path.name in str(pipeline.stats.journal_loss)
        assert accepted.detail == {
            "problem": pipeline.stats.journal_loss,
            "checkpoint": number,
            "replayed": pipeline.stats.replayed,
        }
        told = [r.msg.name for r in caplog.records if isinstance(r.msg, Event)]
        assert [name for name in told if name != "dead letters"] == [
            "journal loss accepted",
            "checkpoint",
            "resume",
        ]

        # From here on the journal is whole, whatever becomes of this process.
        pipeline.step()
        pipeline.close(checkpoint=False)
        pipeline = ran.started(Pipeline.resume, note, load=SavedModel.load)
        assert (pipeline.stats.accepted, pipeline.stats.journal_loss) == ((accepted,), None)
        pipeline.run(until="end")
        assert weighted(pipeline.graph) == weighted(ran.model)
        assert pipeline.stats.duplicates == 1
        assert pipeline.stats.operations == ran.operations
        for id, reply in replies.items():
            assert same_answer(reply.answer, ran.answers[id])
        assert replies.keys() | ran.sent.keys() == ran.answers.keys()
        pipeline.close()


def test_the_option_changes_nothing_where_the_journal_is_whole(ran: Ran) -> None:
    pipeline = ran.started(Pipeline.resume, load=SavedModel.load, accept_journal_loss=True)
    assert (pipeline.stats.accepted, pipeline.stats.journal_loss) == ((), None)
    assert pipeline.stats.replayed > 0
    pipeline.close()


def test_on_the_command_line(tmp_path: Path) -> None:
    path, directory = tmp_path / "log", tmp_path / "c"
    with SqliteLog(path) as log:
        log.produce(ingest.types.UPDATES, ingest.encode_updates([0, 0, 1], [1, 2, 2]))
        log.produce(ingest.types.QUERIES, ingest.encode_query("q", lpma.Kind.DEGREE, 0))
        with Pipeline(log, lpma.Graph(device="cpu"), directory) as pipeline:
            pipeline.checkpoint_now()
            pipeline.run(until="end")
            pipeline.close(checkpoint=False)
    segment_path(directory, segment_numbers(directory)[-1]).unlink()
    command = ["ingest", path, "-c", directory, "--device", "cpu"]
    assert "accept_journal_loss=true" in run(*command, status=1).stderr
    run("checkpoint", "prune", directory)
    found = document(*command, "--set", "checkpoints.accept_journal_loss=true")
    assert (found["total_operations"], found["edges"]) == (4, 3)
    assert "is missing" in found["journal_loss"]
    found = document(*command)
    assert (found["operations"], found["journal_loss"]) == (0, None)
    report = json.loads(run("checkpoint", "verify", directory, "--json").stdout)
    (accepted,) = report["checkpoints"][-1]["accepted"]
    assert accepted["kind"] == "journal"
    assert "given up before" in run("checkpoint", "verify", directory).stdout


def test_how_often_a_checkpoint_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{i} {i + 1}\n" for i in range(100)))
    common = ["ingest", path, "--device", "cpu", "--batch-size", 10]

    def taken(name: str, *more: object) -> int:
        run(*common, "-c", tmp_path / name, *more)
        return checkpoint_numbers(tmp_path / name)[-1]

    assert taken("seldom") == 1, "at the beginning and at the end"
    assert taken("operations", "--set", "checkpoints.operations=20") > 1
    assert taken("interval", "--set", "checkpoints.interval=0") > 1
    for option in (
        ["--set", "checkpoints.operations=5"],
        ["--set", "checkpoints.accept_journal_loss=true"],
    ):
        assert "--checkpoint" in run(*common, "--save", tmp_path / "s", *option, status=2).stderr
