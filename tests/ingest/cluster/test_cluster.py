"""A cluster is one graph, at every epoch, on every engine; and it says what is wrong with it."""

from __future__ import annotations

import json
import pkgutil
import sys
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import algorithms
import ingest
import lpma
from ingest import Ask, Cluster, ClusterError, PartitionedSink, SqliteLog, encode_updates
from ingest.cluster.coordinator import Coordinator
from ingest.cluster.engine import LocalEngine
from ingest.cluster.partitioned import create_sharded
from ingest.errors import ClusterClosed, EpochsUsedUp
from lpma import Kind
from tests.support.contents import edges_of
from tests.support.serving import answered
from tests.support.stream_model import same_answer
from tests.support.waiting import HANGS_S, wait_for
from tests.support.written import Written

if TYPE_CHECKING:
    from tests.support.broker import Cluster as Kafka

SHARDS = 3
SETTINGS: dict[str, Any] = {"batch_interval": 0.01, "query_interval": 0.0}
SOME = [("local", {}), ("local", {"directed": False}), ("local", {"predecessors": True}),
        ("local", {"names": True}), ("local", {"names": True, "predecessors": True})]  # fmt: skip
ON_RAY = [("ray", {"predecessors": True}), ("ray", {"directed": False, "names": True})]


def launched(
    log: SqliteLog, directory: Path, engine: str = "local", shards: int = SHARDS, **options: Any
) -> AbstractContextManager[Cluster]:
    """A cluster over that log, within a `with` block."""
    return Cluster(log, shards, engine, checkpoint=directory / "state", **{**SETTINGS, **options})


def sharded(path: Path, partitions: int = SHARDS, **kind: bool) -> SqliteLog:
    log = SqliteLog(path / "log")
    create_sharded(log, "updates", partitions, kind.get("predecessors", False))
    return log


def every_question(names: list[Any]) -> list[Ask]:
    kinds = (Kind.SUCCESSORS, Kind.PREDECESSORS, Kind.DEGREE, Kind.VERTEX)
    return [
        *(Ask(kind, name) for name in names for kind in kinds),
        *(Ask(Kind.HOPS, name, steps=k) for name in names for k in (1, 2)),
        *(Ask(Kind.EDGE, u, v) for u in names[::3] for v in names[::2]),
    ]


def by_name(answer: Any) -> Any:
    """The neighbours of one vertex in an order of their names: each dictionary has its own."""
    order = np.argsort([str(name) for name in answer.ids.tolist()], kind="stable")
    weight = None if answer.weights is None else answer.weights[order]
    return lpma.Neighbors(answer.indptr, answer.ids[order], weight)


