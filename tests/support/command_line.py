"""The command line, run within the test or as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from ingest.cli import app
from ingest.cluster.control import ControlError, ask
from tests.support.waiting import wait_for

ROOT = Path(__file__).parents[2]
PNG = b"\x89PNG\r\n\x1a\n"


def run(*arguments: object, status: int = 0) -> Any:
    """The command's result, after checking its exit status and where it said why."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == status, (result.stdout, result.stderr, result.exception)
    if status == 1:
        assert result.stdout == ""
        last = result.stderr.splitlines()[-1]
        assert last.startswith("lpma: ")
        assert "Traceback" not in result.stderr
    if status == 2:
        assert "Usage" in result.stderr
    return result


def document(*arguments: object) -> dict[str, Any]:
    """The one JSON document on stdout."""
    output = run(*arguments, "--json").stdout
    assert output.count("\n") == 1
    found: dict[str, Any] = json.loads(output)
    return found


def command_line(*arguments: object) -> list[str]:
    program = "import sys; from ingest.cli import main; main()"
    return [sys.executable, "-c", program, *(str(argument) for argument in arguments)]


def await_cluster(process: subprocess.Popen[Any], directory: Path, state: str = "running") -> None:
    """Wait until the cluster that this process runs with a checkpoint directory is in a state."""

    def is_there() -> bool:
        assert process.poll() is None, process.communicate()
        return bool(ask(directory, "status")["state"] == state)

    wait_for(is_there, f"a cluster that is {state}", despite=ControlError)
