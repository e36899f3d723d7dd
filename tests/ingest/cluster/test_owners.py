"""What the partitions of a shard may hold: rows of their own vertices, and removals, which a shard
carries out for each partition by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
import lpma
import lpma.names
from ingest import Partition, PartitionedSink, SqliteLog
from ingest.cluster.epoch_source import EpochSource, NotedEpoch
from ingest.cluster.owners import Ownership, owners_in
from ingest.cluster.partitioned import create_sharded
from ingest.cluster.removals import SharedGraph
from ingest.cluster.shard import Shard
from ingest.cluster.spec import ShardSpec
from ingest.cluster.topics import in_topic
from ingest.errors import RecordError
from ingest.pipeline.record_decoder import ends_of, mapped
from ingest.types import Names
from lpma import Columns, Kind
from lpma.sharding import owners_of
from tests.conftest import soak
from tests.support.shards import MemorySink, applied, content, joined
from tests.support.waiting import HANGS_S, wait_for

END = 5  # the epoch behind all that was written
PARTITIONS = 4
IDS = st.integers(0, 7)
NAMES = st.sampled_from(["ann", "bob", "5", 5, 2**64 - 1, -3, "żółć"])
OTHERS = [Kind.DELETE, Kind.SET, Kind.SET, Kind.REMOVE_VERTEX]
KINDS = st.sampled_from([Kind.INSERT] * 6 + OTHERS + [Kind.ADD_VERTEX])
TIMED = st.sampled_from([Kind.INSERT] * 6 + OTHERS + [Kind.EXPIRE] * 2)


def written(rows: list[Any], names: bool, path: Any, **options: Any) -> list[list[bytes]]:
    """What a sink writes to each partition, one record a row of kind, ends and perhaps time."""
    log = MemorySink(updates=PARTITIONS, updates_in=PARTITIONS)
    with PartitionedSink(log, names=names, **options) as sink:
        for at, (kind, u, v, *time) in enumerate(rows):
            at = time[0] if time else at
            if names:
                src, dst = np.empty(1, object), np.empty(1, object)
                src[0], dst[0] = u, v
                sink.write(Columns.validated([kind], [0], [0], None, [at]), Names(src, dst))
            else:
                sink.write(Columns.validated([kind], [u], [v], None, [at]))
    return log.of(path)


def batches(order: list[tuple[int, bytes]], names: Any) -> Columns:
    """Records in the order in which a shard read them, as one batch."""
    ownership = Ownership(PARTITIONS)
    parts = []
    for number, data in order:
        record = ingest.decode_record(data, names=names is not None)
        batch = record.batch
        if record.names is not None:
            batch = mapped(names, batch, ends_of(record.names))
        parts.append(ownership.owned(Partition("updates", number), batch, names))
    kind, src, dst, times = (
        np.concatenate([np.asarray(getattr(part, name)) for part in parts])
        for name in ("kind", "src", "dst", "time")
    )
    return Columns(kind, src, dst, None, times, ids_resolved=names is not None)


@pytest.mark.soak
@pytest.mark.parametrize("names", [False, True])
@given(data=st.data(), directed=st.booleans(), into=st.booleans())
@settings(max_examples=soak(60, 1500), deadline=None)
def test_a_removal_is_exact_whatever_the_order_between_partitions(
    device: str, names: bool, data: st.DataObject, directed: bool, into: bool
) -> None:
    """A shard of several partitions holds what as many shards of one would, wherever its batches
    are cut."""
    vertices = NAMES if names else IDS
    rows = data.draw(st.lists(st.tuples(KINDS, vertices, vertices), max_size=30))
    check_any_order(device, names, data, directed, into, rows)


@pytest.mark.soak
@pytest.mark.parametrize("names", [False, True])
@given(data=st.data(), directed=st.booleans(), into=st.booleans())
@settings(max_examples=soak(60, 1500), deadline=None)
def test_an_expiry_is_exact_whatever_the_order_between_partitions(
    device: str, names: bool, data: st.DataObject, directed: bool, into: bool
) -> None:
    """As above, with times in no order."""
    vertices = NAMES if names else IDS
    row = st.tuples(TIMED, vertices, vertices, st.integers(-5, 20))
    rows = data.draw(st.lists(row, max_size=30))
    check_any_order(device, names, data, directed, into, rows)


def check_any_order(
    device: str, names: bool, data: st.DataObject, directed: bool, into: bool, rows: list[Any]
) -> None:
    topic = in_topic("updates") if into and directed else "updates"
    options = {"directed": directed, "predecessors": directed}
    parts = written(rows, names, topic, **options)
    alone = [applied(lpma.Graph(device=device, names=names), part) for part in parts]
    expected = joined(map(content, alone))
    graph = SharedGraph.of(PARTITIONS)(device=device, names=names)
    left = [list(part) for part in parts]
    while any(left):
        order = []
        for _ in range(data.draw(st.integers(1, 12))):
            ready = [number for number in range(PARTITIONS) if left[number]]
            if ready:
                number = data.draw(st.sampled_from(ready))
                order.append((number, left[number].pop(0)))
        graph.apply(batches(order, graph.names))
    graph.check()
    assert content(graph) == expected
    assert graph.expired == sum(each.expired for each in alone)


def test_a_vertex_that_came_back_stays(device: str) -> None:
    """Its own partition has removed it and added it again; the other's copy comes later."""
    v = vertex_of(0, 2)
    kinds = [Kind.ADD_VERTEX, Kind.REMOVE_VERTEX, Kind.ADD_VERTEX, Kind.REMOVE_VERTEX]
    columns = Columns.validated(kinds, [v] * 4, [0, 0, 0, 1], None, range(4))
    for size in (1, 4):
        graph = SharedGraph.of(2)(device=device)
        for first in range(0, 4, size):
            graph.apply(columns.rows(first, first + size))
        assert graph.has_vertices([v]).tolist() == [True]
        graph.apply(Columns.validated([Kind.REMOVE_VERTEX], [v], [0], None, [9]))
        assert graph.has_vertices([v]).tolist() == [False]


