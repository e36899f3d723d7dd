"""The benchmark's own machinery: the models, the stopwatch, and a small run from end to end."""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import __main__ as runner
from benchmarks import experiments, machine, workloads
from benchmarks.gpu import device
from benchmarks.gpu.packed import Packed
from benchmarks.gpu.race import ROUNDS
from benchmarks.keys import Array, csr_keys, distinct, ends_of, keys_of, ragged_ranges
from benchmarks.model import Fingerprint, Model
from benchmarks.papers import biclique_programs, published
from benchmarks.papers import diversity_programs as diversity
from benchmarks.report import Report, write_json
from benchmarks.stopwatch import (
    Figure,
    Kernel,
    WrongAnswer,
    alone,
    mean,
    measure,
    median,
    on_host,
    race,
)
from benchmarks.stores import peers
from benchmarks.stores.base import Lpma, Store
from tests.conftest import missing

ROOT = Path(__file__).parents[2]
STORES: list[type[Store]] = [Lpma, *peers.available()]


def edges(*pairs: tuple[int, int]) -> tuple[Array, Array]:
    src, dst = np.array(pairs, np.uint32).T
    return src, dst


def test_keys_and_ends_are_inverse() -> None:
    src, dst = edges((0, 2**32 - 2), (7, 0), (2**32 - 2, 5))
    assert [a.tolist() for a in ends_of(keys_of(src, dst))] == [src.tolist(), dst.tolist()]
    assert distinct(np.array([3, 1, 3, 2], np.uint64)).tolist() == [1, 2, 3]
    assert len(distinct(np.empty(0, np.uint64))) == 0


def test_ragged_ranges() -> None:
    indptr, place = ragged_ranges(np.array([4, 9, 2]), np.array([6, 9, 5]))
    assert indptr.tolist() == [0, 2, 2, 5]
    assert place.tolist() == [4, 5, 2, 3, 4]


def test_model_follows_a_set() -> None:
    rng = np.random.default_rng(1)
    known = {(1, 2), (3, 4)}
    model = Model(*edges(*known))
    for i in range(30):
        batch = [(int(u), int(v)) for u, v in rng.integers(0, 6, (7, 2))]
        if i % 2:
            known -= set(batch)
            found = model.delete(*edges(*batch))
        else:
            known |= set(batch)
            found = model.insert(*edges(*batch))
        keys = np.array(sorted(u << 32 | v for u, v in known), np.uint64)
        assert model.keys.tolist() == keys.tolist()
        assert found == Fingerprint.of(keys)
    assert model.holds(keys_of(*edges(*known))).all()
    assert not model.holds(keys_of(*edges((9, 9)))).any()


@pytest.mark.parametrize("make", STORES, ids=lambda make: make.__name__)
def test_every_store_keeps_the_set(make: type[Store]) -> None:
    workload = workloads.rmat(8, 600, 900)
    model, store = Model(*workload.base()), make()
    store.load(*workload.base(), workload.n)
    for batch in (workload.stream(0, 700), workload.stream(300, 600)):  # half of it again
        store.insert(store.prepare(*batch))
        store.verify(model.insert(*batch))
    gone = workload.stream(100, 300)
    for _ in range(2):  # the second time they are absent
        store.delete(store.prepare(*gone))
        store.verify(model.delete(*gone))
    asked = workload.stream(0, 800)
    assert np.array_equal(store.has_edges(store.prepare(*asked)), model.holds(keys_of(*asked)))
    u = np.arange(0, workload.n, 3)
    indptr, ids = store.successors(u)
    degree: Array = np.diff(np.asarray(indptr, np.int64))
    mine = keys_of(np.repeat(u, degree), np.asarray(ids))
    there = model.keys[np.isin(ends_of(model.keys)[0], u)]
    assert np.sort(mine).tolist() == there.tolist()
    assert csr_keys(*store.to_csr()).tolist() == model.keys.tolist()


def test_a_wrong_store_is_caught() -> None:
    store = Lpma()
    store.load(*edges((0, 1), (1, 2)), 3)
    store.verify(Model(*edges((0, 1), (1, 2))).fingerprint)
    for wrong in (edges((0, 1)), edges((0, 1), (2, 1)), edges((0, 1), (1, 2), (2, 2))):
        with pytest.raises(WrongAnswer, match="expected"):
            store.verify(Model(*wrong).fingerprint)


