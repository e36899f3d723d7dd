"""`lpma ingest --format debezium`, from a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ingest import SqliteLog
from tests.support.command_line import document, run

TOPIC = "shop.public.paid"
READ = ["--topic", TOPIC, "--format", "debezium", "--source", "payer", "--target", "payee",
        "--weight", "amount", "--time", "source.ts_ms", "--names"]  # fmt: skip


def change(log: Path, op: str, id: int, *row: Any) -> None:
    """A change of a payment: payer, payee and amount."""
    after = dict(zip(("id", "payer", "payee", "amount"), (id, *row), strict=True)) if row else None
    source = {"connector": "postgresql", "ts_ms": 5}
    content = {"op": op, "before": None, "after": after, "source": source}
    key = json.dumps({"id": id}).encode()
    with SqliteLog(log) as opened:
        opened.create_topic(TOPIC)
        opened.produce(TOPIC, json.dumps(content).encode(), key=key)
        if op == "d":
            opened.produce(TOPIC, None, key=key)


def weight(checkpoint: Path, src: str, dst: str) -> float | None:
    found = document("query", "edge", checkpoint, src, dst)["results"][0]
    return found["weight"] if found["found"] else None


def test_payments_are_summed_over_resumes(tmp_path: Path) -> None:
    log, state = tmp_path / "log", tmp_path / "state"
    command = ["ingest", log, "--checkpoint", state, *READ]
    change(log, "c", 1, "ann", "bob", 0.5)
    told = run(*command, status=1).stderr
    assert "the key of the table is id" in told
    assert "--on-repeat" in told
    change(log, "c", 2, "ann", "bob", 0.25)
    change(log, "r", 2, "ann", "bob", 0.25)
    document(*command, "--on-repeat", "sum")
    assert weight(state, "ann", "bob") == 0.75
    change(log, "d", 1)
    change(log, "u", 2, "ann", "cat", 0.25)
    found = document("ingest", "--checkpoint", state)
    assert (found["resumed"], found["skipped"]) == (True, {"tombstone": 1})
    assert (weight(state, "ann", "bob"), weight(state, "ann", "cat")) == (None, 0.25)
    other = run("ingest", "--checkpoint", state, "--on-repeat", "last", status=1)
    assert "records.on_repeat" in other.stderr
    counted = document("ingest", "--checkpoint", state, "--dry-run")
    assert (counted["resumed"], counted["operations"]) == (True, 0)


def test_a_column_that_was_renamed(tmp_path: Path) -> None:
    log, state = tmp_path / "log", tmp_path / "state"
    change(log, "c", 1, "ann", "bob", 0.5)
    document("ingest", log, "-c", state, *READ, "--on-repeat", "sum")
    told = run("ingest", "-c", state, "--weight", "total", status=1).stderr
    assert "a resume cannot change: leave it out, or start a new checkpoint from a new snap" in told
    assert "ReplaceField can keep the old name" in told


def test_a_dry_run_counts_from_the_rows_that_are_remembered(tmp_path: Path) -> None:
    log, state = tmp_path / "log", tmp_path / "state"
    change(log, "c", 1, "ann", "bob", 0.5)
    document("ingest", log, "--checkpoint", state, *READ, "--on-repeat", "sum")
    change(log, "d", 1)
    counted = document("ingest", "--checkpoint", state, "--dry-run")
    assert counted["updates"] == {"delete": 1}


def test_a_mapping_for_each_topic_stands_in_a_file(tmp_path: Path) -> None:
    log, state = tmp_path / "log", tmp_path / "state"
    change(log, "c", 1, "ann", "bob", 0.5)
    with SqliteLog(log) as opened:
        opened.create_topic("users")
        user = {"op": "c", "before": None, "after": {"name": "eve"}, "source": {}}
        opened.produce("users", json.dumps(user).encode(), key=b'{"name": "eve"}')
    config = tmp_path / "stream.toml"
    config.write_text(
        f"""
        [source]
        path = "{log}"
        [records]
        names = true
        [checkpoints]
        directory = "{state}"
        [[kafka.topics]]
        name = "{TOPIC}"
        format = "debezium"
        fields = {{source = "payer", target = "payee", weight = "amount"}}
        on_repeat = "last"
        [[kafka.topics]]
        name = "users"
        format = "debezium"
        fields = {{source = "name", default_kind = "add_vertex"}}
        """
    )
    assert document("ingest", "--config", config)["vertices"] == 3
    assert document("ingest", "--checkpoint", state)["vertices"] == 3


@pytest.mark.parametrize(
    "options",
    [
        ["--on-repeat", "sum"],
        ["--on-tombstone", "delete"],
        ["--format", "debezium", "--kind", "what"],
        ["--format", "debezium", "--on-repeat", "first"],
    ],
)
def test_options_that_mean_nothing_are_refused(options: list[str], tmp_path: Path) -> None:
    change(tmp_path / "log", "c", 1, "ann", "bob", 0.5)
    run("ingest", tmp_path / "log", "--checkpoint", tmp_path / "state", *options, status=2)


def test_files_are_not_read_so(edge_file: Path, tmp_path: Path) -> None:
    told = run("ingest", edge_file, "-c", tmp_path / "state", "--format", "debezium", status=2)
    assert "embedded log" in told.stderr
