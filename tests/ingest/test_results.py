"""Continuous results: what leaves after each batch, against starting over."""

from __future__ import annotations

import itertools
import json
import operator
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ingest
import lpma
from ingest import Pipeline, Result, SqliteLog
from ingest.errors import PipelineError, SourceError
from ingest.results.changes import within
from ingest.results.figures import figures_of
from ingest.results.reading import once, read_results, totals
from ingest.state.checkpointer import Checkpointer
from ingest.state.journal import Journal
from lpma.arrays import to_host
from tests.support.noted import note_calls

TRACK = ("core", "triangles", "components")
Totals = dict[str, int]


def oracle(graph: Any) -> tuple[dict[int, int], Totals]:
    """Core numbers above 0 by vertex, and the totals, by networkx."""
    s = graph.snapshot()
    indptr, indices = to_host(s.indptr), to_host(s.indices)
    src = np.repeat(np.arange(s.num_rows), np.diff(indptr))
    g = nx.Graph()
    g.add_edges_from((u, v) for u, v in zip(src.tolist(), indices.tolist(), strict=True) if u != v)
    cores = {v: core for v, core in nx.core_number(g).items() if core}
    parts = [part for part in nx.connected_components(g) if len(part) > 1]
    totals = {
        "max_core": max(cores.values(), default=0),
        "triangles": sum(nx.triangles(g).values()) // 3,
        "components": len(parts),
    }
    return cores, totals


class Reader:
    """A consumer: it drops repeats, and rebuilds the figures from the results alone."""

    def __init__(self) -> None:
        self.run = ""
        self.place = (-1, -1)
        self.kept: list[Result] = []
        self.cores: dict[Any, int] = {}
        self.totals: Totals = {}

    def read(self, results: Iterable[Result]) -> Reader:
        for result in results:
            if result.run != self.run:
                self.__init__()  # type: ignore[misc]
                self.run = result.run
            if result.place <= self.place:
                continue
            version, part = self.place
            same = result.version == version
            assert result.part == (part + 1 if same else 0), "a part is missing"
            assert same or not self.kept or self.kept[-1].part + 1 == self.kept[-1].parts
            self.place = result.place
            if result.alert is None:
                self._apply(result)
            self.kept.append(result)
        return self

    def _apply(self, result: Result) -> None:
        if result.vertex is None:
            says_that_a_run_began = len(self.kept) == result.new == 0
            assert self.totals.get(result.figure, 0) == result.old
            assert result.old != result.new or says_that_a_run_began
            self.totals[result.figure] = result.new
            return
        columns = (column.tolist() for column in (result.vertex, result.old, result.new))
        for v, old, new in zip(*columns, strict=True):
            assert self.cores.pop(v, 0) == old != new
            if new:
                self.cores[v] = new

    def agrees_with(self, graph: Any) -> None:
        cores, totals = oracle(graph)
        assert self.cores == cores
        assert {name: self.totals.get(name, 0) for name in totals} == totals


Ops = list[tuple[int, int, int]]
OPERATION = st.tuples(
    st.sampled_from([0, 0, 0, 1, 2, 3, 11, 11]), st.integers(0, 9), st.integers(0, 9)
)


def encoded(operations: Ops, time: Sequence[int] | None = None) -> bytes:
    """Every third edge that is set gets the weight 0, so that it goes."""
    kind, src, dst = np.array(operations).T
    weight = np.where(kind == 11, (src + 2 * dst) % 3, 1.0)
    return ingest.encode_updates(src, dst, weight, time, kind.astype(np.uint8))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(OPERATION, min_size=1, max_size=12), max_size=8), st.booleans(),
    st.none() | st.integers(0, 12), st.randoms(),
)  # fmt: skip
def test_a_reader_of_the_results_alone_knows_the_figures_at_every_version(
    device: str, batches: list[Ops], directed: bool, window: int | None, random: Random
) -> None:
    """With a window, too, from which some of each batch expires at its end, or comes too late."""
    with SqliteLog(":memory:") as log:
        log.create_topic("updates")
        graph, found = lpma.Graph(device=device, directed=directed), list[Result]()
        given_: dict[str, Any] = {"track": TRACK, "results": found.append, "window": window}
        with Pipeline(log, graph, alerts=RULES, **given_) as pipeline:
            reader = Reader()
            fired: list[tuple[int, str, Any]] = []
            before: tuple[dict[int, int], Totals] = ({}, {})
            for number, batch in enumerate(batches):
                times = [5 * number + random.randint(-9, 5) for _ in batch]
                log.produce("updates", encoded(batch, None if window is None else times))
                pipeline.run("end")
                reader.read(found)
                reader.agrees_with(graph)
                now = oracle(graph)
                fired += expected_alerts(graph.version, before, now)
                before = now
        assert sorted(alerts_of(reader.kept), key=repr) == sorted(fired, key=repr)