def test_measure_rotates_verifies_and_keeps_to_its_budget() -> None:
    order: list[tuple[str, int]] = []
    verified: dict[str, tuple[int, Any]] = {}

    def kernel(name: str) -> Kernel:
        def run(i: int) -> int:
            order.append((name, i))
            return 10 * i

        return Kernel(lambda i: i, run)

    def verify(name: str, rounds: int, result: Any) -> None:
        verified[name] = (rounds, result)

    timings = measure({"a": kernel("a"), "b": kernel("b")}, verify, rounds=3, warmup=1)
    assert order == [(n, i) for i, names in enumerate(("ab", "ba", "ab", "ba")) for n in names]
    assert verified == {"a": (4, 30), "b": (4, 30)}
    assert [len(timings[n].seconds) for n in "ab"] == [3, 3]
    assert timings["a"].slowest >= timings["a"].median > 0

    stopped = measure({"a": kernel("a")}, verify, rounds=3, warmup=1, budget_s=0.0)
    assert stopped["a"].rounds == 1
    assert len(stopped["a"].seconds) == 1
    assert verified["a"] == (1, 0)


def test_race_and_alone_keep_their_samples() -> None:
    answers: list[tuple[str, Any]] = []
    actions = {"a": lambda: 1, "b": lambda: 2}
    timings = race(actions, lambda name, answer: answers.append((name, answer)), rounds=3)
    assert answers == [("a", 1), ("b", 2)]
    assert [len(timing.median.samples) for timing in timings.values()] == [3, 3]
    assert len(alone(lambda: None, rounds=5, clock=on_host).samples) == 5


def test_a_figure_scales_with_its_samples() -> None:
    found = median([1.0, 4.0, 2.0])
    assert (found, found.samples) == (2.0, (1.0, 4.0, 2.0))
    for scaled, expected in (
        (found * 2, (2.0, 8.0, 4.0)), (2 * found, (2.0, 8.0, 4.0)),
        (found / 2, (0.5, 2.0, 1.0)), (8 / found, (8.0, 2.0, 4.0)),
    ):  # fmt: skip
        assert isinstance(scaled, Figure)
        assert scaled.samples == expected
    ratio = found / mean([1.0, 3.0])
    assert ratio == 1.0
    assert not isinstance(ratio, Figure)
    assert math.isnan(median(()))


def test_measure_lets_no_wrong_answer_pass() -> None:
    def verify(name: str, rounds: int, result: Any) -> None:
        raise WrongAnswer(name)

    with pytest.raises(WrongAnswer):
        measure({"a": Kernel(lambda i: i, lambda i: i)}, verify, rounds=1)


def test_streams_hold_every_edge_once() -> None:
    for workload in (workloads.rmat(7, 300, 200), workloads.uniform(7, 300, 200)):
        keys = keys_of(workload.src, workload.dst)
        assert len(np.unique(keys)) == len(keys) == 500
        assert workload.streamed == 200
        assert workload.n <= 128
    grid = workloads.grid(5)
    known = set(zip(grid.src.tolist(), grid.dst.tolist(), strict=True))
    assert len(known) == 2 * 2 * 5 * 4
    assert all((v, u) in known for u, v in known)


def test_a_report_as_text() -> None:
    rows = [{"what": "x", "rate": 1234.5}, {"what": "y", "rate": math.nan}]
    report = Report("name", "title", rows)
    assert "| x    | 1,234 |" in report.text()
    assert "| y    |     – |" in report.text()


@pytest.mark.slow
def test_runner_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "bench.json"
    only = "lpma,lpma-never,scipy,numpy"
    names = ["updates", "queries", "csr", "latency", "live-queries", "expansion", "redundancy"]
    assert runner.main([*names, "--quick", "--only", only, "--json", str(out)]) == 0
    found = json.loads(out.read_text())
    reports = {report["name"]: report for report in found["reports"]}
    assert list(reports) == names
    for row in reports["updates"]["rows"]:
        assert row["lpma"] > 0
        assert row["networkit"] is None
    assert reports["live-queries"]["rows"][0]["queries"] > 0
    for name in ("latency", "expansion"):
        assert (tmp_path / f"{name}.png").stat().st_size > 1000
    for row in reports["expansion"]["rows"]:
        assert row["moved"] < 2 * row["predicted"] < row["global"]
    for row in reports["redundancy"]["rows"]:
        assert row["strategy"] != "top-down" or row["redundant"] == 0
    assert "ratio" in capsys.readouterr().out


