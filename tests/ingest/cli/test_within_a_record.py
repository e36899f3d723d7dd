"""A new checkpoint that begins within a record: `lpma info` says where, `--from-offsets` takes it.

The recipe is that of docs/guide/windows.md, for another window over the graph so far.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import Partition, Pipeline, PipelineError, SqliteLog
from ingest.types import Position
from tests.support.command_line import document, run

UPDATES = Partition("updates", 0)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three records: of 1, 10 and 2 rows, whose edges come again, and a query between them."""
    with SqliteLog(tmp_path / "s.log") as log:
        log.produce("updates", ingest.encode_row(0, 1, time=1))
        dst = np.array([1, 2, 3, 1, 2, 3, 1, 2, 3, 1])
        log.produce("updates", ingest.encode_updates([0] * 10, dst, time=[2] * 10))
        log.produce("queries", ingest.encode_query("q", lpma.Kind.DEGREE, 0))
        log.produce("updates", ingest.encode_updates([0, 0], [1, 2], time=[3, 3]))
    return tmp_path / "s.log"


def edges(path: Path) -> Any:
    """The edges of a checkpoint directory, with weights and times."""
    out = path.with_suffix(".csv")
    run("export", path, out)
    return sorted(out.read_text().splitlines())


def place(state: Path) -> str:
    """What the row of `lpma info` about the updates says."""
    said = run("info", state).stdout.splitlines()
    (line,) = (line for line in said if "offset of updates/0" in line)
    return str(line.split("updates/0")[1].split()[0])


@pytest.mark.parametrize("limit", [0, 1, 2, 5, 10, 11, 12, 13])
def test_the_recipe_for_another_window(log: Path, tmp_path: Path, limit: int) -> None:
    """Wherever the first stream stopped, no row is applied twice, and none is left out."""
    state, other, whole = (tmp_path / name for name in ("state", "other", "whole"))
    run("ingest", log, "-c", whole, "--window", "24h")
    if limit:
        run("ingest", log, "-c", state, "--batch-size", 3, "--limit", limit)
    else:
        with SqliteLog(log) as source, Pipeline(source, lpma.Graph(device="cpu"), state):
            pass
    where = f"updates:0={place(state)}"
    begin = ["ingest", log, "-c", other, "--set", f"graph.from_store={state}"]
    begin += ["--from-offsets", where]
    run(*begin, "--window", "24h", "--batch-size", 2, "--limit", 1)
    run("ingest", log, "-c", other)
    assert edges(other) == edges(whole)


def test_info_says_how_many_rows_are_done(log: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    run("ingest", log, "-c", state, "--limit", 5)
    place = {p["topic"]: p for p in document("info", state)["positions"]}["updates"]
    assert place == {"topic": "updates", "partition": 0, "offset": 1, "rows_done": 4}
    assert "1+4 (4 rows of that record are done)" in " ".join(run("info", state).stdout.split())
    assert "updates/0 1+4" in " ".join(run("checkpoint", "ls", state).stdout.split())


@pytest.mark.parametrize(
    ("where", "status", "said"),
    [
        ("updates:0=1+10", 1, "has 10 rows: give the offset 2 if all of them are done"),
        ("updates:0=0+1", 1, "has 1 rows"),
        ("updates:0=3+1", 1, "was never written"),
        ("updates:0=9+1", 1, "was never written"),
        ("updates:0=1+", 2, "7+4 if 4 rows of its record are done"),
        ("updates:0=latest+1", 2, "7+4 if 4 rows of its record are done"),
    ],
)
def test_a_place_that_is_not_there(
    log: Path, tmp_path: Path, where: str, status: int, said: str
) -> None:
    other = tmp_path / "other"
    for more in ([], ["--dry-run"]):
        found = run("ingest", log, "-c", other, "--from-offsets", where, *more, status=status)
        assert said in " ".join(found.stderr.replace("│", "").split())
    assert not other.exists()


def test_rows_are_not_counted_under_a_late_policy(log: Path, tmp_path: Path) -> None:
    """Which are late depends on what was read before: neither side may have one."""
    late = ["--set", "records.late=reject", "--set", "records.max_lateness=5"]
    state, other = tmp_path / "state", tmp_path / "other"
    run("ingest", log, "-c", state, "--limit", 5, *late)
    begin = ["ingest", log, "-c", other, "--from-offsets", "updates:0=1+4"]
    begun = ["--set", f"graph.from_store={state}"]
    for more, said in ((begun, "first let it read on"), (late, "late='apply'")):
        assert said in run(*begin, *more, status=1).stderr
    assert not other.exists()


def test_in_python(log: Path, tmp_path: Path) -> None:
    """`positions()` of one pipeline is where another begins; partitions that are not named begin
    where the source stands."""
    with SqliteLog(log) as source, Pipeline(source, lpma.Graph(device="cpu")) as first:
        first.run(5)
        at, graph = first.positions(), first.graph
        assert at[UPDATES] == (1, 4)
        with Pipeline(source, graph, positions=at) as second:
            assert (second.positions(), second.run("end")) == (at, 9)
        with pytest.raises(PipelineError, match="has 10 rows"):
            Pipeline(source, graph, positions={UPDATES: at[UPDATES]._replace(row=10)})
        for wrong in "latest", {UPDATES: 1}:
            with pytest.raises(PipelineError, match=r"expected \(offset, rows done\)"):
                Pipeline(source, graph, positions=wrong)  # type: ignore[arg-type]


def test_the_rest_of_a_record_waits_behind_others(tmp_path: Path) -> None:
    """A checkpoint taken while a query and, behind it, the rest of the record wait keeps both."""
    with SqliteLog(tmp_path / "log") as source:
        for name in "qr":
            source.produce("queries", ingest.encode_query(name, lpma.Kind.DEGREE, 0))
        source.produce("updates", ingest.encode_updates([0] * 10, range(10)))
        graph, at = lpma.Graph(device="cpu"), {UPDATES: Position(0, 4)}
        begun = Pipeline(source, graph, tmp_path / "state", positions=at)
        begun.run(1)
        assert begun.positions()[UPDATES] == (0, 4), "the first query alone"
        begun.checkpoint_now()
        begun.run(7)
        begun.close(checkpoint=False)  # as after a crash: the journal says what was applied
        with Pipeline.resume(tmp_path / "state", source) as resumed:
            resumed.run("end")
            assert (resumed.stats.operations, resumed.graph.num_edges) == (8, 6)