RULES = ("core >= 2", "core < 2", "triangles > 0", "components != 1", "max_core == 2")
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip


def expected_alerts(
    version: int, before: tuple[dict[int, int], Totals], now: tuple[dict[int, int], Totals]
) -> Iterator[tuple[int, str, Any]]:
    for rule in RULES:
        name, compare, bound = rule.split()

        def holds(value: int, compare: str = compare, bound: str = bound) -> bool:
            return COMPARE[compare](value, int(bound))

        if name == "core":
            for v in range(10):
                if holds(now[0].get(v, 0)) and not holds(before[0].get(v, 0)):
                    yield version, rule, v
        elif holds(now[1].get(name, 0)) and not holds(before[1].get(name, 0)):
            yield version, rule, None


def alerts_of(results: Iterable[Result]) -> list[tuple[int, str, Any]]:
    return [
        (result.version, result.alert, vertex)
        for result in results
        if result.alert is not None
        for vertex in (result.vertex.tolist() if result.vertex is not None else [None])
    ]


def test_an_alert_comes_again_only_after_its_rule_was_false(device: str) -> None:
    triangle, edge = [(0, 1, 2), (0, 2, 3), (0, 3, 1)], (0, 1, 2)
    found: list[Result] = []
    with SqliteLog(":memory:") as log:
        log.create_topic("updates")
        rules = ("core >= 2", "triangles > 0")
        graph = lpma.Graph(device=device)
        with Pipeline(log, graph, track=TRACK, results=found.append, alerts=rules) as pipeline:
            for batch in (triangle, [(0, 4, 1), (0, 4, 2)], [(1, *edge[1:])], [edge], [edge]):
                log.produce("updates", encoded(batch))
                pipeline.run("end")
            assert pipeline.results is not None
            assert pipeline.results.alerts == len(alerts_of(found))
    # 4 joins a triangle. Without (1, 2) there is a ring of four and no triangle, so cores stay.
    vertex = [("core >= 2", v) for v in (1, 2, 3)]
    assert alerts_of(found) == [
        *((1, rule, v) for rule, v in vertex), (1, "triangles > 0", None),
        (2, "core >= 2", 4), (4, "triangles > 0", None),
    ]  # fmt: skip


def test_a_set_changes_figures_where_an_edge_comes_or_goes_and_nowhere_else(device: str) -> None:
    def setting(weight: float) -> bytes:
        return ingest.encode_row(3, 1, weight, kind=lpma.Kind.SET)

    found: list[Result] = []
    with SqliteLog(":memory:") as log:
        log.create_topic("updates")
        graph = lpma.Graph(device=device)
        rules = ("triangles > 0",)
        with Pipeline(log, graph, track=TRACK, results=found.append, alerts=rules) as pipeline:
            for data in (encoded([(0, 1, 2), (0, 2, 3)]), *map(setting, (2, 0.5, 7, 0, -1, 1))):
                log.produce("updates", data)
                pipeline.run("end")
    totals = [(r.version, r.new) for r in found if r.figure == "triangles" and r.alert is None]
    assert totals == [(2, 1), (5, 0), (7, 1)]
    assert {r.version for r in found} == {1, 2, 5, 7}, "a weight that changes alone is no result"
    assert alerts_of(found) == [(2, "triangles > 0", None), (7, "triangles > 0", None)]


def test_a_graph_that_holds_something_is_told_from_nothing_on(device: str, tmp_path: Path) -> None:
    graph = lpma.Graph(device=device)
    graph.insert([1, 2, 3], [2, 3, 1])
    found: list[Result] = []
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        with Pipeline(log, graph, track=TRACK, results=found.append):
            Reader().read(found).agrees_with(graph)
    assert {result.version for result in found} == {graph.version}


