"""Kafka on the command line: `ingest --kafka`, its dry run, where it starts; queries; doctor."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import ingest
from ingest import KafkaSink, KafkaSource, SqliteLog
from ingest.cli import app
from lpma import Kind
from tests.support.broker import PASSWORD, USER, Cluster, group_lags
from tests.support.command_line import ROOT, command_line, document, run
from tests.support.waiting import wait_for

ROWS = [(0, 1), (0, 2), (1, 2), (2, 0), (3, 3)]


class Topics:
    """Topics of a test's own, and the options that name them."""

    def __init__(self, kafka: Cluster) -> None:
        self.bootstrap = kafka.bootstrap
        self.updates, self.queries, self.replies, self.letters = (
            kafka.topic(name=name) for name in ("u", "q", "r", "d")
        )

    def produce(self, topic: str, *values: bytes) -> None:
        with KafkaSink(self.bootstrap) as sink:
            sink.produce_many(topic, values)

    def read(self, topic: str) -> list[bytes]:
        with KafkaSource(self.bootstrap, [topic]) as source:
            found: list[bytes] = []
            while not source.at_end():
                found += [p.value for p in source.poll(500, 0.2) if isinstance(p.value, bytes)]
            return found

    @property
    def reading(self) -> list[str]:
        return ["ingest", "--kafka", self.bootstrap, "--topic", self.updates, "--topic",
                self.queries]  # fmt: skip

    @property
    def ingest(self) -> list[str]:
        return [
            *self.reading,
            "--set",
            f"outputs.reply_topics={self.replies}",
            "--set",
            f"outputs.dead_letter_topic={self.letters}",
        ]


@pytest.fixture
def topics(kafka: Cluster) -> Topics:
    topics = Topics(kafka)
    topics.produce(topics.updates, *(ingest.encode_row(u, v) for u, v in ROWS), b"bad")
    topics.produce(
        topics.queries,
        ingest.encode_query("q", Kind.DEGREE, 7),
        ingest.encode_query("p", Kind.PREDECESSORS, 1),
    )
    return topics


def test_a_new_stream_of_bad_records_stops_and_leaves_nothing(
    kafka: Cluster, tmp_path: Path
) -> None:
    topics = Topics(kafka)
    topics.produce(topics.updates, *[ingest.encode_row("a", "b", names=True)] * 3)
    command = [*topics.ingest, "--checkpoint", tmp_path / "c"]
    for more in (["--dry-run"], []):
        said = run(*command, *more, status=1).stderr
        assert "nothing was applied: rejected 3 records (invalid 3), the first at u" in said
        assert not (tmp_path / "c").exists()
    assert topics.read(topics.letters) == []
    assert document(*command, "--names")["operations"] == 3


def test_ingest_and_resume(topics: Topics, tmp_path: Path) -> None:
    command = [*topics.ingest, "--checkpoint", tmp_path / "c"]
    found = document(*command)
    assert (found["source"], found["resumed"]) == (f"kafka://{topics.bootstrap}", False)
    assert (found["operations"], found["queries"], found["edges"]) == (7, 2, 5)
    assert (found["rejected"], found["dead_letters"]) == (1, {"malformed": 1})
    (letter,) = map(ingest.decode_dead_letter, topics.read(topics.letters))
    assert (letter.topic, letter.partition, letter.offset) == (topics.updates, 0, 5)
    replies = {r.id: r for r in map(ingest.decode_reply, topics.read(topics.replies))}
    assert replies["q"].answer is not None
    assert replies["p"].error == "unsupported"
    topics.produce(topics.updates, ingest.encode_row(4, 0))
    rest = document(*command)
    assert (rest["operations"], rest["total_operations"], rest["resumed"]) == (1, 8, True)
    assert all(place["records"] == 0 for place in rest["lag"])
    assert "ingested kafka://" in run(*command).stdout