@pytest.mark.slow
def test_diversity_by_its_programs_on_the_cpu(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    names = ["diversity-table2", "diversity-table4", "diversity-figure8"]
    only = "CPU-Div,MCPU-Div,lpma"
    assert runner.main([*names, "--quick", "--only", only, "--json", str(out)]) == 0
    found = json.loads(out.read_text())
    reports = {report["name"]: report["rows"] for report in found["reports"]}
    assert [row["model"] for row in reports["diversity-table2"]] == ["component", "core", "truss"]
    for row in reports["diversity-table2"]:
        assert min(row["CPU-Div"], row["MCPU-Div"], row["lpma"]) > 0
    assert reports["diversity-table4"][0]["MCPU-Div"] > 0
    assert reports["diversity-figure8"][0]["MCPU-Div"] > 0
    published = reports["diversity-table2-published"]
    assert len(published) == 24
    assert all("published" in row["graph"] for row in published)


def test_a_program_that_finds_others_is_caught() -> None:
    with pytest.raises(WrongAnswer, match="b: another answer than a's"):
        diversity.race({"a": lambda: [(1, 2)], "b": lambda: [(2, 2)]}, rounds=1)


def test_json_says_what_was_measured_and_every_sample(tmp_path: Path) -> None:
    report = Report("name", "title", [{"graph": "g", "ms": median([3.0, 1.0, 2.0]) * 10}])
    report.rows.append({"graph": "published", "ms": math.inf})
    write_json(tmp_path / "out.json", [report], quick=True)
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["reports"][0]["rows"] == [
        {"graph": "g", "ms": 20.0}, {"graph": "published", "ms": None},
    ]  # fmt: skip
    assert found["reports"][0]["samples"] == [{"ms": [30.0, 10.0, 20.0]}, {}]
    described = found["machine"]
    assert described["cores"] >= 1
    assert described["packages"]["numpy"] == np.__version__
    assert described["code"] == machine.code(ROOT)
    assert len(described["code"]["digest"]) == 16


def test_a_tree_without_a_checkout_has_a_digest(tmp_path: Path) -> None:
    (tmp_path / "lpma").mkdir()
    (tmp_path / "lpma" / "x.py").write_text("a = 1\n")
    first = machine.code(tmp_path)
    assert (first["commit"], first["dirty"]) == (None, None)
    (tmp_path / "lpma" / "x.py").write_text("a = 2\n")
    assert machine.code(tmp_path)["digest"] != first["digest"]


def test_an_unknown_name_is_bad_usage() -> None:
    with pytest.raises(SystemExit) as stopped:
        runner.main(["no-such-experiment"])
    assert stopped.value.code == 2


def test_gpu_experiments_are_skipped_where_none_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(device, "why_none", lambda: "no CUDA device")
    assert runner.main(["figure8", "gpu-updates"]) == 0
    assert "figure8: skipped, no CUDA device" in capsys.readouterr().err


def test_a_packed_batch_is_one_piece() -> None:
    keys = np.array([7, 3], np.uint64)
    memory = Packed.empty(3, columns=True, pinned=False)
    batch = Packed.fill(memory, keys, np.array([1, 2], np.float32), np.array([8, 9]))
    assert (batch.n, batch.nbytes) == (2, 40)
    assert memory[:16].view(np.uint64).tolist() == [7, 3]
    assert memory[16:32].view(np.int64).tolist() == [8, 9]
    assert memory[32:40].view(np.float32).tolist() == [1, 2]
    assert Packed.fill(memory, keys, None, None).nbytes == 16


def test_rounds_keep_to_the_stream() -> None:
    rounds = ROUNDS[10**6]
    assert rounds.within(rounds.streamed) is rounds
    fewer = rounds.within(rounds.streamed - 1)
    assert fewer is not None
    assert fewer.streamed <= rounds.streamed - 1
    assert fewer.inserts >= 2
    assert rounds.within(3) is None


@pytest.fixture
def gpu() -> None:
    reason = device.why_none()
    if reason is not None:
        missing("gpu", reason)


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("columns", [True, False])
def test_flat_merge_against_the_model(columns: bool) -> None:
    import cupy

    from benchmarks.gpu.flat_merge import FlatMerge

    workload = workloads.rmat(12, 20_000, 30_000)
    model, store = Model(*workload.base()), FlatMerge(columns)
    store.load(cupy.asarray(model.keys), 0)
    for i, size in enumerate((1, 1_000, 10_000, 5_000)):
        batch = workload.stream(i * 3_000, size)  # parts of it again
        given = _packed(keys_of(*batch), columns)
        if i == 3:
            store.delete(given)
            model.delete(*batch)
        else:
            store.insert(given)
            model.insert(*batch)
        keys, weights, _ = store.contents()
        assert np.array_equal(keys.get(), model.keys)
        assert not columns or float(weights.min()) >= 1


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_contiguous_pma_against_the_model() -> None:
    from benchmarks.gpu.contiguous_pma import ContiguousPma

    workload = workloads.rmat(12, 0, 50_000)
    model, store = Model(*workload.stream(0, 0)), ContiguousPma()
    for start in range(0, 50_000, 2_500):
        batch = workload.stream(start, 5_000)  # half of it again
        store.insert(_packed(keys_of(*batch), True))
        model.insert(*batch)
        keys, weights, times = store.contents()
        assert np.array_equal(keys.get(), model.keys)
        assert store.num_edges == len(model.keys) == len(weights) == len(times)


def _packed(keys: Array, columns: bool) -> Packed:
    memory = Packed.empty(len(keys), columns)
    ones = np.ones(len(keys), np.float32) if columns else None
    return Packed.fill(memory, keys, ones, np.arange(len(keys)) if columns else None)


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_streams_are_those_of_the_cpu() -> None:
    from benchmarks.gpu import streams

    here, there = workloads.rmat(10, 2_000, 3_000), streams.rmat(10, 2_000, 3_000)
    assert np.array_equal(there.keys.get(), keys_of(here.src, here.dst))


def test_biclique_programs_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a small graph made as the paper's are; an answer that differs is caught."""
    b = biclique_programs.synthetic("cpu", 60, 40, 500)
    assert b.num_left <= 60
    assert 400 < b.num_edges < 600
    count, seconds = biclique_programs.times(b, 2, 3)
    assert count > 0
    assert list(seconds) == list(biclique_programs.PROGRAMS)
    answers = iter(range(100))
    monkeypatch.setattr("algorithms.biclique.gbc.count", lambda *_: next(answers))
    with pytest.raises(WrongAnswer):
        biclique_programs.times(b, 2, 3)


def test_published_tables_are_whole() -> None:
    """As many values as graphs, or as columns."""
    by_graph: tuple[tuple[published.Columns, tuple[str, ...]], ...] = (
        (published.BICLIQUE_TABLE_3, published.BICLIQUE_GRAPHS),
        (published.BICLIQUE_TABLE_4, published.BICLIQUE_GRAPHS_OF_TABLE_4),
        (published.BICLIQUE_TABLE_5, published.BICLIQUE_GRAPHS),
        (published.CORE_TABLE_3_MS, published.CORE_GRAPHS),
        (published.CORE_TABLE_5_MB, published.CORE_GRAPHS),
    )
    for columns, graphs in by_graph:
        assert {len(values) for values in columns.values()} == {len(graphs)}
        assert len(published.by_graph(columns, graphs)) == len(graphs)
    rows = published.by_graph(published.BICLIQUE_TABLE_4, published.BICLIQUE_GRAPHS_OF_TABLE_4)
    assert rows[2] == {
        "graph": "BC (published)", "no balance": 8.02, "pre-runtime": 3.19, "runtime": 7.83,
        "joint": 2.99,
    }  # fmt: skip
    for table, titles in (
        (published.DIVERSITY_TABLE_2, published.DIVERSITY_TABLE_2_COLUMNS),
        (published.DIVERSITY_TABLE_3, published.DIVERSITY_TABLE_3_COLUMNS),
        (published.DIVERSITY_TABLE_4, published.DIVERSITY_TABLE_4_COLUMNS),
    ):
        assert len(published.by_model(table, titles)) == len(table)


@pytest.mark.parametrize("name", experiments.KNOWN)
def test_every_experiment_is_there(name: str) -> None:
    """Modules can be imported without CuPy, which is imported where it is used."""
    module, function = experiments.KNOWN[name].split(":")
    assert callable(getattr(importlib.import_module(f"benchmarks.{module}"), function))


@pytest.mark.slow
def test_compare_sets_a_tree_beside_itself(tmp_path: Path) -> None:
    out = tmp_path / "compare.json"
    names = "insert-1000,k-core,pipeline-rows,import"
    arguments = ["compare", "--quick", "--only", names, "--base", str(ROOT), "--json", str(out)]
    assert runner.main(arguments) == 0
    (report,) = json.loads(out.read_text())["reports"]
    assert [row["what"] for row in report["rows"]] == names.split(",")
    for row, samples in zip(report["rows"], report["samples"], strict=True):
        assert row["ratio"] == row["base"] / row["this"] > 0
        assert len(samples["base"]) == len(samples["this"]) == row["rounds"]


def test_compare_wants_a_tree(tmp_path: Path) -> None:
    for arguments in ([], ["--base", str(tmp_path)]):
        with pytest.raises(SystemExit, match="compare: "):
            runner.main(["compare", *arguments])
