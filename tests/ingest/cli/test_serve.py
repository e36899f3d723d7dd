"""`lpma serve` and `lpma ingest --serve`: where they say they are, they are; who may, may."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import ingest
import lpma
from ingest.cli._serve_options import ServeOptions
from tests.support.broker import Cluster
from tests.support.command_line import ROOT, command_line, run
from tests.support.hidden import VARIABLE, modules_of, write_hook
from tests.support.raw_http import ask, request
from tests.support.waiting import HANGS_S, wait_for

TOKEN, WRITE_TOKEN = "read-" + "r" * 20, "write-" + "w" * 20
URL = re.compile(r"served at (http://127\.0\.0\.1:(\d+))")


@contextmanager
def running(*arguments: object, folder: Path, **environment: str) -> Iterator[tuple[Any, int]]:
    """A process of the command line that serves, and its port; ended by SIGTERM, with status 0."""
    process = subprocess.Popen(
        command_line(*arguments), cwd=folder, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(folder), **environment},
    )  # fmt: skip
    assert process.stderr is not None
    try:
        said = ""
        while not (found := URL.search(said)):
            line = process.stderr.readline()
            assert line, said
            said += line
        yield process, int(found[2])
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=HANGS_S)
        assert process.returncode == 0, rest
        assert "Traceback" not in rest
    finally:
        process.kill()
        process.wait()


def test_a_saved_store_is_served_until_it_is_stopped(store: Path, tmp_path: Path) -> None:
    with running("serve", store, "--address", 0, "--json", folder=tmp_path) as (process, port):
        told = json.loads(process.stdout.readline())
        assert told["url"] == f"http://127.0.0.1:{port}"
        graph = lpma.Graph.load(store)
        assert told["edges"] == graph.num_edges
        answer = ask(port, request("/v1/degree/0"))
        assert answer.status == 200
        assert json.loads(answer.body)["degree"] == [graph.degree([0])[0]]
        refused = ask(port, request("/v1/updates", "POST", b"{}", Content_Type="application/json"))
        assert refused.status in (404, 405, 409)


def test_a_stream_is_served_while_it_runs(tmp_path: Path) -> None:
    """Also what comes later; and the end is a checkpoint, as without it."""
    with ingest.SqliteLog(tmp_path / "log") as log:
        log.produce("updates", ingest.encode_updates([1, 1], [2, 3]))
        options = ("--serve", 0, "--follow", "--checkpoint", tmp_path / "state")
        with running("ingest", tmp_path / "log", *options, folder=tmp_path) as (_, port):
            body = json.loads(ask(port, request("/v1/graph")).body)
            assert body["title"] == "log"

            def degree() -> int:
                found = json.loads(ask(port, request("/v1/degree/1")).body)["degree"]
                return int(found[0])

            wait_for(lambda: degree() == 2, "what was there")
            log.produce("updates", ingest.encode_updates([1], [4]))
            wait_for(lambda: degree() == 3, "what came later")
    assert run("info", tmp_path / "state").exit_code == 0


def test_a_stream_begins_with_its_service(tmp_path: Path) -> None:
    """No log is there, and its first edge comes over HTTP; a log that was lost is not made anew."""
    options = ("--serve", 0, "--follow", "--checkpoint", tmp_path / "state")
    with running("ingest", tmp_path / "new.log", *options, folder=tmp_path) as (_, port):
        body = b'{"src": [5, 1], "dst": [null, 2], "kind": ["add_vertex", "append"]}'
        sent = request("/v1/updates?wait=applied", "POST", body, Content_Type="application/json")
        assert ask(port, sent).status == 200
        assert json.loads(ask(port, request("/v1/vertices/5")).body)["present"] == [True]
    (tmp_path / "new.log").unlink()
    lost = run("ingest", tmp_path / "new.log", *options, status=1)
    assert "no such file" in lost.stderr
    assert not (tmp_path / "new.log").exists()


def test_a_stream_that_ends_ends_its_service(edge_file: Path, tmp_path: Path) -> None:
    told = run("ingest", edge_file, "--save", tmp_path / "saved", "--serve", 0)
    assert URL.search(told.stderr.replace("\n", ""))
    assert lpma.Graph.load(tmp_path / "saved").num_edges > 0


def test_tokens_come_from_files_or_the_environment(store: Path, tmp_path: Path) -> None:
    private, public = tmp_path / "private", tmp_path / "public"
    private.write_text(f"{WRITE_TOKEN}\n")
    private.chmod(0o600)
    public.write_text(TOKEN)
    public.chmod(0o644)
    given = bearer(TOKEN)
    with running(
        "serve", store, "--address", 0, "--write-token-file", private,
        folder=tmp_path, LPMA_TOKEN=TOKEN,
    ) as (process, port):  # fmt: skip
        assert ask(port, request("/v1/degree/0")).status == 401
        assert ask(port, request("/v1/degree/0", **given)).status == 200
        assert ask(port, request("/v1/degree/0", **bearer(WRITE_TOKEN))).status == 200
        command = Path(f"/proc/{process.pid}/cmdline").read_text()
        assert TOKEN not in command
        assert WRITE_TOKEN not in command
    said = access_warnings(ServeOptions(token_file=public, write_token_file=private))
    assert "chmod 600" in said
    assert str(public) in said
    assert str(private) not in said
    assert TOKEN not in said


def bearer(token: str) -> dict[str, Any]:
    return {"Authorization": f"Bearer {token}"}


def access_warnings(options: ServeOptions, address: str = "0") -> str:
    """What is said on stderr when access is read."""
    import io
    from contextlib import redirect_stderr

    with redirect_stderr(io.StringIO()) as said:
        options.access(address, "--serve")
    return said.getvalue()


def test_an_insecure_address_is_said_aloud() -> None:
    said = access_warnings(ServeOptions(insecure=True), "0.0.0.0:0")
    assert "may read and write" in said
    assert "no TLS" in said
    assert access_warnings(ServeOptions(insecure=True), "127.0.0.1:0") == ""


@pytest.mark.parametrize(
    "options, status, said",
    [
        (["--address", "0.0.0.0:0"], 1, "serve.insecure"),
        (["--address", "nonsense"], 2, "give a port"),
        (["--address", "0", "--token-file", "none"], 1, "no such file"),
        (["--address", "0", "--token-file", "weak"], 1, "openssl rand"),
        (["--address", "0", "--set", "serve.tls_cert=none"], 1, "serve.tls_key"),
        (
            ["--address", "0", "--set", "serve.tls_cert=weak", "--set", "serve.tls_key=weak"],
            1,
            "no certificate",
        ),
    ],
)
def test_what_cannot_be_served_is_told_in_a_line(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], status: int,
    said: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("weak").write_text("weak")
    Path("weak").chmod(0o600)
    assert said in run("serve", store, *options, status=status).stderr
    log = tmp_path / "log"
    with ingest.SqliteLog(log):
        pass
    options = ["--serve" if option == "--address" else option for option in options]
    if options[2:3] == ["--token-file"]:
        options[2:] = ["--set", f"serve.token_file={options[3]}"]
    told = run("ingest", log, "--checkpoint", "state", *options, status=status)
    assert said in told.stderr
    assert not Path("state").exists()


def test_a_port_in_use_is_told_in_a_line(store: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        told = run("serve", store, "--address", port, status=1)
    assert told.stderr.splitlines() == [
        f"lpma: [Errno 98] 127.0.0.1 port {port} cannot be served: Address already in use"
    ]


def test_options_of_serving_need_it(edge_file: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    told = run("ingest", edge_file, "--save", saved, "--set", "serve.allow_hosts=x", status=2)
    assert "--serve" in told.stderr


@pytest.mark.parametrize(
    "options, said",
    [
        ([], "it needs --serve"),
        (["--serve", 0], "elsewhere is not read for updates: name one of updates"),
    ],
)
def test_updates_go_to_a_topic_that_is_read(
    tmp_path: Path, options: list[object], said: str
) -> None:
    with ingest.SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
    given = (tmp_path / "log", "--checkpoint", tmp_path / "state", *options)
    told = run("ingest", *given, "--set", "serve.updates_topic=elsewhere", status=2)
    assert said in " ".join(told.stderr.replace("│", " ").split())
    assert not (tmp_path / "state").exists()


def test_updates_go_to_the_topic_that_is_named(kafka: Cluster, tmp_path: Path) -> None:
    """Of several that are read, none takes them until it is said which."""
    orders, returns = kafka.topic(name="orders"), kafka.topic(name="returns")
    options = ["--kafka", kafka.bootstrap, "--topic", orders, "--topic", returns, "--serve", 0]
    post = request("/v1/updates", "POST", b'{"src": 1, "dst": 2}', Content_Type="application/json")
    for named, status in ((False, 409), (True, 202)):
        more = ["--set", f"serve.updates_topic={returns}"] if named else []
        state = ["--follow", "--checkpoint", tmp_path / f"state{status}"]
        with running("ingest", *options, *more, *state, folder=tmp_path) as (_, port):
            answer = ask(port, post)
        assert answer.status == status
        told = json.loads(answer.body)
        assert told["topic"] == returns if named else f"{orders}, {returns}" in told["detail"]


def test_without_the_extra_it_says_what_to_install(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("ingest.service")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(ingest, "service", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    told = run("serve", store, status=1)
    assert len(told.stderr.splitlines()) == 1
    assert "pip install 'lpma-graph[serve]'" in told.stderr


def test_a_bug_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    from ingest.cli._console import telling_outages
    from ingest.events import LOGGER, Event

    with telling_outages():
        for _ in range(2):
            try:
                raise KeyError("with what was asked")
            except KeyError as error:
                LOGGER.error(Event("service error", {}), exc_info=error)
    said = capsys.readouterr().err
    assert re.fullmatch(r"lpma: .* failed to answer: KeyError at line \d+ of test_serve.py\n", said)


@pytest.mark.parametrize("command", [
    ["serve", "g.lpma"], ["ingest", "s.log", "-c", "state", "--follow", "--serve", "0"],
], ids=lambda command: command[0])  # fmt: skip
def test_without_what_serves_it_fails_at_once_and_says_what_to_install(
    tmp_path: Path, command: list[str]
) -> None:
    write_hook(tmp_path)
    graph = lpma.Graph(device="cpu")
    graph.insert(1, 2)
    graph.save(tmp_path / "g.lpma")
    done = subprocess.run(
        command_line(*command), cwd=tmp_path, capture_output=True, text=True, timeout=HANGS_S,
        env=os.environ | {
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", VARIABLE: " ".join(modules_of("serve"))
        }, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("lpma: serving needs Starlette and uvicorn")
    assert "pip install 'lpma-graph[serve]'" in done.stderr
    assert not (tmp_path / "state").exists()
