"""Sliding windows: after each batch the graph holds what the window says, and nothing else."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
import lpma
from ingest import Partition, Pipeline, PipelineError, SqliteLog
from ingest.pipeline.batching import Batcher, BufferedRows
from ingest.pipeline.windows import bound_of, slide, width_of
from lpma import Kind
from lpma.errors import OutOfMemory
from tests.conftest import soak
from tests.support.stream_model import SavedModel
from tests.support.topics import dead_letters, replies
from tests.support.window_model import (
    HIGHEST,
    LOWEST,
    STAMP,
    Op,
    WindowModel,
    record_of,
    records,
    small_times,
    widths,
)


def numbered(stream: list[list[Op]]) -> list[bytes]:
    return [record_of(ops, f"q{i}") for i, ops in enumerate(stream)]


def flat(stream: list[list[Op]]) -> list[Op]:
    return [op for ops in stream for op in ops]


def edges_of(pipeline: Pipeline) -> dict[Any, Any]:
    model = pipeline.graph
    assert isinstance(model, SavedModel)
    return model.state


def where(pipeline: Pipeline) -> tuple[Any, ...]:
    """All that must be the same after a resume."""
    model: Any = pipeline.graph
    return (
        model.content(),
        pipeline.stats.expired_before,
        pipeline.stats.operations,
        pipeline.stats.expired,
    )


def opened(log: SqliteLog, graph: Any = None, *more: Any, **given: Any) -> Pipeline:
    options: dict[str, Any] = {
        "clock": lambda: STAMP, "batch_interval": 100.0, "max_ahead": None, **given
    }  # fmt: skip
    return Pipeline(log, graph if graph is not None else SavedModel(), *more, **options)


# A width -------------------------------------------------------------------------------------


@pytest.mark.parametrize("given, width", [
    ("24h", 86_400_000), ("90 s", 90_000), ("7d", 604_800_000), ("1w", 604_800_000), ("5ms", 5),
    ("2m", 120_000), ("2min", 120_000), ("86400", 86_400), (86_400, 86_400), (0, 0), ("0", 0),
    (timedelta(hours=1), 3_600_000), (HIGHEST, HIGHEST), (None, None), ("none", None),
])  # fmt: skip
def test_a_width_is_text_a_timedelta_or_a_number(given: Any, width: Any) -> None:
    assert width_of(given) == width


@pytest.mark.parametrize("given", [
    "", "h", "24 hours", "1.5h", "-1", -1, 1.5, True, 2**63, "99999999999999d", [1],
    timedelta(microseconds=1), timedelta(seconds=-1), "24h ago", "2H",
])  # fmt: skip
def test_what_is_no_width_is_refused(given: Any) -> None:
    with pytest.raises(PipelineError, match="window"), SqliteLog(":memory:") as log:
        Pipeline(log, SavedModel(), window=given)


@given(st.integers(LOWEST, HIGHEST), st.integers(0, HIGHEST))
def test_no_bound_leaves_64_bits(newest: int, width: int) -> None:
    bound = bound_of(newest, width)
    assert bound == (newest - width if newest - width >= LOWEST else None)


# After each batch ----------------------------------------------------------------------------


@pytest.mark.soak
@given(records(), widths, st.integers(1, 9), st.booleans())
@settings(max_examples=soak(150, 5000), deadline=None)
def test_each_batch_ends_as_the_model_says(
    stream: list[list[Op]], width: int, batch_size: int, arrival: bool
) -> None:
    """Its edges with their weights and times, its queries' answers, the bound, what was late."""
    model, now = WindowModel(width, arrival), [STAMP]
    with SqliteLog(":memory:") as log:
        got: dict[str, Any] = {}
        pipeline = opened(
            log, batch_size=batch_size, window=width, clock=lambda: now[0],
            window_time="arrival" if arrival else "event",
            replies=lambda reply: got.__setitem__(reply.id, bool(reply.answer.found[0])),
        )  # fmt: skip
        asked: dict[str, bool] = {}
        for i, ops in enumerate(stream):
            now[0] += (i % 3) * 7  # it stands still, too
            log.produce("updates", record_of(ops, f"q{i}"))
            for at in range(0, len(ops), batch_size):
                part = ops[at : at + batch_size]
                assert pipeline.step(drain=True) == len(part)
                asked |= {f"q{i}": found for found in model.batch(part, now[0])}
                assert edges_of(pipeline) == model.edges
                assert pipeline.stats.expired_before == model.bound
                assert pipeline.stats.late_by_window == model.late
                assert pipeline.stats.expired == model.expired
        assert sum(batch.expired for batch in pipeline.stats.history) == model.expired
        assert got == asked


