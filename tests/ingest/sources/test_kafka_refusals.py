"""What a Kafka must not have done to the records, and records that are none: refused, or told."""

from __future__ import annotations

import numpy as np
import pytest

import ingest
from ingest import LockedError, OffsetError, PipelineError, SourceError
from ingest.errors import IdentityError
from tests.support.fault_stream import UPDATES, Stream

pytestmark = pytest.mark.system


def test_a_batch_that_stays_damaged_is_an_error_that_names_it(stream: Stream) -> None:
    """Nothing behind it is applied, and once it is repaired the stream goes on exactly."""
    stream.send(30)
    log = stream.broker.topics["updates"].logs[0]
    with stream.read_to_end() as pipeline:
        stream.send(20)
        at = next(i for i, batch in enumerate(log.batches) if batch.first > 35)
        whole = log.batches[at]
        damaged = whole.data[:-2] + bytes([whole.data[-2] ^ 1]) + whole.data[-1:]
        log.batches[at] = whole._replace(data=damaged)
        with pytest.raises(SourceError, match=f"updates.*offset {whole.first}"):
            stream.run_to_end(pipeline)
        assert pipeline.positions()[UPDATES] <= (whole.first, 0)
        with pytest.raises(PipelineError, match="resume"):
            pipeline.step()
    log.batches[at] = whole
    stream.check_resumed()


def test_what_was_trimmed_away_is_refused(stream: Stream) -> None:
    stream.send(30)
    with stream.read_to_end() as pipeline:
        stream.send(30)
        stream.broker.trim("updates", 45)
        with pytest.raises(OffsetError, match="offset 30 was trimmed"):
            stream.run_to_end(pipeline)
    stream.check_refused(OffsetError, "trimmed")


def test_a_trim_of_what_was_applied_is_none_of_our_business(stream: Stream) -> None:
    stream.settings["checkpoint_operations"] = 1
    stream.send(30)
    with stream.read_to_end() as pipeline:
        pipeline.checkpoint_now()
        stream.broker.trim("updates", 30)
        stream.send(10)
        stream.run_to_end(pipeline)
        pipeline.checkpoint_now()
        stream.check(pipeline)
    stream.broker.trim("updates", 40)
    stream.check_resumed()


@pytest.mark.parametrize("longer", [False, True])
def test_a_topic_made_again_is_refused(longer: bool, stream: Stream) -> None:
    """Also where the new one holds more than was read: its offsets mean something else."""
    stream.send(30)
    with stream.read_to_end() as pipeline:
        before = pipeline.graph.content()  # type: ignore[attr-defined]
        # So long a source trusts what it last saw, and a real topic would take.
        stream.own_time.passes(0.1)
        stream.broker.create_topic("updates")
        other = [ingest.encode_row(900, v) for v in range(50 if longer else 10)]
        stream.broker.produce("updates", other)
        with pytest.raises(IdentityError, match="created again"):
            pipeline.run(until=lambda p: p.stats.operations > 10**6)
        assert pipeline.graph.content() == before  # type: ignore[attr-defined]
    stream.check_refused(IdentityError, "created again")


def test_another_cluster_is_refused(stream: Stream) -> None:
    stream.send(30)
    with stream.read_to_end() as pipeline:
        before = pipeline.graph.content()  # type: ignore[attr-defined]
        stream.broker.cluster_id = "another"
        stream.broker.cut()
        stream.broker.produce("updates", [ingest.encode_row(900, 1)])
        with pytest.raises(IdentityError, match="another"):
            pipeline.run(until=lambda p: p.stats.operations > 10**6)
        # What was read before the brokers said so may have been applied, and no more.
        assert len(pipeline.graph.content()[0]) <= len(before[0]) + 1  # type: ignore[attr-defined]
    stream.check_refused(IdentityError, "another")


def test_a_second_writer_is_refused(stream: Stream) -> None:
    stream.send(30)
    with stream.read_to_end() as pipeline:
        with pytest.raises(LockedError), stream.reading():
            pass
        stream.send(10)
        stream.run_to_end(pipeline)
        stream.check(pipeline)


def test_poison_and_oversized_records_are_dead_letters(stream: Stream) -> None:
    """All of them, none twice at its place, and the good ones around them are exact."""
    rng = np.random.default_rng(5)
    poison = [
        b"",
        b"\x00" * 40,
        b"\xde\xff\xff" + b"\x80" * 1000,
        rng.bytes(70_000),
        bytes(2 << 20),
        b"\x83\xa4rows" + bytes(9 << 20),
        ingest.encode_updates(range(100), range(100))[:-1],
        b'{"src": 1}',
    ]
    mixed = [record for bad in poison for record in (bad, ingest.encode_row(1, 2), bad)]
    stream.send(mixed)
    with stream.read_to_end(max_bytes=1 << 20) as pipeline:
        stream.check(pipeline)
        assert len(stream.letters) == 2 * len(poison)
        assert sum(pipeline.outputs.rejected_by.values()) == 2 * len(poison)
    stream.check_resumed()


def test_a_record_without_a_value_is_a_dead_letter(stream: Stream) -> None:
    stream.broker.produce("updates", [ingest.encode_row(1, 2), None, ingest.encode_row(1, 3)])
    stream.sent = [ingest.encode_row(1, 2), b"", ingest.encode_row(1, 3)]
    with stream.read_to_end() as pipeline:
        stream.check(pipeline)
