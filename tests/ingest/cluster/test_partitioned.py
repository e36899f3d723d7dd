"""`PartitionedSink`: what fails is repeated before anything else, markers stand between writes, and
bad rows are refused before any is written."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import Partition, PartitionedSink, PipelineError, RecordError, SourceError, SqliteLog
from ingest.formats.markers import encode_marker, marker_of
from ingest.types import Names
from lpma import Batch, Columns, Kind
from lpma.sharding import owners_of
from tests.support.shards import MemorySink, applied, content, joined
from tests.support.waiting import HANGS_S, wait_for

P = 3


def edges(src: Any, dst: Any, **columns: Any) -> Columns:
    return Batch.from_columns(Kind.INSERT, src, dst, **columns)


def sharded(predecessors: bool = False) -> MemorySink:
    log = MemorySink()
    ingest.create_sharded(log, "updates", P, predecessors)
    return log


def graph_of(log: MemorySink, names: bool = False) -> Any:
    def fresh() -> lpma.Graph:
        return lpma.Graph(device="cpu", names=names)

    return joined(content(applied(fresh(), part)) for part in log.of("updates"))


def rows_of(log: MemorySink) -> int:
    return sum(len(ingest.decode(value)) for part in log.of("updates") for value in part)


# -- what fails -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fails", range(P))
@pytest.mark.parametrize("directed", [True, False])
def test_a_write_that_failed_is_repeated_and_counts_once(fails: int, directed: bool) -> None:
    log = sharded()
    with PartitionedSink(log, directed=directed, producer="shop") as sink:
        first, second = edges(range(20), range(5, 25)), edges(range(20), range(20))
        sink.write(first)
        log.fails = fails
        with pytest.raises(SourceError, match="away"):
            sink.write(second)
        log.fails = None
        sink.write(second)
        sink.write(second)
    expected = lpma.Graph(device="cpu", directed=directed)
    for columns in (first, second, second):
        expected.apply(columns)
    weights = {key: weight for key, (weight, _) in graph_of(log)[0].items()}
    assert weights == {key: weight for key, (weight, _) in content(expected)[0].items()}


def test_nothing_else_is_written_before_what_failed() -> None:
    """Otherwise its numbers would be given to other rows, which would be dropped as repeats, and a
    marker would stand between the rows of an edge."""
    log = sharded()
    with PartitionedSink(log, directed=False, producer="shop") as sink:
        log.fails = 1
        with pytest.raises(SourceError):
            sink.write(edges(range(20), range(5, 25)))
        log.fails = None
        before = rows_of(log)
        with pytest.raises(SourceError, match="same rows"):
            sink.write(edges(range(20), range(6, 26)))
        with pytest.raises(SourceError, match="same rows"):
            sink.mark()
        assert rows_of(log) == before
        sink.write(edges(range(20), range(5, 25)))
        sink.write(edges(range(20), range(6, 26)))
        sink.mark()
    assert len(graph_of(log)[0]) == 80


def test_a_later_process_goes_on_above_the_numbers_of_the_one_before() -> None:
    log = sharded()
    for target in (1, 2, 3):
        with PartitionedSink(log, producer="shop") as sink:
            sink.write(edges([7], [target]))
    assert graph_of(log)[0].keys() == {(7, 1), (7, 2), (7, 3)}


def test_numbers_rise_over_all_partitions() -> None:
    log = sharded()
    with PartitionedSink(log, producer="shop") as sink:
        sink.seq = 100
        for start in range(5):
            sink.write(edges(range(start, start + 20), range(20)))
        records = [ingest.decode_record(value) for part in log.of("updates") for value in part]
        seqs = [record.seq for record in records]
        assert sorted(seqs) == list(range(100, 100 + len(records)))  # type: ignore[type-var]
        assert sink.seq == 100 + len(records)
    assert {record.producer for record in records} == {"shop"}


# -- markers --------------------------------------------------------------------------------------


def test_a_marker_lies_in_every_partition_and_rises() -> None:
    log = sharded(predecessors=True)
    with PartitionedSink(log, predecessors=True) as sink:
        before = time.time_ns() // 1_000_000
        first, second = sink.mark(), sink.mark()
        assert before <= first < second
        assert sink.mark(second + 7) == second + 7
        for epoch in (second + 7, second, -1):
            with pytest.raises(RecordError, match="rise"):
                sink.mark(epoch)
    for topic in ("updates", "updates.in"):
        for part in log.of(topic):
            assert [marker_of(value) for value in part] == [first, second, second + 7]


def test_a_marker_that_failed_has_a_number_that_is_not_used_again() -> None:
    log = sharded()
    with PartitionedSink(log) as sink:
        log.fails = 2
        with pytest.raises(SourceError):
            sink.mark(5)
        log.fails = None
        with pytest.raises(RecordError, match="rise"):
            sink.mark(5)
        assert sink.mark(6) == 6
    assert [[marker_of(value) for value in part] for part in log.of("updates")] == [
        [5, 6], [5, 6], [6]
    ]  # fmt: skip


class Crossed(MemorySink):
    """Whenever a write has come to a partition, another thread begins to mark."""

    sink: PartitionedSink

    def __init__(self) -> None:
        super().__init__(updates=P)
        self.marking: list[threading.Thread] = []
        self.met = threading.Event()  # another thread waits for its turn, or has marked

    def produce_parts(self, parts: Any) -> dict[Partition, range]:
        found: dict[Partition, range] = {}
        for partition, values in parts.items():
            found |= super().produce_parts({partition: values})
            if marker_of(values[0]) is None:
                self.met.clear()
                self.marking.append(threading.Thread(target=self._mark))
                self.marking[-1].start()
                assert self.met.wait(HANGS_S)
        return found

    def _mark(self) -> None:
        try:
            self.sink.mark()
        finally:
            self.met.set()


class MetLock:
    """A lock that tells when somebody asks for it."""

    def __init__(self, lock: Any, met: threading.Event) -> None:
        self._lock, self._met = lock, met

    def __enter__(self) -> None:
        self._met.set()
        self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()


def test_no_marker_stands_between_the_two_rows_of_an_edge() -> None:
    log = Crossed()
    rng = np.random.default_rng(7)
    with PartitionedSink(log, directed=False) as log.sink:
        log.sink._lock = MetLock(log.sink._lock, log.met)  # type: ignore[assignment]
        for _ in range(20):
            log.sink.write(edges(rng.integers(0, 50, 5), rng.integers(0, 50, 5)))
        for thread in log.marking:
            thread.join()
    marks = [[marker_of(value) for value in part] for part in log.of("updates")]
    epochs = [[epoch for epoch in own if epoch is not None] for own in marks]
    assert len(epochs[0]) == len(log.marking) > 20
    assert all(own == epochs[0] for own in epochs)
    for epoch in epochs[0]:
        cut: set[Any] = set()
        for part, own in zip(log.of("updates"), marks, strict=True):
            marker = own.index(epoch)
            cut |= content(applied(lpma.Graph(device="cpu"), part[:marker]))[0].keys()
        assert all((v, u) in cut for u, v in cut)


def test_markers_are_written_while_nothing_else_is_and_at_the_close() -> None:
    log = sharded()
    with PartitionedSink(log, epoch_interval_s=0.01):
        wait_for(lambda: len(log.of("updates")[0]) >= 3, "three markers")
    with PartitionedSink(log, epoch_interval_s=60) as sink:
        sink.write(edges([1], [2]))
    sink.close()
    marks = log.of("updates")[0]
    assert len(marks) >= 4
    assert all(marker_of(part[-1]) == marker_of(marks[-1]) for part in log.of("updates"))
    with pytest.raises(SourceError, match="closed"):
        sink.write(edges([1], [2]))
    with pytest.raises(SourceError, match="closed"):
        sink.mark()


def test_the_thread_goes_on_after_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    log = sharded()
    log.fails = 0
    with PartitionedSink(log, epoch_interval_s=0.01):
        wait_for(lambda: caplog.records, "a failure")
        log.fails = None
        wait_for(lambda: log.of("updates")[0], "a marker")
    assert "the log is away" in caplog.text


# -- what is taken --------------------------------------------------------------------------------


def test_encoded_records_are_split_in_their_order() -> None:
    log = sharded()
    own = [ingest.encode_updates([u] * 3, [1, 2, 3], producer=f"own-{u}", seq=u) for u in range(9)]
    values = [ingest.encode_row(u, u + 1, 0.5) for u in range(20)]
    values += own
    values += [ingest.encode_row(u, u + 1, kind=Kind.DELETE) for u in range(10)]
    with PartitionedSink(log, producer="shop") as sink:
        sink.produce_many("updates", values)
        sink.produce_many("updates", own)
        sink.produce_many("updates", [])
    assert log.writes == 2
    edges_there = graph_of(log)[0]
    expected = applied(lpma.Graph(device="cpu"), values)
    assert {k: w for k, (w, _) in edges_there.items()} == {
        k: w for k, (w, _) in content(expected)[0].items()
    }
    assert sum(map(len, log.of("updates"))) < len(values), "rows that follow each other are joined"


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("directed", [True, False])
def test_an_expiry_lies_in_every_partition(directed: bool, names: bool) -> None:
    """Of both topics, at its place, and once in each; it is no vertex's."""
    log = sharded(predecessors=directed)
    with PartitionedSink(log, directed=directed, predecessors=directed, names=names) as sink:
        sink.write(edges(range(20), range(5, 25), time=range(20)))
        sink.expire(12)
        sink.write(edges([1], [2], time=[3]))
    topics = ["updates", "updates.in"] if directed else ["updates"]
    for topic in topics:
        for part in log.of(topic):
            kinds = [ingest.decode_record(value, names=names).batch.kind for value in part]
            assert np.count_nonzero(np.concatenate(kinds) == Kind.EXPIRE) == 1
    held = {(u, u + 5) for u in range(12, 20)} | {(1, 2)}
    held |= set() if directed else {(v, u) for u, v in held}
    assert graph_of(log, names)[0].keys() == held