def test_queries_beside_removals_are_answered_at_their_place(device: str) -> None:
    graph = SharedGraph.of(2)(device=device)
    u = next(v for v in range(9) if owners_of(v, 2)[0] == 0)
    w = next(v for v in range(9) if owners_of(v, 2)[0] == 1)
    kinds = [Kind.INSERT, Kind.INSERT, Kind.DEGREE, Kind.REMOVE_VERTEX, Kind.DEGREE, Kind.DEGREE]
    columns = Columns.validated(kinds, [u, w, u, 20, u, w], [20, 20, 0, 0, 0, 0], None, range(6))
    answers: Any = graph.apply(columns)
    assert [int(answers[i][0]) for i in range(3)] == [1, 0, 1], "those of partition 0 alone"


# In a shard ----------------------------------------------------------------------------------


def killed_at_the_end(spec: ShardSpec) -> Any:
    """The pipeline of a shard that was killed when it had closed the epoch `END`."""
    shard = Shard(spec)
    shard.start()
    assert shard.closed(END, HANGS_S) is not None, shard.status().problem
    shard.kill()
    return shard._pipelines[0].pipeline


def letters_of(path: str) -> list[ingest.DeadLetter]:
    with SqliteLog(path, ["dead-letters"]) as log:
        values = [one.value for one in log.poll(10_000)]
    return [ingest.decode_dead_letter(value) for value in values if isinstance(value, bytes)]


