"""Settings for Kafka in a file: both forms, secrets from elsewhere, errors by its name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ingest import SourceError
from ingest.sources.kafka.config import read_settings
from tests.support.command_line import run
from tests.support.fault_broker import FaultBroker


def config(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_both_forms_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER_OF_KAFKA", "me=you")
    (tmp_path / "secret").write_text("1234\n")
    expected = {
        "security_protocol": "SASL_SSL", "ssl_cafile": str(tmp_path / "ca.pem"),
        "ssl_check_hostname": False, "request_timeout_ms": 5000, "client_id": "7",
        "sasl_plain_username": "a-me=you-b", "sasl_plain_password": "1234",
    }  # fmt: skip
    lines = """
    security_protocol = SASL_SSL
    # ssl_password = none
    ssl_cafile=ca.pem
    ssl_check_hostname = false
    request_timeout_ms = 5000
    client_id = 7
    sasl_plain_username = a-${USER_OF_KAFKA}-b
    sasl_plain_password_file = secret
    """
    assert read_settings(config(tmp_path / "a", lines)) == expected
    content = {
        "security_protocol": "SASL_SSL", "ssl_cafile": "ca.pem", "ssl_check_hostname": False,
        "request_timeout_ms": 5000, "client_id": "7",
        "sasl_plain_username": "a-${USER_OF_KAFKA}-b",
        "sasl_plain_password_file": str(tmp_path / "secret"),
    }  # fmt: skip
    assert read_settings(config(tmp_path / "b", json.dumps(content))) == expected


WRONG = {
    "a line": "expected name = value",
    "sasl_plain_password": "expected name = value",
    "= hush": "without a name",
    "client_id = a\nclient_id = b": "given twice",
    "sasl_plain_password = ${NOT_THERE}": "no variable NOT_THERE",
    "sasl_plain_password_file = away": "cannot be read",
    "sasl_plain_password_file =": "name of a file",
    "ssl_check_hostname = perhaps": "true or false",
    "request_timeout_ms = soon": "whole number",
    "ssl_context = x": "from Python",
    '{"client_id": 7}': "expected text",
    '{"client_id": [7]}': "expected text",
    '{"client_id": "x"': "not JSON",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_is_told_by_name_and_not_by_value(text: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        read_settings(config(tmp_path / "f", text))
    said = str(caught.value)
    assert WRONG[text] in said
    for value in ("hush", "perhaps", "soon"):
        assert value not in said


def test_a_setting_that_is_not_to_be_set(tmp_path: Path) -> None:
    settings = config(tmp_path / "f", "group_id = mine")
    with FaultBroker(updates=1, queries=1) as broker:
        command = ["ingest", "--kafka", broker.bootstrap, "--dry-run", "--kafka-config"]
        assert "group_id" in run(*command, settings, status=1).stderr
        assert "cannot be read" in run(*command, tmp_path / "away", status=1).stderr