def test_many_changes_are_records_of_columns_that_any_log_takes(
    device: str, tmp_path: Path
) -> None:
    with SqliteLog(tmp_path / "log") as log:
        n = 150_001  # vertices on a path
        log.produce_many(
            "updates",
            [ingest.encode_updates(part, part + 1) for part in np.array_split(np.arange(n - 1), 9)],
        )
        graph = lpma.Graph(device=device)
        with Pipeline(log, graph, track=["core"], results=log, batch_size=n) as pipeline:
            pipeline.run("end")
            assert pipeline.results is not None
            assert (pipeline.results.records, pipeline.results.rows) == (4, n + 1)
        with SqliteLog(log.path, ["results"]) as reader:
            sizes = [len(record.value) for record in reader.poll()]  # type: ignore[arg-type]
        assert max(sizes) < 1_000_000


def test_names_are_written_as_names_and_cut_by_their_bytes(device: str, tmp_path: Path) -> None:
    names = [f"{'n' * 900}{i}" for i in range(2500)] + ["5"]
    with SqliteLog(tmp_path / "log") as log:
        for start in range(0, len(names) - 1, 500):
            ends = names[start : start + 500]
            log.produce("updates", ingest.encode_updates(ends, [7] * len(ends), names=True))
        log.produce("updates", ingest.encode_updates(["5", 5], [5, -7], names=True))
        graph = lpma.Graph(device=device, names=True)
        path = tmp_path / "results.jsonl"
        sinks: list[Any] = [log, path]
        for sink in sinks:
            with Pipeline(log, graph.copy(), track=["core"], results=sink) as pipeline:
                pipeline.run("end")
            log.seek(dict.fromkeys(log.positions(), 0))
        with SqliteLog(log.path, ["results"]) as reader:
            values = [record.value for record in reader.poll()]
        assert max(map(len, values)) < 1_000_000  # type: ignore[arg-type]
        told = Reader().read(map(ingest.decode_result, values))  # type: ignore[arg-type]
        assert told.cores == dict.fromkeys([*names[:-1], "5", 5, 7, -7], 1)
        assert Reader().read(read_results(path)).cores == told.cores


# Where results go ------------------------------------------------------------------------------


def stream(log: SqliteLog, seed: int = 3, records: int = 30) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(records):
        operations = np.stack([rng.integers(0, 2, 7), *rng.integers(0, 12, (2, 7))]).T
        log.produce("updates", encoded(operations.tolist()))