@given(records(), widths, st.integers(1, 30))
@settings(max_examples=soak(100, 3000), deadline=None)
def test_records_that_wait_are_cut_into_batches_all_the_same(
    stream: list[list[Op]], width: int, batch_size: int
) -> None:
    """Where a batch holds several records, and some a part of one."""
    model, ops = WindowModel(width), flat(stream)
    with SqliteLog(":memory:") as log:
        log.produce_many("updates", numbered(stream))
        pipeline = opened(log, batch_size=batch_size, window=width)
        pipeline.run(until="end")
        sizes = [batch.operations for batch in pipeline.stats.history]
        for start, size in zip(np.cumsum([0, *sizes]).tolist(), sizes, strict=False):
            model.batch(ops[start : start + size])
        assert edges_of(pipeline) == model.edges
        assert (pipeline.stats.late_by_window, pipeline.stats.expired_before) == (
            model.late,
            model.bound,
        )
        assert pipeline.stats.expired == model.expired


@given(records(weights=st.sampled_from([None, 1.0, 0.5])), widths)
@settings(max_examples=soak(60, 2000), deadline=None)
def test_where_weights_only_grow_edges_and_times_do_not_depend_on_the_cuts(
    stream: list[list[Op]], width: int
) -> None:
    stream = [[op for op in ops if op.kind is not Kind.EXPIRE] for ops in stream]
    data = numbered([ops for ops in stream if ops])
    ends = []
    for batch_size in (1, 2, 3, 7, 1000):
        with SqliteLog(":memory:") as log:
            log.produce_many("updates", data)
            pipeline = opened(log, batch_size=batch_size, window=width)
            pipeline.run(until="end")
            edges = {key: time for key, (_, time) in edges_of(pipeline).items()}
            ends.append((edges, pipeline.stats.expired_before, pipeline.stats.late_by_window))
    assert all(end == ends[0] for end in ends)


def test_queries_see_the_graph_before_the_expiry_of_their_batch(log: SqliteLog) -> None:
    """And those of the next batch after it."""
    ask = [ingest.encode_query(f"q{i}", Kind.EDGE, 1, 2) for i in range(3)]
    log.produce_many("updates", [
        ingest.encode_row(1, 2, time=10), ask[0], ingest.encode_row(3, 4, time=100), ask[1], ask[2],
    ])  # fmt: skip
    pipeline = opened(log, batch_size=4, window=50)
    pipeline.run(until="end")
    assert {r.id: r.answer.found.tolist() for r in replies(log)} == {  # type: ignore[union-attr]
        "q0": [True], "q1": [True], "q2": [False],
    }  # fmt: skip


def test_nothing_is_added_to_a_batch_where_the_bound_stands(log: SqliteLog) -> None:
    class Noting(SavedModel):
        def apply(self, batch: Any) -> list[Any]:
            kinds.append(batch.kind.tolist())
            return super().apply(batch)

    kinds: list[list[int]] = []
    rows = [(1, 2, 100), (2, 3, 100), (3, 4, 99), (4, 5, 49), (5, 6, 101), (6, 7, None)]
    log.produce_many("updates", [ingest.encode_row(u, v, time=t) for u, v, t in rows])
    pipeline = opened(log, Noting(), batch_size=1, window=50)
    pipeline.run(until="end")
    assert kinds == [[0, 4], [0], [0], [0, 4], [0, 4], [0]]
    assert (pipeline.stats.late_by_window, pipeline.stats.expired_before) == (1, 51)
    assert set(edges_of(pipeline)) == {(1, 2), (2, 3), (3, 4), (5, 6), (6, 7)}


