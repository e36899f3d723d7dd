"""Passwords stay where they were given: in no file, log line, error, repr or metric.

The log is taken at its most talkative, from every logger there is, kafka-python's too.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import ingest
import lpma
from ingest import KafkaSink, KafkaSource, Pipeline, SourceError
from ingest.cli import app
from ingest.events import JsonLines
from ingest.metrics import MetricsServer
from ingest.plots.run_log import RunLog
from lpma import Kind
from tests.ingest.test_metrics import scrape
from tests.support.fault_broker import FaultBroker
from tests.support.own_time import OwnTime

PASSWORD = "planted-5e8c1f"
KEY_PASSWORD = "planted-too-77aa"
SASL: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "reader",
    "sasl_plain_password": PASSWORD,
}


class Heard(logging.Handler):
    """Everything that is logged, in words and as JSON, with the values of the records."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.text: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.text += [logging.Formatter().format(record), JsonLines().format(record)]


@pytest.fixture
def heard() -> Iterator[Heard]:
    root, handler = logging.getLogger(), Heard()
    level = root.level
    root.setLevel(logging.DEBUG)
    root.addHandler(handler)
    try:
        yield handler
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def shown(error: BaseException) -> str:
    return "\n".join([repr(error), str(error), *traceback.format_exception(error)])


def assert_nowhere(texts: list[str], directory: Path) -> None:
    """Neither password in the texts, nor in a file or its name."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    contents = [text.encode() for text in texts] + [path.read_bytes() for path in files]
    names = [str(path).encode() for path in files]
    for secret in (PASSWORD, KEY_PASSWORD):
        for content in contents + names:
            assert secret.encode() not in content


def test_a_pipeline_over_sasl_keeps_its_password(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the connection to the checkpoint, the metrics and an error at the end."""
    with FaultBroker(updates=1, replies=1) as broker:
        own_time = OwnTime(broker, monkeypatch)
        broker.password = PASSWORD
        broker.create_topic("dead-letters")
        broker.produce(
            "updates",
            [ingest.encode_row(1, 2), b"bad", ingest.encode_query("q", Kind.DEGREE, 1)],
        )
        said: list[str] = []
        graph = lpma.Graph(predecessors=True, device="cpu")
        with KafkaSource(broker.bootstrap, ["updates"], settings=SASL, patience=30) as source:
            pipeline = Pipeline(source, graph, tmp_path / "c")
            with pipeline, MetricsServer(pipeline, 0) as server:
                with RunLog(tmp_path / "run", graph) as log:
                    pipeline.run("end", log)
                assert pipeline.stats.operations == 2
                said += [str(scrape(server)), repr(source), repr(pipeline), repr(source.sink())]
                said += [repr(pipeline.settings), repr(pipeline.outputs), str(source.identity())]
                pipeline.checkpoint_now()
                own_time.stop()
                with pytest.raises(SourceError) as caught:
                    pipeline.run(until=10)
                said.append(shown(caught.value))
        assert len(broker.values("replies")) == len(broker.values("dead-letters")) == 1
        said += [repr(value) for topic in broker.topics for value in broker.values(topic)]
    assert broker.asked["SaslAuthenticate"] >= 2, "the password was used"
    assert any("checkpoint" in line for line in heard.text)
    assert any("kafka" in line for line in heard.text), "kafka-python was listened to"
    assert_nowhere(said + heard.text, tmp_path)