@pytest.mark.parametrize(
    "engine, kind", [*SOME, *(pytest.param(*one, marks=pytest.mark.ray) for one in ON_RAY)]
)
def test_shards_are_one_graph(
    engine: str, kind: dict[str, bool], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """At every epoch: all edges, with weights and times; the algorithms; every query there is."""
    if engine == "ray":
        request.getfixturevalue("ray_cluster")
    named = kind.get("names", False)
    with sharded(tmp_path, **kind) as log, launched(log, tmp_path, engine, **kind) as cluster:
        written = Written(log, seed=7, **kind)
        for _ in range(4):
            written.write(60)
            snapshot, whole = cluster.snapshot(), written.graph.snapshot()
            assert edges_of(snapshot.gather()) == edges_of(whole)
            assert snapshot.num_edges == written.graph.num_edges
            assert algorithms.triangle_count(snapshot) == algorithms.triangle_count(whole)
        assert whole.times is not None
        of_late: Any = {"since": int(np.median(whole.times)), "half_life": 1000}
        part, view = written.graph.snapshot(**of_late), cluster.snapshot(**of_late)
        assert (edges_of(view.gather()), view.num_edges) == (edges_of(part), part.num_edges)
        ranks = cluster.run(lambda s: algorithms.pagerank(s, weighted=True).sum(), **of_late)
        assert ranks == pytest.approx(1)
        with cluster.client(max_age_s=0.0, timeout=HANGS_S) as client:
            asked = every_question(written.names)
            epochs = set()
            for query, reply in zip(asked, client.ask_many(asked), strict=True):
                expected, found = answered(written.graph, query), reply.answer  # type: ignore[arg-type]
                if named and isinstance(expected, lpma.Neighbors):
                    expected, found = by_name(expected), by_name(found)
                assert same_answer(found, expected), query
                assert (reply.kind, reply.error) == (query.kind, None)
                epochs |= {reply.epoch}
            assert len(epochs - {None}) == 1, "what needs all shards is as of one epoch"


def test_rows_come_in_pages(tmp_path: Path) -> None:
    with sharded(tmp_path) as log, launched(log, tmp_path, max_reply_rows=10) as cluster:
        sink = PartitionedSink(log)
        ids = [*range(1, 26)]
        sink.produce_many("updates", [encode_updates([0] * 25 + ids, ids + [99] * 25)])
        with cluster.client(max_age_s=0.0) as client:
            for query in (Ask(Kind.HOPS, 0, steps=1), Ask(Kind.PREDECESSORS, 99)):
                pages = list(client.pages(query))
                assert [reply.rows for reply in pages] == [10, 10, 5]
                assert np.concatenate([p.answer.ids for p in pages]).tolist() == ids  # type: ignore[union-attr]
            with pytest.raises(ingest.QueryRefused, match="at most 2 here"):
                client.hops(0, 3)
            with pytest.raises(ingest.RecordError):
                client.degree("a name")


def test_pages_of_names_may_be_of_several_epochs(tmp_path: Path) -> None:
    """Each epoch numbers the names anew: what comes and goes between two pages moves no other row
    past the reader, whoever owns it, in whichever order it was met."""
    rng = np.random.default_rng(3)
    for trial in range(4):
        path = tmp_path / str(trial)
        path.mkdir()
        stay: list[Any] = [*(f"s{i}" for i in range(12)), *range(-3, 9), 2**64 - 1, 2**53, "é", "Z"]
        with (
            sharded(path, names=True) as log,
            launched(log, path, names=True, max_reply_rows=5) as cluster,
            cluster.client(max_age_s=0.0) as client,
        ):
            sink = PartitionedSink(log, names=True)

            def write(edges: list[tuple[Any, Any]], **more: Any) -> None:
                src, dst = zip(*edges, strict=True)
                record = encode_updates(src, dst, names=True, **more)
                sink.produce_many("updates", [record])  # noqa: B023

            first = [f"a{i}" for i in range(10)]  # met first, and gone with the first page
            met = [*first, *(stay[i] for i in rng.permutation(len(stay)))]
            write([("hub", name) for name in met] + [(name, "sink") for name in met])
            for kind, ask in ((Kind.HOPS, Ask(Kind.HOPS, "hub", steps=1)),
                              (Kind.PREDECESSORS, Ask(Kind.PREDECESSORS, "sink"))):  # fmt: skip
                seen: list[Any] = []
                epochs: list[Any] = []
                for number, page in enumerate(client.pages(ask)):
                    assert page.rows <= 5
                    seen += page.answer.ids.tolist()  # type: ignore[union-attr]
                    epochs.append(page.epoch)
                    gone = [(u, v) for n in first for u, v in (("hub", n), (n, "sink"))]
                    write(gone, kind=Kind.DELETE if number % 2 == 0 else Kind.INSERT)
                    new = f"m{kind.name}{number}"
                    write([(new, "hub"), ("b" + new, new), (new, "sink")])
                assert len(set(seen)) == len(seen), "a row came twice"
                assert set(stay) <= set(seen), "a row was left out"
                assert len(set(epochs)) == len(epochs) > 3


def test_answers_of_all_shards_may_be_as_old_as_allowed(tmp_path: Path) -> None:
    with sharded(tmp_path) as log, launched(log, tmp_path) as cluster:
        sink = PartitionedSink(log)
        with cluster.client(max_age_s=60.0) as old, cluster.client(max_age_s=0.0) as new:
            first = old.hops(1, 2)
            sink.produce_many("updates", [encode_updates([1], [2])])
            assert (old.hops(1, 2).epoch, old.hops(1, 2).rows) == (first.epoch, 0)
            found = new.hops(1, 2)
            assert found.answer.ids.tolist() == [2]  # type: ignore[union-attr]
            assert found.epoch > first.epoch  # type: ignore[operator]


def test_it_goes_on_where_it_was_closed(tmp_path: Path) -> None:
    """More shards than one may share the partitions; figures are those of the shards."""
    with sharded(tmp_path, partitions=4) as log:
        sink = PartitionedSink(log)
        for round in range(3):
            with launched(log, tmp_path, shards=2) as cluster:
                sink.produce_many("updates", [encode_updates(range(50), [round] * 50)])
                cluster.wait_until_read()
                assert cluster.epoch().num_entries == 50 * (round + 1)
                status = cluster.status()
                assert status.epoch == cluster._coordinator.newest
                assert sum(s.status.edges for s in status.shards if s.status) == 50 * (round + 1)
                assert sum(s.status.replayed for s in status.shards if s.status) == 0
                told = json.loads(status.to_json())
                assert (told["problems"], told["restarts"]) == ([], 0)
                assert told["shards"][1]["status"]["state"] == "running"
            with pytest.raises(ClusterError, match="closed"):
                cluster.epoch()


def test_epochs_come_by_themselves(tmp_path: Path) -> None:
    with sharded(tmp_path) as log, launched(log, tmp_path, epoch_interval_s=0.05) as cluster:
        PartitionedSink(log).produce_many("updates", [encode_updates(range(9), [0] * 9)])

        def has_all() -> bool:
            epoch = cluster.status().epoch
            return epoch is not None and epoch.num_entries == 9

        wait_for(has_all, "an epoch")


def test_a_writer_marks_what_the_cluster_may_not(kafka: Kafka, tmp_path: Path) -> None:
    """Kafka: a directed topic is marked by the cluster; one with doubled edges by its writer."""
    from ingest import KafkaSink

    for directed in (True, False):
        topics = [f"{name}-{directed}-{time.time_ns()}" for name in ("updates", "queries")]
        replies = kafka.topic(name="replies")
        with KafkaSink(kafka.bootstrap) as sink:
            create_sharded(sink, topics[0], 2, queries=topics[1])
            interval_s = None if directed else 0.2
            with (
                PartitionedSink(
                    sink, topics[0], directed=directed, epoch_interval_s=interval_s
                ) as updates,
                Cluster(
                    f"kafka://{kafka.bootstrap}", 2, checkpoint=tmp_path / str(directed),
                    topic=topics[0], queries=topics[1], directed=directed, reply_topics=(replies,),
                    dead_letters=lambda letter: None, **SETTINGS,
                ) as cluster,
            ):  # fmt: skip
                updates.produce_many(topics[0], [encode_updates(range(20), range(1, 21))])
                snapshot = cluster.snapshot()
                assert snapshot.num_edges == 20
                assert snapshot.gather().indices.size == (20 if directed else 40)
                with cluster.client(reply_topic=replies, timeout=HANGS_S) as client:
                    assert client.successors(3).rows == (1 if directed else 2)
                    assert client.hops(3, 2).rows == (2 if directed else 5)


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"shards": 0}, ClusterError, "at least 1"),
    ({"shards": 2}, ClusterError, "cannot share the 3 partitions"),
    ({"engine": "threads"}, ClusterError, "'local' or 'ray'"),
    ({"devices": []}, ClusterError, "devices is empty"),
    ({"device": "cpu"}, ClusterError, "say devices"),
    ({"topic": "other"}, ingest.SourceError, "other"),
    ({"directed": False, "predecessors": True}, ClusterError, "leave it out"),
    ({"directed": False, "late": "reject"}, ClusterError, "late"),
    ({"window": "24h"}, ClusterError, "PartitionedSink.expire"),
    ({"records": ingest.Fields("a", "b")}, ClusterError, "PartitionedSink writes"),
    ({"batch_sise": 1}, ingest.errors.UnknownSetting, "did you mean batch_size"),
    ({"batch_size": 0}, ingest.PipelineError, "at least 1"),
    ({"epoch_interval_s": 0}, ClusterError, "epoch_interval_s"),
    ({"devices": "gpu"}, ClusterError, "devices: device 'gpu'"),
    ({"devices": ["cpu", "cuda:99"]}, ClusterError, "devices: device 'cuda:99'"),
]  # fmt: skip