def test_an_operation_without_a_time_moves_no_window_of_event_time(log: SqliteLog) -> None:
    """Its stamp may be in another unit: here seconds, where stamps are milliseconds."""
    log.produce_many("updates", [
        ingest.encode_row(1, 2, time=1_000), ingest.encode_row(3, 4),
        ingest.encode_row(1, 2, kind=Kind.DELETE), ingest.encode_query("q", Kind.DEGREE, 1),
        ingest.encode_row(5, 6, time=1_010),
    ])  # fmt: skip
    pipeline = opened(log, batch_size=1, window=60)
    pipeline.run(until="end")
    assert pipeline.stats.expired_before == 950
    assert set(edges_of(pipeline)) == {(3, 4), (5, 6)}


def test_a_window_by_arrival_takes_stamps_for_times(log: SqliteLog) -> None:
    now = [1000]
    pipeline = opened(log, window="1s", window_time="arrival", clock=lambda: now[0])
    log.produce("updates", ingest.encode_updates([1, 2], [2, 3], time=[HIGHEST, LOWEST]))
    pipeline.step(drain=True)
    assert edges_of(pipeline) == {(1, 2): (1.0, 1000), (2, 3): (1.0, 1000)}
    now[0] = 1500
    log.produce("updates", ingest.encode_row(3, 4, time=7))
    pipeline.step(drain=True)
    now[0] = 2001
    log.produce("queries", ingest.encode_query("q", Kind.DEGREE, 1))
    pipeline.step(drain=True)
    assert edges_of(pipeline) == {(3, 4): (1.0, 1500)}
    assert pipeline.stats.expired_before == 1001
    log.produce("updates", ingest.encode_expire(1501))
    pipeline.step(drain=True)
    assert edges_of(pipeline) == {}


def test_the_stamp_of_a_bad_record_moves_no_window() -> None:
    """It is no operation: whether it came with this batch or the next is not in the journal."""
    batcher, place = Batcher(10, 10, 10), Partition("updates", 0)
    row = ingest.decode(ingest.encode_row(1, 2))
    batcher.add([BufferedRows(place, 0, 1000, row), BufferedRows(place, 1, 5000)])
    assert slide(batcher.take(10, 10), 500, 100, arrival=True) == (1000, 900, 0)


def test_a_query_that_is_refused_moves_a_window_by_arrival(log: SqliteLog) -> None:
    """A batch with nothing to apply but what expires."""
    now = [1000]
    pipeline = opened(log, window=100, window_time="arrival", clock=lambda: now[0])
    log.produce("updates", ingest.encode_row(1, 2))
    pipeline.step(drain=True)
    now[0] = 5000
    log.produce("queries", ingest.encode_query("q", Kind.HOPS, 1, steps=9))
    pipeline.step(drain=True)
    assert edges_of(pipeline) == {}


def test_a_batch_that_found_no_memory_moves_the_window_once(log: SqliteLog) -> None:
    class Short(SavedModel):
        calls = 0

        def apply(self, batch: Any) -> list[Any]:
            self.calls += 1
            if self.calls == 2:
                raise OutOfMemory("none left")
            return super().apply(batch)

    log.produce_many("updates", [ingest.encode_row(1, 2, time=t) for t in (5, 100, 20)])
    pipeline = opened(log, Short(), batch_size=1, window=10)
    pipeline.step()
    with pytest.raises(OutOfMemory):
        pipeline.step()
    assert (pipeline.stats.expired_before, pipeline.stats.late_by_window) == (-5, 0)
    pipeline.run(until="end")
    assert (pipeline.stats.expired_before, pipeline.stats.late_by_window) == (90, 1)
    assert edges_of(pipeline) == {}