def test_rows_with_and_without_times_keep_what_they_have() -> None:
    values = [
        ingest.encode_updates([1, 2], [2, 3], time=[10, 20] if timed else None, weight=weight)
        for timed in (True, False, True)
        for weight in (None, [0.5, 2.0])
    ]
    log = MemorySink(updates=1)
    with PartitionedSink(log) as sink:
        sink.produce_many("updates", values)
    found = [ingest.decode(value) for part in log.of("updates") for value in part]
    assert [None if b.time is None else b.time.tolist() for b in found] == [
        [10, 20, 10, 20], None, [10, 20, 10, 20]
    ]  # fmt: skip
    for batch in found:
        assert batch.weight is not None
        assert batch.weight.tolist() == [1, 1, 0.5, 2]


@pytest.mark.parametrize(
    "bad, reason",
    [
        (ingest.encode_query("q1", Kind.DEGREE, 1), "client"),
        (encode_marker(7), "mark"),
        (b"\xff", "map or an array|msgpack"),
        (ingest.encode_row("ann", "bob", names=True), "names=True"),
    ],
)
def test_bad_records_are_refused_and_none_is_written(bad: bytes, reason: str) -> None:
    log = sharded()
    with PartitionedSink(log) as sink:
        with pytest.raises(RecordError, match=reason):
            sink.produce_many("updates", [ingest.encode_row(1, 2), bad])
        with pytest.raises(RecordError, match="alone"):
            sink.produce_many("queries", [ingest.encode_row(1, 2)])
        with pytest.raises(RecordError, match="client"):
            sink.write(Batch.from_columns(Kind.DEGREE, [1], [0]))
        with pytest.raises(RecordError, match="names=True"):
            sink.write(edges([1], [2]), Names(np.array([1]), np.array([2])))
        assert log.writes == 0
        sink.write(edges([1], [2]))
    assert rows_of(log) == 1