def test_a_file_has_each_result_once_and_loses_half_a_line(device: str, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    options: dict[str, Any] = {"track": TRACK, "alerts": ["core >= 2"]}
    with SqliteLog(tmp_path / "log") as log:
        stream(log)
        graph = lpma.Graph(device=device)
        first = Pipeline(log, graph, tmp_path / "c", results=path, batch_size=20, **options)
        first.run(100)
        first.close(checkpoint=False)
        whole = path.read_bytes()
        path.write_bytes(whole[:-5])
        with Pipeline.resume(
            tmp_path / "c", log, results=path, device=device, batch_size=20, **options
        ) as second:
            assert path.read_bytes() == whole
            assert second.results is not None
            assert second.results.repeats > 0
            assert second.results.records == 1
            second.run("end")
            last: Any = second.graph
    results = list(read_results(path))
    assert [r.place for r in results] == sorted({r.place for r in results})
    Reader().read(results).agrees_with(last)


def test_a_file_of_something_else_is_refused(device: str, tmp_path: Path) -> None:
    path = tmp_path / "notes"
    for content in ("1 2\n", "half a line"):
        path.write_text(content)
        with SqliteLog(":memory:") as log:
            log.create_topic("updates")
            with pytest.raises(SourceError, match="no file of results"):
                Pipeline(log, lpma.Graph(device=device), track=["core"], results=path)
        assert path.read_text() == content
    path.write_text("1 2\n")
    with pytest.raises(ingest.RecordError, match="line 1"):
        list(read_results(path))
    with pytest.raises(SourceError, match="cannot be read"):
        list(read_results(tmp_path / "absent"))


def test_a_sink_that_fails_stops_the_stream_and_nothing_is_missing_after_it(
    device: str,
    tmp_path: Path,
) -> None:
    found: list[Result] = []
    fails = iter([False] * 9 + [True])

    def taking(result: Result) -> None:
        if next(fails, False):
            raise OSError("full")
        found.append(result)

    options: dict[str, Any] = {"track": TRACK, "results": taking, "batch_size": 20}
    with SqliteLog(tmp_path / "log") as log:
        stream(log)
        pipeline = Pipeline(log, lpma.Graph(device=device), tmp_path / "c", **options)
        with pytest.raises(OSError, match="full"):
            pipeline.run("end")
        assert pipeline.results is not None
        assert pipeline.results.waiting > 0
        with pytest.raises(PipelineError, match="resume"):
            pipeline.step()
        pipeline.close()
        with Pipeline.resume(tmp_path / "c", log, device=device, **options) as resumed:
            resumed.run("end")
            Reader().read(found).agrees_with(resumed.graph)


def test_a_slow_sink_holds_the_stream_back_and_the_stages_say_so(
    device: str, tmp_path: Path
) -> None:
    def slow(result: Result) -> None:
        time.sleep(0.02)

    with SqliteLog(tmp_path / "log") as log:
        stream(log, records=4)
        with Pipeline(
            log, lpma.Graph(device=device), track=["triangles", "core"], results=slow, batch_size=7
        ) as pipeline:
            pipeline.run("end")
            assert pipeline.results is not None
            assert pipeline.stats.stages.results.seconds >= 0.02 * pipeline.results.records > 0
            assert pipeline.results.waiting == 0


def test_results_leave_after_the_journal_and_before_the_checkpoint(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    for owner, name in ((Journal, "append"), (Journal, "sync"), (Checkpointer, "begin")):
        note_calls(monkeypatch, happened, owner, name)
    with SqliteLog(tmp_path / "log") as log:
        stream(log)
        with Pipeline(
            log, lpma.Graph(device=device), tmp_path / "c", track=TRACK, batch_size=7,
            checkpoint_operations=20, results=lambda result: happened.append("result"),
        ) as pipeline:  # fmt: skip
            pipeline.run("end")
    steps = [name for name, _ in itertools.groupby(happened)]
    assert steps.count("result") > 10
    for before, name in itertools.pairwise(steps):
        if name == "result":
            assert before == "sync"
    for before, name in itertools.pairwise(steps[1:]):  # the first checkpoint is of the start
        if name == "begin":
            assert before in ("sync", "result")  # a batch may change no figure


# Runs ------------------------------------------------------------------------------------------


def test_other_figures_begin_another_run_which_tells_all(device: str, tmp_path: Path) -> None:
    found: list[Result] = []
    with SqliteLog(tmp_path / "log") as log:
        stream(log)
        graph = lpma.Graph(device=device)
        with Pipeline(log, graph, tmp_path / "c", track=["core"], results=found.append) as first:
            first.run(100)
        runs = [found[-1].run]
        for track in (TRACK, TRACK, ("core",)):
            with Pipeline.resume(
                tmp_path / "c", log, device=device, track=track, results=found.append
            ) as pipeline:
                pipeline.run(30)
                runs.append(found[-1].run)
                reader = Reader().read(found)
                assert reader.cores == oracle(pipeline.graph)[0]
        assert runs[1] == runs[2]
        assert len(set(runs)) == 3


def test_a_stretch_without_results_ends_a_run(device: str, tmp_path: Path) -> None:
    found: list[Result] = []
    with SqliteLog(tmp_path / "log") as log:
        stream(log)
        graph = lpma.Graph(device=device)
        given: dict[str, Any] = {"track": TRACK}
        with Pipeline(log, graph, tmp_path / "c", results=found.append, **given) as first:
            first.run(70)
        with Pipeline.resume(tmp_path / "c", log, device=device) as without:
            without.run(70)
        with Pipeline.resume(
            tmp_path / "c", log, device=device, results=found.append, **given
        ) as last:
            last.run("end")
            Reader().read(found).agrees_with(last.graph)
    assert len({result.run for result in found}) == 2


def test_a_run_that_began_at_a_resume_is_the_same_after_another(
    device: str, tmp_path: Path
) -> None:
    found: list[Result] = []
    with SqliteLog(tmp_path / "log") as log:
        stream(log)
        with Pipeline(log, lpma.Graph(device=device), tmp_path / "c") as first:
            first.run(100)
        runs: list[list[bytes]] = []
        for _ in range(2):
            shutil.copytree(tmp_path / "c", tmp_path / f"c{len(runs)}")
            found.clear()
            with Pipeline.resume(
                tmp_path / f"c{len(runs)}", log, device=device, track=TRACK, results=found.append
            ):
                runs.append(list(map(ingest.formats.results.encode_result, found)))
        assert runs[0] == runs[1] != []


def test_a_lost_journal_begins_another_run(device: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"track": TRACK, "batch_size": 20}
    with SqliteLog(tmp_path / "log") as log:
        stream(log)
        graph = lpma.Graph(device=device)
        first = Pipeline(log, graph, tmp_path / "c", results=log, **options)
        first.run(100)
        first.close(checkpoint=False)
        for segment in (tmp_path / "c").glob("journal*"):
            segment.unlink() if segment.is_file() else None
        with Pipeline.resume(
            tmp_path / "c", log, device=device, results=log, accept_journal_loss=True,
            **(options | {"batch_size": 33}),
        ) as second:  # fmt: skip
            assert second.stats.journal_loss is not None
            second.run("end")
            with SqliteLog(log.path, ["results"]) as reader:
                found = [ingest.decode_result(p.value) for p in reader.poll(10**6)]  # type: ignore[arg-type]
            assert len({result.run for result in found}) == 2
            Reader().read(found).agrees_with(second.graph)


def test_totals_are_those_of_the_newest_run() -> None:
    def total(run: str, version: int, new: int) -> Result:
        return Result(run, version, 0, 1, 10 * version, "triangles", None, 0, new)

    told = [
        total("a", 5, 9),
        total("b", 1, 2),
        total("b", 2, 4),
        total("b", 1, 2),
        total("b", 3, 1),
    ]
    assert totals(once(told)) == {"triangles": ([10, 10, 20, 30, 30], [0, 2, 4, 1, 1])}
    versions = {"triangles": ([0, 1, 2, 3, 3], [0, 2, 4, 1, 1])}
    assert totals(once(told), "version") == versions


def test_totals_go_from_nothing_to_the_last_result() -> None:
    def told(version: int, figure: str, new: int, alert: str | None = None) -> Result:
        return Result("a", version, 0, 1, 10 * version, figure, None, 0, new, alert)

    run = [
        told(4, "components", 1),
        told(5, "triangles", 1),
        told(9, "triangles", 1, "triangles > 0"),
    ]
    assert totals(run) == {
        "components": ([40, 40, 90], [0, 1, 1]),
        "triangles": ([40, 50, 90], [0, 1, 1]),
    }
    assert totals(run, "version") == {
        "components": ([3, 4, 9], [0, 1, 1]),
        "triangles": ([3, 5, 9], [0, 1, 1]),
    }
    assert totals([told(0, "triangles", 3)], "version") == {"triangles": ([0, 0, 0], [0, 3, 3])}


# Settings --------------------------------------------------------------------------------------


def test_settings_that_make_no_sense_are_refused_with_what_exists() -> None:
    for given_, said in [
        ({"results": print}, "name some, as track"),
        ({"results": 5, "track": ["core"]}, "expected a log"),
        ({"results": "", "track": ["core"]}, "a name is missing"),
        ({"results": (SqliteLog(":memory:"), ""), "track": ["core"]}, "a name is missing"),
        ({"alerts": ["core > 1"], "track": ["core"]}, "say where to"),
        (
            {"alerts": ["cores > 1"], "track": ["core"], "results": print},
            "names are core, max_core",
        ),
        ({"alerts": ["core > x"], "track": ["core"], "results": print}, "is not a number"),
        ({"alerts": "core > 1", "track": ["core"], "results": print}, "expected some texts"),
        ({"alerts": ["triangles > 1"], "track": ["core"], "results": print}, "names are"),
    ]:
        with pytest.raises(PipelineError, match=said):
            ingest.Settings(**given_)  # type: ignore[arg-type]


def test_rules_are_kept_as_they_are_written_once() -> None:
    own = ingest.Settings(
        track=["core"], results=print, alerts=["core>=2", "core >= 2.0", "core > true"]
    )
    assert own.alerts == ("core > 1", "core >= 2")
    many = ingest.Settings(track=["triangles"], results=print, alerts=["triangles > 1e6"]).alerts
    assert many == ("triangles > 1000000",)
    assert own.track == ("core",)
    assert figures_of(("core", "butterflies")) == ("core", "max_core", "butterflies")


def test_iterables_are_taken_once_and_nothing_else_is_taken() -> None:
    given_: dict[str, Any] = {"results": print, "track": (n for n in ["core"])}
    own = ingest.Settings(alerts=(rule for rule in ["core > 1"]), **given_)  # type: ignore[arg-type]
    assert (own.track, own.alerts) == (("core",), ("core > 1",))
    assert ingest.Settings(alerts=iter(())).alerts == ()  # type: ignore[arg-type]
    for none in (None, 3, "core", b"core", [3], [["core"]], {1: 2}, range(2)):
        for setting in ("track", "alerts"):
            with pytest.raises(PipelineError, match=f"{setting} is .*: expected some"):
                ingest.Settings(**{"results": print, "track": ["core"], setting: none})  # type: ignore[arg-type]


def test_the_order_of_figures_and_rules_makes_no_other_run(device: str, tmp_path: Path) -> None:
    rules = ["triangles > 3", "core > 1", "core >= 2", "max_core > 1", "core > 0"]
    found: list[Result] = []
    with SqliteLog(tmp_path / "log") as log:
        stream(log)
        orders: list[Any] = [TRACK, TRACK[::-1], set(TRACK), (*TRACK, *TRACK)]
        for number, track in enumerate(orders):
            given_: dict[str, Any] = {
                "track": track, "results": found.append, "batch_size": 20,
                "alerts": rules[number:] + rules[:number],
            }  # fmt: skip
            if number == 0:
                pipeline = Pipeline(log, lpma.Graph(device=device), tmp_path / "c", **given_)
            else:
                pipeline = Pipeline.resume(tmp_path / "c", log, device=device, **given_)
            with pipeline:
                pipeline.run(50)
    assert len({result.run for result in found}) == 1
    order = ["core > 0", "core > 1", "core >= 2", "max_core > 1", "triangles > 3"]
    assert {r.alert for r in found} == {*order, None}
    for _, results in itertools.groupby(found, lambda r: r.version):
        told = [order.index(r.alert) for r in results if r.alert is not None]
        assert told == sorted(told)


NUMBERS = st.one_of(
    st.integers(-3, 9), st.floats(-3, 9, width=16), st.sampled_from([2.0**31, 2.0**64, 1e300])
)


@given(st.sampled_from(["core", "max_core", "triangles"]), st.sampled_from(list(COMPARE)), NUMBERS)
@example("core", "<", 2**31)
@example("triangles", "<", 2**31)
def test_rules_that_never_become_true_are_refused(name: str, sign: str, bound: float) -> None:
    most = 2**64 - 1 if name == "triangles" else 2**31 - 1
    values = {*range(12), 2**31 - 1, 2**31, most - 1, most}
    bound = float(f"{bound:.15g}")
    of_mind = {COMPARE[sign](value, bound) for value in values if value <= most}
    given_: dict[str, Any] = {"track": TRACK, "results": print}
    if len(of_mind) == 2:
        ingest.Settings(alerts=[f"{name} {sign} {bound!r}"], **given_)
    else:
        with pytest.raises(PipelineError, match="never become true"):
            ingest.Settings(alerts=[f"{name} {sign} {bound!r}"], **given_)


def test_lines_say_what_records_say() -> None:
    result = Result("r", 3, 1, 2, 9, "core", np.array([4], np.uint32), np.array([0], np.int32),
                    np.array([2], np.int32), "core >= 2")  # fmt: skip
    line = json.loads(ingest.formats.results.result_line(result))
    assert line == {"alert": "core >= 2", "figure": "core", "run": "r", "version": 3, "part": 1,
                    "parts": 2, "time": 9, "vertex": [4], "old": [0], "new": [2]}  # fmt: skip
    assert repr(ingest.formats.results.decode_result_line(json.dumps(line).encode())) == repr(
        result
    )
    assert repr(ingest.decode_result(ingest.formats.results.encode_result(result))) == repr(result)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=5), st.integers(1, 400), st.booleans())