# Late ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["dead-letter", "reject"])
def test_a_late_policy_keeps_out_what_lies_outside_the_window(tmp_path: Path, policy: Any) -> None:
    """Also where only another partition has moved the window on, which lateness alone ignores."""
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("wide", 2)
        rows = [(0, 1, 100), (1, 2, 70), (1, 3, 69), (0, 4, 80), (1, 5, 95), (0, 6, 60)]
        for partition, v, time in rows:
            log.produce("wide", ingest.encode_row(v, v, time=time), partition=partition)
            log.produce("wide", ingest.encode_expire(-5), partition=partition)
    source = SqliteLog(tmp_path / "log", topics=("wide",))
    kept: list[ingest.DeadLetter] = []
    pipeline = opened(source, window=30, late=policy, max_lateness=1000, dead_letters=kept.append)
    pipeline.run(until="end")
    late = [ingest.decode(letter.value).src.tolist() for letter in kept]
    assert sorted(late) == [[3], [6]]
    assert pipeline.stats.late_by_window == 0
    assert all("30 behind the stream's" in letter.reason for letter in kept)
    source.close()


def test_without_a_policy_they_are_counted_and_never_seen_after_their_batch(log: SqliteLog) -> None:
    log.produce_many("updates", [
        ingest.encode_row(1, 2, time=100), ingest.encode_row(3, 4, time=10),
        ingest.encode_query("q", Kind.EDGE, 3, 4),
    ])  # fmt: skip
    pipeline = opened(log, batch_size=1, window=50)
    pipeline.run(until="end")
    assert (pipeline.stats.late_by_window, pipeline.outputs.rejected) == (1, 0)
    assert edges_of(pipeline) == {(1, 2): (1.0, 100)}
    (reply,) = replies(log)
    assert reply.answer.found.tolist() == [False]  # type: ignore[union-attr]


@pytest.mark.parametrize("policy", ["dead-letter", "reject"])
def test_an_expiry_is_never_late_and_makes_nothing_late(log: SqliteLog, policy: Any) -> None:
    log.produce_many("updates", [
        ingest.encode_row(1, 2, time=100), ingest.encode_expire(5), ingest.encode_expire(10**9),
        ingest.encode_row(3, 4, time=100),
        ingest.encode_updates([0, 5, 0], [0, 6, 0], time=[10**10, 100, 3], kind=[4, 0, 4]),
    ])  # fmt: skip
    pipeline = opened(log, late=policy, max_lateness=0)
    pipeline.run(until="end")
    assert pipeline.outputs.rejected == 0
    assert set(edges_of(pipeline)) == {(5, 6)}


# An expiry as a record -----------------------------------------------------------------------