def test_one_record_of_a_producer_stays_one_in_each_partition() -> None:
    rows = 100_000
    ids = np.arange(rows) % 1000
    times = np.arange(rows)
    value = ingest.encode_updates(ids, ids + 1, times / 2, times, producer="own", seq=1)
    log = MemorySink(updates=2)
    with PartitionedSink(log) as sink:
        sink.produce_many("updates", [value])
    assert [len(part) for part in log.of("updates")] == [1, 1]
    assert rows_of(log) == rows
    ids, times = np.tile(ids, 3), np.tile(times, 3)
    value = ingest.encode_updates(ids, ids + 1, times / 2, times, producer="own", seq=2)
    one = MemorySink(updates=1)
    with PartitionedSink(one, directed=False) as sink, pytest.raises(RecordError, match="cut it"):
        sink.produce_many("updates", [value])
    assert one.writes == 0


def test_names_may_come_in_the_columns() -> None:
    log = sharded()
    alone = Batch()
    alone.add_vertex("eve")
    alone.add_vertex("ann")
    with PartitionedSink(log, names=True) as sink:
        sink.write(Batch.from_columns(Kind.INSERT, ["ann", "bob"], ["bob", "5"], names=True))
        sink.write(alone.columns(names=True))
        sink.write(edges([1, 2], [2, 5]))
        sink.write(edges([1], [2]), Names(np.array([-7]), np.array([2**64 - 1], np.uint64)))
    found, vertices = graph_of(log, names=True)
    assert found.keys() == {("ann", "bob"), ("bob", "5"), (1, 2), (2, 5), (-7, 2**64 - 1)}
    assert vertices == {"ann", "bob", "5", "eve", 1, 2, 5, -7, 2**64 - 1}
    known = lpma.Graph(device="cpu", names=True)
    known.insert("ann", "bob")
    ids_resolved = edges([0], [1])
    ids_resolved.ids_resolved = True
    with PartitionedSink(log, names=True) as sink, pytest.raises(RecordError, match="dictionary"):
        sink.write(ids_resolved)


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize(
    "name, column",
    [
        ("kind", np.zeros(2, np.uint8)),
        ("weight", np.ones(2)),
        ("weight", np.array([1, np.nan, 1])),
        ("time", np.zeros(5, np.int64)),
        ("dst", np.ones(2, np.uint32)),
    ],
)
def test_columns_that_a_caller_changed_are_refused(names: bool, name: str, column: Any) -> None:
    one = MemorySink(updates=2)
    columns = edges([1, 2, 3], [2, 3, 4])
    setattr(columns, name, column)
    with PartitionedSink(one, names=names) as sink, pytest.raises(RecordError):
        sink.write(columns)
    assert one.writes == 0