@pytest.mark.parametrize("kind", [KafkaSource, KafkaSink])
def test_a_refused_password_is_not_told(
    kind: Any, heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingest.sources.kafka.source._CONNECT_TIMEOUT_S", 3.0)
    with FaultBroker(updates=1) as broker:
        broker.password = "another"

        def use() -> None:
            if kind is KafkaSource:
                KafkaSource(broker.bootstrap, ["updates"], settings=SASL)
            KafkaSink(broker.bootstrap, settings=SASL, patience=1.0).create_topic("updates")

        with pytest.raises(SourceError) as caught:
            use()
    assert "wrong password" in str(caught.value)
    assert_nowhere([shown(caught.value), *heard.text], tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        {"ssl_password": KEY_PASSWORD, "ssl_keyfile": "none", "ssl_certfile": "none"},
        {"ssl_password": KEY_PASSWORD, "sasl_plain_pasword": PASSWORD},  # misspelt
        {"ssl_password": KEY_PASSWORD, "sasl_plain_password": PASSWORD, "sasl_mechanism": "none"},
        {"ssl_password": KEY_PASSWORD, "ssl_cafile": "none"},
    ],
)
def test_settings_that_are_refused_are_not_told(
    settings: dict[str, Any], heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingest.sources.kafka.source._CONNECT_TIMEOUT_S", 3.0)
    protocol = "SASL_SSL" if "sasl_mechanism" in settings else "SSL"
    with FaultBroker(updates=1) as broker, pytest.raises(SourceError) as caught:
        KafkaSource(
            broker.bootstrap, ["updates"], settings={"security_protocol": protocol, **settings},
            patience=1.0,
        )  # fmt: skip
    assert_nowhere([shown(caught.value), *heard.text], tmp_path)


CONFIGS = {
    "lines": f"""
        security_protocol = SASL_PLAINTEXT
        sasl_mechanism = PLAIN
        sasl_plain_username = reader
        sasl_plain_password = {PASSWORD}
        """,
    "environment": "security_protocol=SASL_PLAINTEXT\nsasl_mechanism=PLAIN\n"
    "sasl_plain_username=reader\nsasl_plain_password=${PLANTED}",
    "file": "security_protocol=SASL_PLAINTEXT\nsasl_mechanism=PLAIN\n"
    "sasl_plain_username=reader\nsasl_plain_password_file=password",
    "json": json.dumps(SASL),
}


@pytest.mark.parametrize("form", CONFIGS)
def test_the_command_line_keeps_what_its_file_says(
    form: str, heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first run to a broker that went away: output, events, statistics, checkpoint."""
    monkeypatch.setenv("PLANTED", PASSWORD)
    monkeypatch.setattr("ingest.sources.kafka.source._CONNECT_TIMEOUT_S", 3.0)
    (given := tmp_path / "given").mkdir()
    (given / "password").write_text(PASSWORD)
    config = given / "client"
    config.write_text(CONFIGS[form])
    out = tmp_path / "out"
    out.mkdir()
    said: list[str] = []

    def run(*arguments: object, status: int = 0) -> None:
        told = [*map(str, arguments), "--kafka-config", str(config)]
        result = CliRunner().invoke(app, told)
        said.extend([result.output, result.stderr, repr(result.exception)])
        if result.exc_info is not None:
            said.extend(traceback.format_exception(result.exc_info[1]))
        assert result.exit_code == status, result.output

    with FaultBroker(updates=1, queries=1) as broker:
        broker.password = PASSWORD
        broker.create_topic("replies")
        broker.create_topic("dead-letters")
        broker.produce("updates", [ingest.encode_row(1, 2), b"bad"])
        ingest_it = ["ingest", "--kafka", broker.bootstrap, "-c", out / "c"]
        run(*ingest_it, "--dry-run")
        figures = f"outputs.statistics={out}/run.jsonl"
        run(*ingest_it, "--set", "run.log_json=true", "--set", figures, "--json")
        assert broker.asked["SaslAuthenticate"] >= 2, "the password was used"
        run("doctor", "--kafka", broker.bootstrap)
        broker.password = "another"
        run(*ingest_it, status=1)
        run("query", "degree", f"kafka://{broker.bootstrap}", 1, status=1)
        with open(config, "a") as file:
            file.write(f"\nssl_password = {KEY_PASSWORD}\n{KEY_PASSWORD}\n")
        run(*ingest_it, status=1)
    assert_nowhere(said + heard.text, out)