def test_a_dry_run_counts_and_writes_nothing(topics: Topics, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    command = [*topics.ingest, "-c", out / "c", "--save", out / "s", "--dry-run"]
    found = document(*command)
    assert found["dry_run"]
    assert (found["records"], found["operations"], found["queries"]) == (8, 7, 2)
    assert (found["updates"], found["refused"]) == ({"append": 5}, {"unsupported": 1})
    assert (found["rejected"], found["dead_letters"]) == (1, {"malformed": 1})
    (example,) = found["examples"]
    assert (example["topic"], example["offset"]) == (topics.updates, 5)
    assert {place["topic"]: place["records"] for place in found["lag"]} == {
        topics.updates: 0, topics.queries: 0
    }  # fmt: skip
    assert not list(out.iterdir())
    assert not topics.read(topics.replies)
    assert not topics.read(topics.letters)
    found = document(*command, "--limit", 3)
    assert found["operations"] == 3
    assert sum(place["records"] for place in found["lag"]) < 8
    assert "malformed 1" in run(*command).stdout


def test_a_dry_run_goes_on_from_the_checkpoint_and_leaves_it(
    topics: Topics, tmp_path: Path
) -> None:
    directory = tmp_path / "c"
    run(*topics.ingest, "-c", directory, "--predecessors")
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    topics.produce(topics.updates, ingest.encode_updates(range(9), range(9)), b"")
    topics.produce(topics.queries, ingest.encode_query("p", Kind.PREDECESSORS, 1))
    found = document(*topics.ingest, "-c", directory, "--dry-run")
    assert (found["resumed"], found["records"], found["operations"]) == (True, 3, 10)
    assert (found["refused"], found["rejected"]) == ({}, 1)
    assert before == {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    run(*topics.ingest, "-c", directory, "--dry-run", "--no-predecessors", status=2)


def test_a_dry_run_of_a_file_and_of_a_log(tmp_path: Path) -> None:
    edges = tmp_path / "edges.txt"
    edges.write_text("0 1\n0 2\nx y\n1 2\n")
    found = document("ingest", edges, "--no-names", "--dry-run")
    assert (found["operations"], found["rejected"], found["lag"]) == (3, 1, [])
    assert document("ingest", edges, "--no-names", "--dry-run", "--limit", 2)["operations"] == 2
    with SqliteLog(tmp_path / "log") as log:
        log.produce("updates", ingest.encode_updates([1, 2], [3, 4], kind=[0, 1]))
        log.produce("queries", ingest.encode_query("q", Kind.DEGREE, 1))
    found = document("ingest", tmp_path / "log", "--dry-run")
    assert (found["updates"], found["queries"]) == ({"append": 1, "delete": 1}, 1)
    with SqliteLog(tmp_path / "log", topics=["replies"]) as log:
        assert not log.poll()


def test_a_dry_run_reads_as_it_is_told(topics: Topics, tmp_path: Path) -> None:
    rows = [("alice", "tea", 10), ("bob", "tea", 90), ("alice", "jam", 20)]
    values = [json.dumps({"user": u, "item": v, "at": t}).encode() for u, v, t in rows]
    topics.produce(topics.updates, *values)
    options = ["--from-offsets", f"{topics.updates}:0=6,{topics.queries}=latest", "--dry-run",
               "--source", "user", "--target", "item", "--time", "at",
               "--names", "--set", "records.late=dead-letter",
               "--set", "records.max_lateness=50"]  # fmt: skip
    found = document(*topics.ingest, *options)
    assert (found["operations"], found["dead_letters"]) == (2, {"late": 1})


@pytest.mark.parametrize("form", ["text", "file", "topic", "all"])
def test_from_offsets(topics: Topics, tmp_path: Path, form: str) -> None:
    u, q = topics.updates, topics.queries
    path = tmp_path / "stream.toml"
    path.write_text(f"source.from_offsets = '{u}:0=3,{q}=latest'")
    where, operations = {
        "text": (f"{u}:0=3,{q}:0=latest", 2),
        "file": (None, 2),
        "topic": (f"{u}=latest", 2),
        "all": (f"latest,{u}:0=earliest", 5),
    }[form]
    more = ["--config", path] if where is None else ["--from-offsets", where]
    command = [*topics.ingest, "-c", tmp_path / "c", *more]
    assert document(*command)["operations"] == operations
    assert "holds a checkpoint" in run(*command, status=1).stderr
    run(*command, "--dry-run", status=1)
    rest = document(*topics.ingest, "-c", tmp_path / "c")
    assert (rest["operations"], rest["resumed"]) == (0, True)


def test_a_group_is_told(topics: Topics, tmp_path: Path) -> None:
    group = "told-by-a-command"
    run(*topics.ingest, "--checkpoint", tmp_path / "state", "--set", f"kafka.group={group}")
    lags = group_lags(topics.bootstrap, group)
    assert lags
    assert set(lags.values()) == {0}
    run("ingest", tmp_path / "a.csv", "--set", f"kafka.group={group}", status=2)


def test_from_offsets_that_are_not_there(topics: Topics, tmp_path: Path) -> None:
    u = topics.updates
    wrong = [f"{u}:0", f"{u}:0=-1", f"{u}=3", "3", f"{u}:7=3", "other:0=3", f"{u}:0=1,{u}:0=2", ""]
    for where in wrong:
        run(*topics.ingest, "-c", tmp_path / "c", "--from-offsets", where, status=2)
    out = run(*topics.ingest, "-c", tmp_path / "c", "--from-offsets", f"{u}:0=99", status=1)
    assert "was never written, the log ends at 6" in out.stderr
    assert not (tmp_path / "c").exists()
    edges = tmp_path / "edges.txt"
    edges.write_text("0 1\n")
    run("ingest", edges, "--save", tmp_path / "s", "--from-offsets", "latest", status=2)


def test_an_algorithm_on_a_live_stream(topics: Topics) -> None:
    """Beside whoever else reads it: nothing is answered and nothing committed."""
    watch = ["run", "diversity", f"kafka://{topics.bootstrap}", "--topic", topics.updates]
    options = ["--model", "component", "--k", 1, "--every", 1, "--batch-size", 2]
    found = document(*watch, *options)
    batches = -(-len(ROWS) // 2)
    assert (found["operations"], found["batches"], found["times_run"]) == (
        len(ROWS), batches, batches
    )  # fmt: skip
    assert found["top"][0] == {"vertex": 0, "score": 1, "contexts": [[1, 2]]}
    topics.produce(topics.updates, ingest.encode_row(0, 9))
    assert document(*watch, *options)["top"][0]["contexts"] == [[1, 2], [9]]
    assert topics.read(topics.letters) == topics.read(topics.replies) == []


def test_bad_usage(topics: Topics, tmp_path: Path) -> None:
    save = ["--save", tmp_path / "s"]
    edges = tmp_path / "edges.txt"
    edges.write_text("0 1\n")
    run("ingest", *save, status=2)
    run("ingest", edges, "--kafka", topics.bootstrap, *save, status=2)
    run("ingest", edges, "--topic", "updates", *save, status=2)
    run("ingest", edges, "--set", "outputs.reply_topics=replies", *save, status=2)
    run(*topics.ingest, status=2)  # nothing would remain
    run(*topics.reading, "--set", f"outputs.dead_letter_topic={topics.updates}", *save, status=2)
    run("query", "degree", edges, 0, "--kafka-config", edges, status=2)
    run("doctor", "--kafka-config", edges, status=2)
    absent = run("ingest", "--kafka", topics.bootstrap, "--topic", "absent", *save, status=1)
    assert "no topic absent: create it" in absent.stderr
    assert "host:port" in run("ingest", "--kafka", "nowhere", *save, status=1).stderr


@pytest.fixture
def followed(topics: Topics, tmp_path: Path) -> Iterator[tuple[Topics, Path, list[Any]]]:
    """A process that ingests as it comes, and the command it was started by."""
    command = [*topics.ingest, "-c", tmp_path / "c", "--set", "run.log_json=true"]
    command += ["--follow", "--json"]
    process = subprocess.Popen(
        command_line(*command), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield topics, tmp_path / "c", [process, command]
    finally:
        process.kill()
        process.communicate()


def test_killed_and_resumed_while_it_is_asked(
    followed: tuple[Topics, Path, list[Any]],
) -> None:
    topics, directory, (process, command) = followed
    asked = ["--query-topic", topics.queries, "--reply-topic", topics.replies]

    def answered() -> bool:
        assert process.poll() is None, process.communicate()
        return bool(topics.read(topics.replies))

    wait_for(answered, "the first reply")
    asker = f"kafka://{topics.bootstrap}"
    assert document("query", "degree", asker, 0, *asked)["results"] == [
        {"vertex": 0, "degree": 2, "present": True}
    ]
    process.kill()
    process.wait()
    topics.produce(topics.updates, ingest.encode_row(0, 9))
    rest = document(*[c for c in command if c not in ("--follow", "--json")])
    assert rest["resumed"]
    assert (rest["total_operations"], rest["edges"]) == (9, 6)
    found = document("query", "successors", directory, 0)["results"]
    assert found[0]["ids"] == [1, 2, 9]


def test_sasl_by_a_file(
    kafka: Cluster, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kafka.sasl_bootstrap is None:
        pytest.skip("KAFKA_BOOTSTRAP has no SASL listener that is known")
    (tmp_path / "password").write_text(PASSWORD + "\n")
    settings = tmp_path / "client.properties"
    settings.write_text(
        "# a comment\nsecurity_protocol = SASL_PLAINTEXT\n\nsasl_mechanism=PLAIN\n"
        f"sasl_plain_username = {USER}\nsasl_plain_password_file = password\n"
    )
    command = [kafka.sasl_bootstrap if c == topics.bootstrap else c for c in topics.ingest]
    found = document(*command, "--dry-run", "--kafka-config", settings)
    assert found["operations"] == 7
    # A broker that says nothing to a stranger might be away: it is asked until patience ends.
    usual = KafkaSource.__init__.__kwdefaults__
    assert usual is not None
    monkeypatch.setitem(usual, "patience", 5.0)
    assert run(*command, "--dry-run", status=1)
    facts = document("doctor", "--kafka", kafka.sasl_bootstrap, "--kafka-config", settings)["kafka"]
    assert facts["usable"]
    assert topics.updates in facts["topics"]


def test_doctor_says_whether_kafka_is_reached(kafka: Cluster) -> None:
    assert document("doctor")["kafka"]["usable"]
    found = document("doctor", "--kafka", kafka.bootstrap)["kafka"]
    assert found["brokers"] == [kafka.bootstrap]
    assert found["cluster"]
    assert "cluster" in run("doctor", "--kafka", kafka.bootstrap).stdout
    result = CliRunner().invoke(app, ["doctor", "--kafka", "127.0.0.1:1", "--json"])
    assert result.exit_code == 1
    assert "no Kafka could be reached" in json.loads(result.stdout)["problems"][-1]
