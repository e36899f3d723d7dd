"""The switch interval of the processes that are ours (ingest/process.py)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from ingest.process import SWITCH_S, pass_the_lock_on_soon
from tests.support.waiting import HANGS_S


@pytest.fixture
def interval() -> Iterator[float]:
    before = sys.getswitchinterval()
    yield before
    sys.setswitchinterval(before)


def test_it_is_set(interval: float) -> None:
    assert interval > SWITCH_S
    pass_the_lock_on_soon()
    assert sys.getswitchinterval() == pytest.approx(SWITCH_S)


def _printed(code: str) -> float:
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=True)
    return float(told.stdout.splitlines()[-1])


def test_the_command_line_sets_it_and_the_library_does_not() -> None:
    usual = _printed("import sys; print(sys.getswitchinterval())")
    library = "import lpma, ingest, algorithms, sys; lpma.Graph(device='cpu').insert(1, 2);"
    assert _printed(f"{library} print(sys.getswitchinterval())") == usual
    command = "import sys; from ingest.cli import main; sys.argv = ['lpma', '--version']\n"
    command += "try: main()\nexcept SystemExit: pass\nprint(sys.getswitchinterval())"
    assert _printed(command) == pytest.approx(SWITCH_S)


def test_a_shard_sets_it(interval: float, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    from ingest.cluster import ray_engine, supervisor

    class Begun(Exception):
        pass

    def begin(*_: object) -> None:
        raise Begun

    monkeypatch.setattr(supervisor.ShardSupervisor, "__init__", begin)
    monkeypatch.setattr(ray_engine, "_log_events", lambda: None)
    monkeypatch.setattr(ray_engine, "take_usual_priority", lambda: None)
    with pytest.raises(Begun):
        ray_engine._ShardActor(None)  # type: ignore[arg-type]
    assert sys.getswitchinterval() == pytest.approx(SWITCH_S)