def test_results_that_are_cut_say_the_same_in_the_same_order(
    sizes: list[int], max_bytes: int, named: bool
) -> None:
    """0 rows: a total. Nothing that has two rows or more is larger than asked for, but for its new
    number."""
    results = []
    for i, rows in enumerate(sizes):
        ids: Any = np.arange(rows, dtype=np.uint32)
        vertex = np.array([f"v{j}" for j in range(rows)], object) if named else ids
        columns = (vertex, ids.astype(np.int32), ids.astype(np.int32) + 1) if rows else (None, 3, 4)
        results.append(Result("5f0c", 7, i, len(sizes), 9, "core", *columns))
    cut = within(results, max_bytes)
    assert [(r.part, r.parts) for r in cut] == [(i, len(cut)) for i in range(len(cut))]
    assert all(
        r.rows == 1 or len(ingest.formats.results.encode_result(r)) <= max_bytes + 8 for r in cut
    )

    def rows_of(found: Sequence[Result]) -> list[Any]:
        return [
            row
            for r in found
            for row in (
                [(None, r.old, r.new)]
                if r.vertex is None
                else zip(r.vertex.tolist(), r.old.tolist(), r.new.tolist(), strict=True)
            )
        ]

    assert rows_of(cut) == rows_of(results)
    assert {(r.run, r.version, r.time, r.figure) for r in cut} == {("5f0c", 7, 9, "core")}