def test_an_expiry_without_times_is_a_dead_letter_that_says_so(device: str, log: SqliteLog) -> None:
    log.produce_many("updates", [
        ingest.encode_row(1, 2), ingest.encode_expire(10**15),
        ingest.encode_updates([3, 0], [4, 0], time=[1, 2], kind=[0, 4]), ingest.encode_row(5, 6),
    ])  # fmt: skip
    graph = lpma.Graph(device=device, times=False)
    pipeline = opened(log, graph)
    pipeline.run(until="end")
    assert graph.num_edges == 2
    letters = dead_letters(log)
    assert [letter.offset for letter in letters] == [1, 2]
    assert all("times=True" in letter.reason for letter in letters)
    assert pipeline.outputs.rejected_by == {"unserved": 2}


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("undirected", [False, True])
def test_expiries_of_every_form_reach_the_store(device: str, names: bool, undirected: bool) -> None:
    """Rows, columns and JSON, with ids and names, which an expiry gives to nothing."""
    fields = ingest.Fields(time="time", kind="kind")
    with SqliteLog(":memory:") as log:

        def add(u: int, v: int, time: int) -> bytes:
            return ingest.encode_row(u, v, time=time, names=names)

        graph = lpma.Graph(device=device, directed=not undirected, predecessors=True, names=names)
        pipeline = opened(log, graph, records=fields)
        counts = []
        for data in (
            ingest.encode_expire(11),
            ingest.encode_updates([7, 9], [8, 9], time=[50, 12], kind=[0, 4], names=names),
            b'{"kind": "expire", "time": 13}',
            ingest.encode_updates([99], [98], time=[30], kind=[4], names=names),
        ):
            log.produce_many("updates", [add(1, 2, 10), add(2, 3, 11), add(4, 5, 12), data])
            pipeline.run(until="end")
            graph.check()
            counts.append(graph.num_edges)
        assert counts == [2, 2, 1, 1]
        assert graph.num_edges == 1
        if names:
            assert graph.names is not None
            assert len(graph.names) == 7, "1 2 3 4 5 7 8"


# The store itself ----------------------------------------------------------------------------


@pytest.mark.soak
@given(records(most=14), widths, st.integers(1, 9), st.sampled_from(["directed", "predecessors",
       "undirected"]), st.booleans())  # fmt: skip
@settings(max_examples=soak(60, 1500), deadline=None)
def test_the_store_holds_what_the_model_holds(
    device: str, stream: list[list[Op]], width: int, batch_size: int, shape: str, names: bool
) -> None:
    """Directed, with predecessors, undirected, by ids and by names, with a small store that
    rebalances."""
    directed = shape != "undirected"
    model = SavedModel(directed)
    graph = lpma.Graph(
        directed, device=device, segment_size=2, predecessors=shape == "predecessors", names=names
    )
    ends = []
    for each in (model, graph):
        with SqliteLog(":memory:") as log:
            log.produce_many("updates", numbered(stream))
            pipeline = opened(log, each, batch_size=batch_size, window=width)
            pipeline.run(until="end")
            ends.append(
                (
                    pipeline.stats.late_by_window,
                    pipeline.stats.expired_before,
                    pipeline.stats.expired,
                )
            )
    graph.check()
    assert ends[0] == ends[1]
    src, dst = np.divmod(np.arange(25), 5)
    found = graph.edges(src, dst)
    assert found.weights is not None
    assert found.times is not None
    held = {
        (u, v): (w, t)
        for u, v, w, t, here in zip(src.tolist(), dst.tolist(), found.weights.tolist(),
                                    found.times.tolist(), found.found.tolist(), strict=True)
        if here
    }  # fmt: skip
    assert held == {(u, v): (w, t) for u, v, w, t in model.arcs()}


# Resuming ------------------------------------------------------------------------------------


