"""What is given to a sink or a cluster is checked before anything is opened or written: whatever it
is, the error has a type of ours and says what is expected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ingest
import lpma
from ingest import (
    Cluster,
    ClusterError,
    PartitionedSink,
    PipelineError,
    RecordError,
    Repartition,
    SqliteLog,
    create_sharded,
)
from tests.ingest.cluster.repartitioning import polled_of
from tests.support.shards import MemorySink

ROW = ingest.encode_row(1, 2)
ODD = [None, 5, 1.5, True, b"x", "x", [], {}, {"a": 1}, object(), float("nan"), float("inf")]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteLog]:
    with SqliteLog(tmp_path / "log") as log:
        create_sharded(log, "updates", 2)
        yield log


# -- the sink -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values", [ROW, bytearray(ROW), memoryview(ROW), "x", None, 5, [None], [bytearray(ROW)], ["x"],
               [ROW, 5], [[ROW]], [ROW] * 20 + [None]]
)  # fmt: skip
def test_a_write_takes_a_list_of_encoded_records(values: Any) -> None:
    log = MemorySink(updates=2)
    said = r"expected (a list of encoded records|bytes, as)"
    with PartitionedSink(log) as sink, pytest.raises(RecordError, match=said):
        sink.produce_many("updates", values)
    assert log.writes == 0


@pytest.mark.parametrize("columns", [None, [1, 2], lpma.Batch(), b"x"])
def test_a_write_takes_columns(columns: Any) -> None:
    log = MemorySink(updates=2)
    with PartitionedSink(log) as sink, pytest.raises(RecordError, match=r"batch\.columns\(\)"):
        sink.write(columns)
    assert log.writes == 0


@pytest.mark.parametrize("epoch", ["x", 1.5, True, b"x", 2**63, [1]])
def test_an_epoch_is_a_number(epoch: Any) -> None:
    log = MemorySink(updates=2)
    with PartitionedSink(log) as sink, pytest.raises(RecordError, match="epoch"):
        sink.mark(epoch)
    assert log.writes == 0


@pytest.mark.parametrize("sink", ["log", None, 5, [].append])
def test_a_sink_is_a_log(sink: Any, tmp_path: Path) -> None:
    for make in (
        lambda: PartitionedSink(sink),
        lambda: create_sharded(sink, "updates", 2),
        lambda: Repartition(SqliteLog(tmp_path / "log"), sink, "updates", tmp_path / "progress"),
    ):
        with pytest.raises(PipelineError, match=r"give an ingest\.SqliteLog or an ingest\.KafkaS"):
            make()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("source", ["", 5, "x" * 65, "é" * 33, b"x", "\ud800"])
def test_a_producers_name_is_text(source: Any) -> None:
    with pytest.raises(PipelineError, match="names no producer"):
        PartitionedSink(MemorySink(updates=2), producer=source)
    longest = "é" * 32
    with PartitionedSink(MemorySink(updates=2), producer=longest) as sink:
        sink.produce_many("updates", [ROW])


FLAGS = [
    ({flag: value}, f"{flag} is .*True or False")
    for flag in ("directed", "predecessors", "names")
    for value in ("no", None, 1)
]
SINK = [
    *FLAGS,
    *[({"epoch_interval_s": value}, "positive number of seconds")
      for value in ("1", True, 0, -1, float("inf"), float("nan"), 1e12, [1])],
    *[({"shards": value}, "divisor of the 2") for value in ("2", 2.0, True, 3, 0)],
]  # fmt: skip


@pytest.mark.parametrize(("options", "told"), SINK)
def test_a_sinks_settings_are_looked_at(options: dict[str, Any], told: str) -> None:
    with pytest.raises(PipelineError, match=told):
        PartitionedSink(MemorySink(updates=2), **options)


@pytest.mark.parametrize("partitions", ["2", 2.0, None, True, 0, -1])
def test_partitions_are_a_number(partitions: Any, log: SqliteLog) -> None:
    with pytest.raises(PipelineError, match=r"partitions is .*at least 1"):
        create_sharded(log, "more", partitions, queries="asked")
    assert "more" not in log.topic_names()


# -- a cluster ------------------------------------------------------------------------------------

CLUSTER = [
    ({"devices": 5}, "devices is 5: expected 'cpu', 'cuda'"),
    ({"devices": {}}, "devices is {}: expected"),
    ({"devices": {"a": 1}}, "devices is .*: expected"),
    ({"devices": ["cpu", None]}, "devices is .*: expected"),
    ({"devices": b"cpu"}, "devices is .*: expected"),
    *[({"checkpoint": value}, "checkpoint is .*as text or") for value in (None, 5, b"", b"x")],
    *[({"keep": value}, "keep is .*: name a dir.* or a URI") for value in (b"", 5, True, ["x"])],
    *FLAGS,
    *[({"kafka_settings": value}, "kafka_settings is .*dictionary") for value in (5, "x", [1])],
    *[({"epoch_interval_s": value}, "positive number of seconds")
      for value in ("1", True, 0, float("inf"), float("nan"), 1e12)],
]  # fmt: skip


@pytest.mark.parametrize(("options", "told"), CLUSTER)
def test_what_a_cluster_is_given_is_looked_at(
    options: dict[str, Any], told: str, log: SqliteLog, tmp_path: Path
) -> None:
    before = log.topic_names()
    with pytest.raises(ClusterError, match=told):
        Cluster(log, 2, **{"checkpoint": tmp_path / "state", **options})
    assert not (tmp_path / "state").exists()
    assert log.topic_names() == before


@pytest.mark.parametrize("option", [{"track": 5}, {"track": [[1]]}, {"reply_topics": 5}])
def test_a_pipelines_settings_are_looked_at(
    option: dict[str, Any], log: SqliteLog, tmp_path: Path
) -> None:
    with pytest.raises(PipelineError, match=next(iter(option))):
        Cluster(log, 2, checkpoint=tmp_path / "state", **option)
    with pytest.raises(PipelineError, match=next(iter(option))):
        ingest.Settings(**option)


def test_only_what_a_cluster_takes_is_recommended(log: SqliteLog, tmp_path: Path) -> None:
    for name in ("record", "devic", "recordz", "colour"):
        with pytest.raises(ingest.errors.UnknownSetting) as told:
            Cluster(log, 2, checkpoint=tmp_path / "state", **{name: 1})  # type: ignore[arg-type]
        hint = str(told.value).partition(f"{name!r}: ")[2]
        for refused in ("records", "device"):
            assert refused not in hint.removesuffix("?").replace(",", "").split()
    with pytest.raises(ingest.errors.UnknownSetting, match="did you mean devices"):
        Cluster(log, 2, checkpoint=tmp_path / "state", devics="cpu")
    with pytest.raises(ingest.errors.UnknownSetting, match="did you mean records"):
        ingest.Pipeline(log, lpma.Graph(device="cpu"), record=1)  # type: ignore[call-arg]


NAMES = """devices checkpoint keep kafka_settings epoch_interval_s directed names predecessors topic
queries engine shards track reply_topics"""


@given(st.sampled_from(ODD), st.sampled_from(NAMES.split()))
def test_no_other_error_is_raised(value: Any, name: str) -> None:
    """Of a log that is not there, so that nothing is ever begun."""
    options: dict[str, Any] = {"shards": 2, "checkpoint": "never", name: value}
    with pytest.raises(lpma.LpmaError):
        Cluster("/nowhere/log", **options)
    assert not Path("never").exists()


def test_nothing_was_written(log: SqliteLog) -> None:
    with PartitionedSink(log) as sink:
        for values in (ROW, [ROW, None], [ROW, b"\xff"]):
            with pytest.raises(RecordError):
                sink.produce_many("updates", values)  # type: ignore[arg-type]
    assert polled_of(log.path, ["updates"]) == []
    assert "updates.directed.ids" not in log.topic_names()
