"""Without what only Linux has, as on macOS: the library, files and the embedded log's pipeline do
their work and sync as far as there; what cannot, says so by name.

Each test is a process of its own, in which all that is gone (tests/support/as_macos.py)."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import numpy as np
import pytest

import algorithms
import ingest
import lpma
from lpma.file.atomic import atomic_write
from tests.support.as_macos import environment
from tests.support.command_line import ROOT, command_line
from tests.support.waiting import HANGS_S

pytestmark = pytest.mark.system

# What libraries that are for CUDA or for Ray need; Ray's build for Linux needs Linux.
ELSEWHERE = re.compile(r"^(lpma|algorithms)\..*cuda|^ingest\.cluster\.(ray_engine|ray_connection)$")


@pytest.fixture
def there(tmp_path: Path) -> dict[str, str]:
    """The environment of processes on macOS."""
    (tmp_path / "hook").mkdir()
    return environment(tmp_path / "hook")


def python(there: dict[str, str], work: Callable[..., Any], *arguments: object) -> str:
    """What that function prints there."""
    call = f"{work.__name__}({', '.join(map(repr, map(str, arguments)))})"
    return said(there, [sys.executable, "-c", f"import {__name__} as here; here.{call}"])


def said(there: dict[str, str], command: list[str], status: int = 0) -> str:
    """The last line on stdout of a process there; of one that fails, on stderr."""
    ended = subprocess.run(
        command, env=there, cwd=ROOT, capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    assert ended.returncode == status, ended.stderr
    assert "Traceback" not in ended.stderr
    return (ended.stderr if status else ended.stdout).strip().rpartition("\n")[2]


def modules() -> Iterator[str]:
    for package in (lpma, ingest, algorithms):
        for found in walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield found.name


def import_all() -> None:
    wrong = []
    for name in modules():
        if not ELSEWHERE.search(name):
            try:
                import_module(name)
            except Exception as error:  # noqa: BLE001 - all of them are told
                wrong.append(f"{name}: {error!r}")
    print(*wrong, sep="; ")


def test_all_but_cuda_and_ray_is_imported(there: dict[str, str]) -> None:
    assert python(there, import_all) == ""


def sync(folder: str) -> None:
    with atomic_write(Path(folder) / "file") as file:
        file.write(b"all")
    import fcntl
    import os

    del os.fsync  # nothing else is called
    fcntl.fcntl = lambda *given: calls.append(given[1:])  # type: ignore[assignment]
    calls: list[Any] = []
    with atomic_write(Path(folder) / "file") as file:
        file.write(b"again")
    print(calls)


def test_a_sync_waits_for_the_drive(there: dict[str, str], tmp_path: Path) -> None:
    """Of the bytes, then of the name."""
    assert python(there, sync, tmp_path) == "[(51,), (51,)]"


def stream(folder: str) -> None:
    """An embedded log's pipeline, which is left without a last checkpoint, and the one that resumes
    it, which is asked."""
    path = Path(folder)
    src, dst = np.random.default_rng(1).integers(0, 50, (2, 40, 100))
    records = [ingest.encode_updates(*pair) for pair in zip(src, dst, strict=True)]
    options: dict[str, Any] = {"track": ["core"], "results": path / "results", "batch_size": 100}
    with ingest.SqliteLog(path / "log") as log:
        log.produce_many("updates", records[:20])
        graph = lpma.Graph(device="cpu")
        state: dict[str, Any] = {"checkpoint": path / "state", "checkpoint_operations": 500}
        pipeline = ingest.Pipeline(log, graph, window=10**9, **state, **options)
        pipeline.run("end")
        pipeline.close(checkpoint=False)
    with ingest.SqliteLog(path / "log") as log:
        log.produce_many("updates", records[20:])
        with ingest.Pipeline.resume(path / "state", log, device="cpu", **options) as pipeline:
            pipeline.run("end")
            runs = threading.Thread(target=pipeline.run)
            runs.start()
            with ingest.Client(log, timeout=HANGS_S) as client:
                degree = client.degree(7).answer
            pipeline.stop()
            runs.join()
            whole = lpma.Graph(device="cpu")
            for pair in zip(src, dst, strict=True):
                whole.insert(*pair)
            expected = whole.snapshot()
            found = pipeline.graph.snapshot()  # type: ignore[attr-defined]
            assert (found.to_scipy() != expected.to_scipy()).nnz == 0
            assert degree == whole.degree(7)
    cores: dict[int, int] = {}
    for line in (path / "results").read_text().splitlines():
        result = json.loads(line)
        if result["figure"] == "core":
            cores.update(zip(result["vertex"], result["new"], strict=True))
    assert cores == dict(enumerate(algorithms.core_numbers(expected).tolist()))
    print("exactly")


def test_a_stream_is_checkpointed_resumed_and_asked(there: dict[str, str], tmp_path: Path) -> None:
    assert python(there, stream, tmp_path) == "exactly"


def test_the_commands_work(there: dict[str, str], tmp_path: Path) -> None:
    edges, store, state = tmp_path / "own.csv", tmp_path / "own.lpma", tmp_path / "state"
    edges.write_text("from,to,amount\nann,bob,2\nbob,cid,5\ncid,ann,1\n")

    def done(*arguments: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(said(there, command_line(*arguments, "--json")))
        return found

    done("load", "rmat:scale=13", store)  # large enough for huge pages
    done("run", "truss", store, "--out", tmp_path / "truss.csv", "--plot", tmp_path / "truss.png")
    done("load", edges, store, "--weight", "amount", "--names")
    assert done("info", store)["edges"] == 3
    assert done("run", "core", store)["max_core"] == 2
    done("export", store, tmp_path / "edges.parquet")
    done("ingest", edges, "--checkpoint", state, "--names", "--batch-size", 1)
    assert done("query", "successors", state, "ann")["results"][0]["ids"] == ["bob"]
    assert done("doctor")["gpu"]["why"].startswith("CUDA needs Linux")


def test_a_store_is_served(there: dict[str, str], tmp_path: Path) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([0, 0], [1, 2])
    graph.save(tmp_path / "graph.lpma")
    serve = command_line("serve", tmp_path / "graph.lpma", "--address", 0, "--json")
    with subprocess.Popen(serve, env=there, cwd=tmp_path, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            url = json.loads(server.stdout.readline())["url"]
            with urllib.request.urlopen(f"{url}/v1/degree/0", timeout=HANGS_S) as answer:
                assert json.load(answer)["degree"] == [2]
            server.send_signal(signal.SIGTERM)
            assert server.wait(HANGS_S) == 0
        finally:
            server.kill()


@pytest.mark.integration
def test_processes_are_spawned_killed_and_resumed(there: dict[str, str], tmp_path: Path) -> None:
    """Those of the demo."""
    demo = command_line(
        "demo", "--out", tmp_path / "demo", "--operations", 5000, "--seconds", 0, "--json"
    )
    told = json.loads(said({**there, "LPMA_DATA": ""}, demo))
    assert told == {**told, "same_state": True, "same_replies": True}


def test_what_needs_linux_says_so(there: dict[str, str], tmp_path: Path) -> None:
    store, log = tmp_path / "graph.lpma", tmp_path / "log"
    log.write_text("no log: where a cluster can run, this one ends")
    for command, why in (
        (("load", "path:n=9", store, "--device", "cuda"), "CUDA needs Linux"),
        (("cluster", "run", log, "--shards", 2, "--checkpoint", tmp_path / "state"),
         "lpma cluster needs Linux"),
        (("cluster", "status", tmp_path / "state"), "lpma cluster needs Linux"),
    ):  # fmt: skip
        assert why in said(there, command_line(*command), status=1)
    assert not (tmp_path / "state").exists()