@pytest.mark.soak
@given(st.data())
@settings(max_examples=soak(40, 1000), deadline=None)
def test_a_resume_at_any_place_expires_the_same(data: st.DataObject) -> None:
    """With a last checkpoint, or from the journal, at every record if drawn so: the same edges,
    bound and versions as before, and in the end those of the model with the same cuts."""
    stream = data.draw(records(when=small_times))
    width, arrival = data.draw(st.integers(0, 40)), data.draw(st.booleans())
    reading: dict[str, Any] = {"window": width, "window_time": "arrival" if arrival else "event"}
    ticks = iter(range(100, 10**6, 3))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "c"
        log = SqliteLog(Path(name) / "log")
        log.produce_many("updates", numbered(stream))

        def options() -> dict[str, Any]:
            return {
                "batch_size": data.draw(st.integers(1, 7)), "batch_interval": 100.0,
                "clock": lambda: next(ticks), "replies": lambda reply: None,
                "poll_records": data.draw(st.integers(1, 5)),
                "checkpoint_operations": data.draw(st.integers(1, 30)),
            }  # fmt: skip

        pipeline = Pipeline(SqliteLog(log.path), SavedModel(), directory, **reading, **options())
        while pipeline.step(drain=True) or not pipeline.source.at_end():
            if data.draw(st.integers(0, 2)):
                continue
            if data.draw(st.booleans()):
                pipeline.checkpoint_now()
            before = where(pipeline)
            pipeline.close(checkpoint=data.draw(st.booleans()))
            pipeline.source.close()  # type: ignore[attr-defined]
            pipeline = Pipeline.resume(
                directory, SqliteLog(log.path), load=SavedModel.load, **options()
            )
            assert where(pipeline) == before
        bound, edges = pipeline.stats.expired_before, edges_of(pipeline)
        assert bound is None or all(time >= bound for _, time in edges.values())
        if not arrival:
            carried = [op.time for op in flat(stream) if op.time is not None
                     and op.kind is not Kind.EXPIRE]  # fmt: skip
            assert bound == (max(carried) - width if carried else None)
        pipeline.close()
        pipeline.source.close()  # type: ignore[attr-defined]
        log.close()


def test_a_window_cannot_change_on_the_way(log: SqliteLog, tmp_path: Path) -> None:
    log.create_topic("updates")
    opened(log, None, tmp_path / "c", window="1h").close()
    others: list[tuple[dict[str, Any], str]] = [
        ({"window": "2h"}, "window is 7200000"), ({"window": None}, "window is None"),
        ({"window": "1h", "window_time": "arrival"}, "window_time is 'arrival'"),
    ]  # fmt: skip
    for other, said in others:
        with pytest.raises(PipelineError, match=rf"{said}.*a resume cannot change"):
            Pipeline.resume(tmp_path / "c", log, load=SavedModel.load, **other)
    sames: list[dict[str, Any]] = [
        {}, {"window": 3_600_000}, {"window": timedelta(hours=1)}, {"window_time": "event"},
    ]  # fmt: skip
    for same in sames:
        with Pipeline.resume(tmp_path / "c", log, load=SavedModel.load, **same) as pipeline:
            assert pipeline.settings.window == 3_600_000
    opened(log, None, tmp_path / "none").close()
    with pytest.raises(PipelineError, match="taken with None"):
        Pipeline.resume(tmp_path / "none", log, load=SavedModel.load, window=5)


def test_a_window_that_makes_no_sense_is_refused_at_once(
    device: str, log: SqliteLog, tmp_path: Path
) -> None:
    with pytest.raises(PipelineError, match="window_time is 'ever': expected one of event"):
        opened(log, window=5, window_time="ever")
    with pytest.raises(PipelineError, match="give the window, too"):
        opened(log, None, tmp_path / "c", window_time="arrival")
    with pytest.raises(PipelineError, match="times=True"):
        opened(log, lpma.Graph(device=device, times=False), tmp_path / "c", window=5)
    assert not (tmp_path / "c").exists()


def test_a_graph_that_is_given_loses_what_is_too_old_with_the_first_batch(
    device: str, log: SqliteLog
) -> None:
    graph = lpma.Graph(device=device)
    graph.insert([1, 2], [2, 3], time=[10, 95])
    log.produce("updates", ingest.encode_row(3, 4, time=100))
    opened(log, graph, window=50).run(until="end")
    assert graph.snapshot().indices.tolist() == [3, 4]


def test_partitions_share_one_window(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("wide", 2)
        log.produce("wide", ingest.encode_row(1, 2, time=10), partition=0)
        log.produce("wide", ingest.encode_row(3, 4, time=1000), partition=1)
    with SqliteLog(tmp_path / "log", topics=("wide",)) as source:
        pipeline = opened(source, window=50)
        pipeline.run(until="end")
        assert pipeline.positions()[Partition("wide", 0)].offset == 1
        assert set(edges_of(pipeline)) == {(3, 4)}