@pytest.mark.parametrize("options, error, told", REFUSED, ids=[str(r[0]) for r in REFUSED])
def test_what_makes_no_sense_is_refused(
    options: dict[str, Any], error: type[Exception], told: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Before anything is launched."""
    monkeypatch.setattr(LocalEngine, "launch", lambda *_: pytest.fail("it was launched"))
    with sharded(tmp_path) as log, pytest.raises(error, match=told):
        launched(log, tmp_path, **{"shards": SHARDS, **options})


def test_epochs_numbers_may_be_used_up(tmp_path: Path) -> None:
    """By a marker of the highest number that there is, which anybody may write. No later attempt
    finds another, whoever marks."""
    with sharded(tmp_path) as log, launched(log, tmp_path) as cluster:
        PartitionedSink(log).mark(2**63 - 1)
        of_writer = Coordinator(cluster._handles, None)
        for call in (cluster.epoch, cluster.snapshot, cluster.wait_until_read, of_writer.epoch):
            with pytest.raises(EpochsUsedUp, match="lpma repartition"):
                call(HANGS_S)
        with cluster.client(timeout=HANGS_S) as client:
            with pytest.raises(ingest.QueryError, match="lpma repartition"):
                client.hops(1, 1)
            assert client.degree(1).answer.tolist() == [0]  # type: ignore[union-attr]


def test_ray_is_needed_only_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "ingest.cluster.ray_engine", raising=False)
    with sharded(tmp_path) as log:
        with pytest.raises(ClusterError, match=r"lpma-graph\[ray\]"):
            launched(log, tmp_path, "ray")
        with launched(log, tmp_path) as cluster:
            assert cluster.epoch().num_entries == 0


@pytest.mark.parametrize("point", ["engine.LocalEngine.launch", "cluster.try_all"])
def test_a_start_that_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Before all shards are launched, or before all of them run: nothing of it is left."""
    stop = threading.Event()
    place = f"ingest.cluster.{point}"
    function: Any = pkgutil.resolve_name(place)

    def stopping(*given: Any, **options: Any) -> Any:
        stop.set()
        return function(*given, **options)

    with sharded(tmp_path) as log:
        with monkeypatch.context() as patch:
            patch.setattr(place, stopping)
            with pytest.raises(ClusterClosed, match="stopped before"):
                launched(log, tmp_path, stop=stop)
        with launched(log, tmp_path) as cluster:
            assert cluster.epoch().num_entries == 0
    with pytest.raises(ClusterError, match=r"expected a threading\.Event"):
        launched(log, tmp_path, stop=5)
