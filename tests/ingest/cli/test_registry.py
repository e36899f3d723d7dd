"""`--schema-registry` of the command line: streams, doctor, repartitioning, and its secrets."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ingest import SqliteLog
from ingest.cli import app
from tests.ingest.registry.test_stream import SCHEMA, row
from tests.support.command_line import document, run
from tests.support.schema_registry import Registry, enveloped, served

pytest.importorskip("fastavro", reason="pip install 'lpma-graph[registry]'")

SECRET = "planted-51c0"
FIELDS = ("--source", "user", "--target", "item", "--weight", "stars", "--names")


@pytest.fixture
def registry() -> Iterator[Registry]:
    with served() as found:
        yield found


@pytest.fixture
def log(tmp_path: Path, registry: Registry) -> Path:
    id = registry.add(SCHEMA)
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", [row(id, "a"), row(id, "b")])
    return tmp_path / "log"


def test_a_stream_and_its_resume(log: Path, tmp_path: Path, registry: Registry) -> None:
    state = tmp_path / "state"
    asks = ("--schema-registry", registry.url)
    assert document("ingest", log, "-c", state, *FIELDS, *asks, "--dry-run")["operations"] == 2
    assert not state.exists()
    found = document("ingest", log, "-c", state, *FIELDS, *asks)
    assert (found["operations"], found["rejected"]) == (2, 0)
    assert f'url = "{registry.url}"' in (state / "stream.toml").read_text()
    with SqliteLog(log) as again:
        again.produce("updates", row(1, "c"))
    registry.fault = lambda path: (503, b"")
    assert document("ingest", "-c", state, "--dry-run")["operations"] == 1
    assert document("ingest", "-c", state)["operations"] == 1  # with what is kept


def test_secrets_are_referred_to_and_written_nowhere(
    log: Path, tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = base64.b64encode(f"ann:{SECRET}".encode()).decode()
    registry.authorization = f"Basic {pair}"
    state, config = tmp_path / "state", tmp_path / "stream.toml"
    monkeypatch.setenv("REGISTRY_PASSWORD", SECRET)
    config.write_text(
        f'[registry]\nurl = "{registry.url}"\n[registry.settings]\nuser = "ann"\n'
        'password = "${REGISTRY_PASSWORD}"\n'
    )
    run("ingest", log, "-c", state, *FIELDS, "--config", config, "--json")
    with SqliteLog(log) as again:
        second = registry.add({**SCHEMA, "name": "F"})
        again.produce("updates", row(second, "c"))
    assert document("ingest", "-c", state)["operations"] == 1
    kept = b"".join(p.read_bytes() for p in state.rglob("*") if p.is_file())
    assert b"${REGISTRY_PASSWORD}" in kept
    assert SECRET.encode() not in kept
    assert pair.encode() not in kept
    monkeypatch.setenv("REGISTRY_PASSWORD", "wrong")
    with SqliteLog(log) as again:
        third = registry.add({**SCHEMA, "name": "G"})
        again.produce("updates", row(third, "d"))
    said = run("ingest", "-c", state, status=1).stderr
    assert "401 Unauthorized" in said


@pytest.mark.parametrize(
    "content, why",
    [
        (f'[registry.settings]\npassword = "{SECRET}"\n', "a secret does not stand here"),
        (f'[registry.settings]\ntoken = "{SECRET}"\n', "a secret does not stand here"),
        ('[registry.settings]\nusr = "ann"\n', "usr: no such setting"),
        ('[registry.settings]\nuser = "ann"\n', "registry.settings need it"),
    ],
)
def test_a_file_that_makes_no_sense(log: Path, tmp_path: Path, content: str, why: str) -> None:
    config = tmp_path / "stream.toml"
    config.write_text(content)
    said = run("ingest", log, "-c", tmp_path / "s", *FIELDS, "--config", config, status=2).stderr
    words = " ".join(said.replace("│", " ").split())
    assert why in words
    assert SECRET not in words


def test_doctor(registry: Registry, tmp_path: Path) -> None:
    registry.add(SCHEMA)
    found = document("doctor", "--schema-registry", registry.url)["schema_registry"]
    assert found == {"avro": True, "url": registry.url, "subjects": 1, "why": None}
    registry.authorization = f"Bearer {SECRET}"
    config = tmp_path / "registry.properties"
    (tmp_path / "token").write_text(f"{SECRET}\n")
    config.write_text("token_file = token\n")
    given = ("--schema-registry", registry.url, "--schema-registry-config", config)
    assert document("doctor", *given)["schema_registry"]["subjects"] == 1
    registry.fault = lambda path: (500, b"")
    result = CliRunner().invoke(app, ["doctor", *map(str, given)])
    assert result.exit_code == 1
    assert "500" in result.stderr
    assert SECRET not in result.stderr + result.stdout


def test_repartition(log: Path, tmp_path: Path, registry: Registry) -> None:
    given: tuple[Any, ...] = (
        "repartition", log, "updates", "--to", tmp_path / "by-owner", "--partitions", 2,
        "-c", tmp_path / "p", *FIELDS,
    )  # fmt: skip
    found = document(*given, "--schema-registry", registry.url)
    assert (found["operations"], found["rejected"]) == (2, 0)


def test_without_a_registry_it_is_said_what_to_give(
    log: Path, tmp_path: Path, registry: Registry
) -> None:
    said = run("ingest", log, "-c", tmp_path / "s", *FIELDS, status=1).stderr
    assert "this looks like Confluent's envelope, with schema 1" in said
    assert "--schema-registry URL" in said
    assert not (tmp_path / "s").exists()


def test_a_file_has_no_schemas(tmp_path: Path, registry: Registry) -> None:
    (tmp_path / "edges.csv").write_text("1,2\n")
    given = (tmp_path / "edges.csv", "--schema-registry", registry.url)
    run("ingest", *given, "-c", tmp_path / "s", status=2)
    run("repartition", *given, "t", "--to", tmp_path / "l", "-c", tmp_path / "p", status=2)


def test_protobuf_is_told_at_once(tmp_path: Path, registry: Registry) -> None:
    id = registry.add('syntax = "proto3";', "PROTOBUF")
    with SqliteLog(tmp_path / "log") as log:
        log.produce("updates", enveloped(id, json.dumps({}).encode()))
    said = run(
        "ingest", tmp_path / "log", "-c", tmp_path / "s", *FIELDS,
        "--schema-registry", registry.url, status=1,
    ).stderr  # fmt: skip
    assert "Protobuf, which is not read" in said