def test_the_shards_divide_the_partitions() -> None:
    for shards in (None, 1, 2, 4):
        with PartitionedSink(MemorySink(updates=4), shards=shards) as sink:
            sink.write(Batch.from_columns(Kind.REMOVE_VERTEX, [1], [0]))


@pytest.mark.parametrize("settings", [{"shards": 0}, {"shards": 3}, {"epoch_interval_s": 0}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(PipelineError):
        PartitionedSink(MemorySink(updates=4), **settings)


def test_both_topics_have_the_same_partitions() -> None:
    with pytest.raises(SourceError, match="create_sharded"):
        PartitionedSink(MemorySink(updates=4, updates_in=3), predecessors=True)


# -- the embedded log -----------------------------------------------------------------------------


def test_a_write_to_the_embedded_log_is_one_transaction(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log, SqliteLog(tmp_path / "log") as reader:
        ingest.create_sharded(log, "updates", P, predecessors=True)
        with PartitionedSink(log, predecessors=True) as sink:
            sink.write(edges(range(20), range(1, 21)))
            epoch = sink.mark()
            sink.write(edges(range(20), range(1, 21)))
        polled = reader.poll(100)
        marks = [marker_of(record.value) for record in polled]
        middle = marks.index(epoch)
        assert marks[middle : middle + P] == [epoch] * P
        assert marks.count(None) == len(marks) - P
        before = {record.partition for record in polled[:middle]}
        assert before == {Partition("updates", n) for n in range(P)}, "an epoch is a prefix"
        with pytest.raises(SourceError, match="no partition 9"):
            log.produce_parts({Partition("updates", 0): [b"1"], Partition("updates", 9): [b"2"]})
        assert reader.poll(100) == []


def test_sharded_topics_are_made_once_with_their_partitions(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        with pytest.raises(SourceError, match="there is no log"):
            log.partitions_of("updates")
        ingest.create_sharded(log, "updates", 4, predecessors=True)
        topics = ("updates", "queries", "updates.in", "queries.in")
        assert [log.partitions_of(topic) for topic in topics] == [4] * 4
        id = log.identity()
        ingest.create_sharded(log, "updates", 4, predecessors=True)
        assert log.identity() == id
        for other in (2, 6):
            if other == 6:
                log.produce("updates", ingest.encode_row(1, 2), 3)
            with pytest.raises(SourceError, match="4 partitions"):
                ingest.create_sharded(log, "updates", other)
        with pytest.raises(SourceError, match="no topic"):
            log.partitions_of("unknown")


def test_a_reader_sees_the_partitions_that_a_topic_gets(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        with SqliteLog(tmp_path / "log") as reader:
            assert reader.poll() == []
            log.create_topic("updates", 2)
            log.produce("updates", b"1", 1)
            assert [record.partition.number for record in reader.poll()] == [1]


def test_a_client_asks_the_owner(tmp_path: Path) -> None:
    vertices: list[Any] = [0, 1, 2, "ann", "bob", -5]
    with SqliteLog(tmp_path / "log") as log:
        ingest.create_sharded(log, "updates", P)
        queries = [ingest.Ask(Kind.DEGREE, vertex) for vertex in vertices]
        client = ingest.Client(log, names=True, timeout=0.2)
        with client, pytest.raises(ingest.QueryTimeout):
            client.ask_many(queries)
        with SqliteLog(log.path, topics=("queries",)) as reader:
            asked = [
                (ingest.decode_record(r.value, names=True).queries[0].src, r.partition.number)  # type: ignore[arg-type]
                for r in reader.poll()
            ]
    assert len(asked) == len(vertices)
    assert dict(asked) == dict(zip(vertices, owners_of(vertices, P).tolist(), strict=True))