def vertex_of(number: int, partitions: int = PARTITIONS, start: int = 0) -> int:
    return next(v for v in range(start, 10**6) if owners_of(v, partitions)[0] == number)


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_a_removal_survives_a_kill(tmp_path: Path, shards: int) -> None:
    """As at first, so when the journal is replayed, and beside the checkpoint of before."""
    rng = np.random.default_rng(2)
    with SqliteLog(tmp_path / "log") as log:
        create_sharded(log, "updates", PARTITIONS)
        whole = lpma.Graph(device="cpu")
        with PartitionedSink(log) as sink:
            for _ in range(30):
                columns = lpma.Batch.from_columns(Kind.INSERT, *rng.integers(0, 20, (2, 10)))
                remove = lpma.Batch.from_columns(Kind.REMOVE_VERTEX, rng.integers(0, 20, 1), [0])
                for batch in (columns, remove):
                    sink.write(batch)
                    whole.apply(batch)
            sink.mark(END)
        found = []
        for number in range(shards):
            for _ in range(2):
                spec = ShardSpec(log.path, None, number, shards, str(tmp_path / "state"))
                pipeline = killed_at_the_end(spec)
            found.append({key: w for key, (w, _) in content(pipeline.graph)[0].items()})
        assert letters_of(log.path) == []
    expected = {key: w for key, (w, _) in content(whole)[0].items()}
    assert {key: w for part in found for key, w in part.items()} == expected


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_an_expiry_survives_a_kill(tmp_path: Path, shards: int) -> None:
    """As above; times are there to be compared, too."""
    rng = np.random.default_rng(3)
    with SqliteLog(tmp_path / "log") as log:
        create_sharded(log, "updates", PARTITIONS)
        whole = lpma.Graph(device="cpu")
        with PartitionedSink(log) as sink:
            for at in range(0, 300, 10):
                ends, times = rng.integers(0, 20, (2, 10)), at + rng.integers(-40, 10, 10)
                columns = lpma.Batch.from_columns(Kind.INSERT, ends[0], ends[1], time=times)
                sink.write(columns)
                sink.expire(at - 20)
                whole.apply(columns)
                whole.expire(at - 20)
            sink.mark(END)
        found: dict[Any, Any] = {}
        expired = 0
        for number in range(shards):
            for _ in range(2):
                spec = ShardSpec(log.path, None, number, shards, str(tmp_path / "state"))
                pipeline = killed_at_the_end(spec)
            found |= content(pipeline.graph)[0]
            expired += pipeline.stats.expired
        assert expired == whole.expired
        assert letters_of(log.path) == []
    assert found == content(whole)[0]
    assert len(found) > 10


def test_an_edge_touched_in_the_batch_has_its_new_time_at_an_expiry() -> None:
    u = vertex_of(0, 2)
    for kind, weight in ((Kind.INSERT, 2.0), (Kind.SET, 1.0)):
        kinds = [kind, Kind.EXPIRE, kind, Kind.EXPIRE]
        graph = SharedGraph.of(2)(device="cpu")
        graph.insert([u, u, u], [1, 2, 3], time=[10, 90, 10])
        batch = Columns.validated(kinds, [u, 0, u, 0], [1, 0, 2, 0], None, [50, 20, 5, 20])
        graph.apply(batch)
        assert content(graph)[0] == {(u, 1): (weight, 50)}


def test_an_expiry_is_no_update_that_a_graph_is_as_of() -> None:
    """In a shard of several partitions, too, the graph's time is that of another operation."""
    u = vertex_of(0, 2)
    kinds = [Kind.EXPIRE, Kind.INSERT, Kind.EXPIRE, Kind.EXPIRE]
    for at in (1, 2, 4):
        graph = SharedGraph.of(2)(device="cpu")
        graph.insert([u, u], [1, 2], time=[10, 20])
        times = [15, 30, 25, 99]
        graph.apply(Columns.validated(kinds, [0, u, 0, 0], [0, 5, 0, 1], None, times).rows(0, at))
        assert graph.time == (20 if at == 1 else 30)
        assert graph.num_edges == (1 if at in (1, 4) else 2)


