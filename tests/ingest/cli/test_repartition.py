"""`lpma repartition`: files and logs, written by owner; stopped, and gone on with."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ingest
import lpma
from ingest import SqliteLog
from ingest.formats.records import decode_record
from tests.support.command_line import command_line, document, run
from tests.support.shards import applied, content, joined
from tests.support.waiting import HANGS_S, wait_for

if TYPE_CHECKING:
    from tests.support.broker import Cluster


def edges_in(log: Path, topic: str, names: bool = False) -> Any:
    parts: dict[Any, list[bytes]] = {}
    with SqliteLog(log, topics=[topic]) as reader:
        for one in reader.poll(10**6):
            parts.setdefault(one.partition, []).append(one.value)  # type: ignore[arg-type]
    graphs = (applied(lpma.Graph(device="cpu", names=names), values) for values in parts.values())
    edges, _ = joined(content(graph) for graph in graphs)
    return {key: weight for key, (weight, _) in edges.items()}


def test_a_file_is_written_to_a_new_log(tmp_path: Path) -> None:
    path, log = tmp_path / "own.csv", tmp_path / "log"
    path.write_text("from,to,amount\nann,bob,3\nbob,carol,1.5\nonly one\n")
    options = ["--to", log, "--partitions", 4, "--weight", "amount", "-c", tmp_path / "progress"]
    options += ["--undirected", "--epoch-interval", 60]
    result = run("repartition", path, "updates", *options, "--json")
    found = json.loads(result.stdout)
    assert (found["operations"], found["rejected"], found["partitions"]) == (2, 1, 4)
    assert found["epoch"] > 0
    assert not found["resumed"]
    assert "vertices by name" in result.stderr
    assert "left out 1 bad line" in result.stderr
    both = {("ann", "bob"): 3, ("bob", "ann"): 3, ("bob", "carol"): 1.5, ("carol", "bob"): 1.5}
    assert edges_in(log, "updates", names=True) == both
    again = document("repartition", path, "updates", *options)
    assert again["resumed"]
    assert again["operations"] == 2
    assert edges_in(log, "updates", names=True) == both
    with SqliteLog(log) as made:
        assert made.partitions_of("queries") == 4


def test_changes_of_a_table_are_told_from_rows(tmp_path: Path) -> None:
    """They were read as rows, with --format debezium, too."""
    event = {"op": "c", "before": None, "after": {"src": 1, "dst": 2}, "source": {"ts_ms": 5}}
    with SqliteLog(tmp_path / "log", ["t"]) as log:
        log.produce("t", json.dumps(event).encode(), key=b'{"src": 1, "dst": 2}')
    asked = ["repartition", tmp_path / "log", "updates", "--to", tmp_path / "out",
             "--partitions", 2, "--from-topic", "t", "-c", tmp_path / "progress"]  # fmt: skip
    said = run(*asked, "--format", "debezium", status=2).stderr
    assert "ingest.Repartition" in said
    assert not (tmp_path / "out").exists()
    said = run(*asked, "--source", "after.src", "--target", "after.dst").stderr
    assert "look like Debezium's change events" in said


def test_a_topic_is_written_beside_the_one_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with SqliteLog(path) as log:
        log.produce_many("updates", [ingest.encode_row(u, u + 1) for u in range(20)])
        log.create_topic("more")
        log.produce("more", b'{"src": 5, "dst": 9}')
    options = ["--queries", "asked", "--partitions", 3, "--predecessors", "-c", tmp_path / "c"]
    found = document("repartition", path, "split", *options)
    assert (found["operations"], found["target"]) == (20, str(path))
    assert edges_in(path, "split").keys() == {(u, u + 1) for u in range(20)}
    assert edges_in(path, "split.in").keys() == {(u + 1, u) for u in range(20)}
    options = ["--from-topic", "more", "--source", "src", "--target", "dst"]
    options += ["--partitions", 3, "-c", tmp_path / "json", "--queries"]
    refused = run("repartition", path, "other", *options, "asked", status=1)
    assert "has the queries of 'split'" in refused.stderr
    options.append("more.queries")
    assert document("repartition", path, "other", *options)["operations"] == 1
    assert "repartitioned" in run("repartition", path, "other", *options).stdout


def test_what_a_cluster_does_not_keep_of_a_bipartite_file_is_told(tmp_path: Path) -> None:
    path, log = tmp_path / "own.csv", tmp_path / "log"
    path.write_text("user,item\n1,20\n2,20\n")
    options = ["--to", log, "--partitions", 2, "--queries"]
    assert (
        "may be two kinds"
        in run("repartition", path, "a", *options, "aq", "-c", tmp_path / "a").stderr
    )
    told = run("repartition", path, "b", *options, "bq", "-c", tmp_path / "b", "--bipartite").stderr
    assert "the left side, here the first 3, is not kept by a cluster" in told
    assert edges_in(log, "b").keys() == {(1, 23), (2, 23)}


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["own.csv", "updates"], "name a log"),
        (["own.csv", "updates", "--to", "log", "--from-topic", "x"], "no topics"),
        (["log", "split", "--separator", ","], "a log has no --separator"),
    ],
)
def test_what_does_not_go_together_is_bad_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.csv").write_text("1,2\n")
    with SqliteLog("log") as log:
        log.create_topic("updates")
    assert said in run("repartition", *arguments, "-c", "progress", status=2).stderr
    assert not Path("progress").exists()


def test_what_cannot_be_done_is_said_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("1,2\n")
    end = ["-c", tmp_path / "progress", "--partitions", 2]
    assert "no such file" in run("repartition", "gone", "x", "--to", path, *end, status=1).stderr
    said = run("repartition", path, "x", "--to", path, *end, status=1).stderr
    assert "is no embedded log" in said
    log = tmp_path / "log"
    with SqliteLog(log) as made:
        made.produce("updates", ingest.encode_row(1, 2))
    said = run("repartition", path, "updates", "--to", log, *end, status=1).stderr
    assert "1 partitions, not 2" in said


def test_it_follows_until_it_is_told_to_stop(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with SqliteLog(path) as log:
        log.produce("updates", ingest.encode_row(0, 1))
        arguments = command_line(
            "repartition", path, "split", "--queries", "asked", "--partitions", 2, "--follow",
            "--epoch-interval", 0.05, "-c", tmp_path / "progress", "--json",
        )  # fmt: skip
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        for target in range(2, 5):
            log.produce("updates", ingest.encode_row(0, target))
            wait_for(lambda: process.poll() or rows_in(path) == target, "the row")  # noqa: B023
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=HANGS_S)
    assert process.returncode == 0
    found = json.loads(output)
    assert found["stopped"]
    assert found["operations"] == 4


def rows_in(log: Path) -> int:
    """Of the topic "split"."""
    with SqliteLog(log, topics=["split"]) as reader:
        values = [one.value for one in reader.poll(10**6)]
    return sum(decode_record(value).batch.src.size for value in values if isinstance(value, bytes))


def test_a_kafka_is_written(kafka: Cluster, tmp_path: Path) -> None:
    path, topic = tmp_path / "own.txt", f"split-{tmp_path.name[:20]}-{time.time_ns()}"
    path.write_text("".join(f"{u} {u + 1}\n" for u in range(50)))
    options = ["--to", f"kafka://{kafka.bootstrap}", "--partitions", 2, "-c", tmp_path / "progress"]
    found = document("repartition", path, topic, "--queries", f"{topic}-q", *options)
    assert (found["operations"], found["partitions"]) == (50, 2)
    target = f"kafka://{kafka.bootstrap}"
    back = document(
        "repartition", target, "updates", "--from-topic", topic, "--to", tmp_path / "log",
        "--partitions", 3, "-c", tmp_path / "back",
    )  # fmt: skip
    assert back["operations"] == 50
    assert edges_in(tmp_path / "log", "updates").keys() == {(u, u + 1) for u in range(50)}