@pytest.mark.parametrize("many", [False, True])
def test_a_row_in_a_wrong_partition_is_a_dead_letter(tmp_path: Path, many: bool) -> None:
    """Small records that are decoded together stay apart then, so nothing beside it is lost."""
    mine, others = vertex_of(0), vertex_of(3)
    with SqliteLog(tmp_path / "log") as log:
        create_sharded(log, "updates", PARTITIONS)
        records = [ingest.encode_row(mine, n) for n in range(20 if many else 3)]
        wrong = ingest.encode_row(others, 9)
        records.insert(2, wrong)
        records.append(ingest.encode_updates([mine, others, mine], [1, 2, 50]))
        log.produce_many("updates", records, 0)
        for _ in range(2):  # told once: when it is started again, and replays
            shard = Shard(ShardSpec(log.path, None, 0, 2, str(tmp_path / "state")))
            shard.start()
            edges = len(records) - 2
            wait_for(lambda: shard.status().edges == edges, f"{edges} edges")  # noqa: B023
            assert shard.status().operations == edges
            pipeline: Any = shard._pipelines[0].pipeline
            assert pipeline.outputs.rejected_by == {"misplaced": 2}
            shard.kill()
        letters = {letter.offset: letter for letter in letters_of(log.path)}
    assert sorted(letters) == [2, len(records) - 1]
    assert letters[2].value == wrong
    assert f"vertex {others} belongs in partition 3 of 'updates', not in 0" in letters[2].reason
    assert letters[len(records) - 1].reason.startswith("row 1: ")
    assert "PartitionedSink" in letters[2].reason


@pytest.mark.parametrize("kind", [Kind.INSERT, Kind.DELETE, Kind.SET, Kind.ADD_VERTEX])
@pytest.mark.parametrize("partitions", [1, 4, 300])
def test_what_belongs_passes(kind: Kind, partitions: int) -> None:
    number = int(owners_of([7], partitions)[0])
    batch = Columns.validated([kind], [7], [8], None, None)
    ownership = Ownership(partitions)
    assert ownership.owned(Partition("updates", number), batch, None) is batch
    if partitions > 1:
        with pytest.raises(RecordError, match=f"vertex 7 belongs in partition {number} of"):
            ownership.owned(Partition("updates", (number + 1) % partitions), batch, None)


@given(st.lists(st.one_of(NAMES, st.text(min_size=1, max_size=9), IDS), min_size=1, max_size=40))
@settings(max_examples=soak(60, 1000), deadline=None)
def test_names_belong_where_the_specification_says(names: list[Any]) -> None:
    """Each by itself, as more names come, against `owners_of`."""
    dictionary, ownership = lpma.names.Names(), Ownership(3)
    for name in names:
        column = np.empty(1, object)
        column[0] = name
        unnamed = Columns.validated([Kind.INSERT], [0], [0], None, None)
        batch = mapped(dictionary, unnamed, ends_of(Names(column, column)))
        owner = int(owners_of([name], 3)[0])
        ownership.owned(Partition("updates", owner), batch, dictionary)
        with pytest.raises(RecordError, match=f"belongs in partition {owner}") as told:
            ownership.owned(Partition("updates", (owner + 1) % 3), batch, dictionary)
        assert f"{name!r:.80}" in str(told.value)
    unknown = Columns.validated([Kind.DELETE], [lpma.names.UNKNOWN], [0], None, None)
    assert ownership.owned(Partition("updates", 0), unknown, dictionary) is unknown


@given(
    st.sampled_from([np.uint32, np.uint64, np.int64, np.int32, np.uint8]),
    st.integers(1, 2**16),
    st.lists(st.integers(0, 2**64 - 1), max_size=50),
)
@settings(max_examples=soak(200, 5000), deadline=None)
def test_owners_are_those_of_the_specification(dtype: Any, count: int, values: list[int]) -> None:
    ids = np.array(values, np.uint64).astype(dtype)
    assert owners_in(ids, count).tolist() == owners_of(ids, count).tolist()


def test_a_pipeline_that_is_no_shard_takes_any_vertex(tmp_path: Path) -> None:
    batch = Columns.validated(Kind.INSERT, [3, 4], [1, 2], None, None)
    place = Partition("updates", 1)
    with SqliteLog(tmp_path / "log") as log:
        assert log.owned(place, batch, None) is batch
        shards = EpochSource(log, [], NotedEpoch(tmp_path / "epoch"), Ownership(2))
        with pytest.raises(ingest.RecordError):
            shards.owned(place, batch, None)
