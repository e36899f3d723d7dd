"""Metrics as a scraper sees them: over HTTP, and the same figures as the pipeline's own."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import ingest
import lpma
from ingest import IngestError, Pipeline, PipelineError, SqliteLog
from ingest.arguments import parse_address
from ingest.metrics import MetricsServer
from lpma import Kind
from tests.support.command_line import run
from tests.support.stream_model import SavedModel
from tests.support.waiting import HANGS_S

Figures = dict[tuple[str, ...], float]


def scrape(server: MetricsServer) -> Figures:
    """(name, label values …) → value of every sample."""
    url = f"http://{server.host}:{server.port}/metrics"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(url, timeout=30) as response:
        assert response.headers["Content-Type"].startswith("text/plain")
        text = response.read().decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def fill(log: SqliteLog) -> None:
    log.produce_many(
        "updates",
        [
            ingest.encode_updates(range(100), range(1, 101)),
            ingest.encode_updates([7], [7], producer="p", seq=3),
            ingest.encode_updates([7], [7], producer="p", seq=3),
            ingest.encode_row(1, 900),
            b"",
            b"\xc1",
            b"\x81\xa4rows\xa1x",
            bytes(2 << 20),
            ingest.encode_query("q", Kind.DEGREE, 1),
            ingest.encode_query("q", Kind.DEGREE, 1, reply="nowhere"),
        ],
    )


def test_a_scrape_gives_the_pipelines_figures(log: SqliteLog, tmp_path: Path) -> None:
    fill(log)
    graph = lpma.Graph(device="cpu", segment_size=4)
    pipeline = Pipeline(log, graph, tmp_path / "c", batch_size=30)
    with pipeline, MetricsServer(pipeline, 0) as server:
        assert server.host == "127.0.0.1"
        before = scrape(server)
        assert before["lpma_operations_total",] == 0
        assert before["lpma_lag_records", "0", "updates"] == 10
        figures = pipeline.stats.checkpoint_figures
        assert figures is not None
        assert before["lpma_checkpoint_duration_seconds",] == figures.seconds > 0

        assert pipeline.run(until="end") == 103
        log.produce("updates", ingest.encode_row(1, 2))
        seen = scrape(server)
        assert seen["lpma_operations_total",] == 103
        assert seen["lpma_batches_total",] == pipeline.stats.batches == graph.version
        assert seen["lpma_queries_total",] == 1
        assert seen["lpma_duplicates_total",] == 1
        assert seen["lpma_skipped_total",] == 0
        letters = {key[1]: n for key, n in seen.items() if key[0] == "lpma_dead_letters_total"}
        assert letters == {"malformed": 2, "invalid": 1, "oversized": 1, "unserved": 1}
        assert sum(letters.values()) == pipeline.outputs.rejected
        assert seen["lpma_lag_records", "0", "updates"] == 1
        assert seen["lpma_lag_records", "0", "queries"] == 0
        graph_says = {
            "version": graph.version, "edges": graph.num_edges, "rows": graph.num_rows,
            "levels": graph.levels, "density": graph.density,
        }  # fmt: skip
        assert {name: seen[f"lpma_{name}",] for name in graph_says} == graph_says
        assert 0 <= before["lpma_checkpoint_age_seconds",] <= seen["lpma_checkpoint_age_seconds",]
        check_histograms(seen, pipeline)


def test_a_window_is_told(log: SqliteLog) -> None:
    log.produce("updates", ingest.encode_updates([1, 2, 3], [2, 3, 4], time=[100, 20, 90]))
    pipeline = Pipeline(log, lpma.Graph(device="cpu"), window=50)
    with pipeline, MetricsServer(pipeline, 0) as server:
        before = scrape(server)
        assert (before["lpma_window",], before["lpma_window_late_total",]) == (50, 0)
        assert before["lpma_expired_total",] == 0
        assert ("lpma_window_before",) not in before
        pipeline.run(until="end")
        seen = scrape(server)
        assert (seen["lpma_window_before",], seen["lpma_window_late_total",]) == (50, 1)
        assert (seen["lpma_expired_total",], seen["lpma_window_untimed_total",]) == (1, 0)
        assert pipeline.stats.window_facts() == {
            "width": 50, "time": "event", "expired_before": 50, "late": 1, "untimed": 0,
        }  # fmt: skip


def check_histograms(seen: Figures, pipeline: Pipeline) -> None:
    for name, stage in pipeline.stats.stages:
        buckets = [
            n for key, n in seen.items() if (key[0], key[-1]) == ("lpma_stage_seconds_bucket", name)
        ]
        steps = [b - a for a, b in zip([0.0, *buckets], buckets, strict=False)]
        assert steps == stage.counts
        assert seen["lpma_stage_seconds_count", name] == stage.passages
        assert seen["lpma_stage_seconds_sum", name] == pytest.approx(stage.seconds)


def test_what_is_not_there_is_not_told(tmp_path: Path) -> None:
    """No lag of a source that knows no end, no checkpoints where none are taken."""
    path = tmp_path / "a.txt"
    path.write_text("1 2\n")
    pipeline = Pipeline(ingest.FileSource(path), SavedModel())
    with pipeline, MetricsServer(pipeline, "127.0.0.1:0") as server:
        names = {key[0] for key in scrape(server)}
    assert "lpma_edges" in names
    assert not any(name.startswith(("lpma_lag", "lpma_checkpoint")) for name in names)


def test_two_pipelines_have_figures_of_their_own(log: SqliteLog) -> None:
    log.produce("updates", ingest.encode_row(1, 2))
    one, two = Pipeline(log, SavedModel()), Pipeline(log, SavedModel())
    with MetricsServer(one, 0) as first, MetricsServer(two, 0) as second:
        one.run(until="end")
        assert scrape(first)["lpma_operations_total",] == 1
        assert scrape(second)["lpma_operations_total",] == 0


def test_scrapes_while_it_runs(log: SqliteLog) -> None:
    """Counters never fall, and a histogram's sum of buckets is its count at every look."""
    graph = lpma.Graph(device="cpu")
    log.produce_many("updates", [ingest.encode_updates(range(50), range(50))] * 200)
    pipeline = Pipeline(log, graph, batch_size=97)
    last = 0.0
    with MetricsServer(pipeline, 0) as server:
        while pipeline.step(drain=True):
            if pipeline.stats.batches % 25 == 0:
                seen = scrape(server)
                assert seen["lpma_operations_total",] >= last
                last = seen["lpma_operations_total",]
    assert last > 0


@pytest.mark.parametrize(
    "given, expected",
    [
        ("9464", ("127.0.0.1", 9464)),
        (0, ("127.0.0.1", 0)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("host.example:1", ("host.example", 1)),
        ("[::1]:65535", ("::1", 65535)),
    ],
)
def test_addresses(given: str | int, expected: tuple[str, int]) -> None:
    assert parse_address(given) == expected


@pytest.mark.parametrize("given", ["", "x", "65536", -1, "::1:80", "a:b", "1.2.3.4", ":80", "١"])
def test_bad_addresses_are_refused(given: str | int) -> None:
    with pytest.raises(PipelineError, match="give a port"):
        parse_address(given)


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1 2\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run(
            "ingest", path, "--save", tmp_path / "s", "--set", f"outputs.metrics={port}", status=1
        )
    assert result.stderr.count(str(port)) == 1
    assert result.stderr.rstrip().endswith(f"port {port} cannot be served: Address already in use")
    assert not (tmp_path / "s").exists()
    bad = run("ingest", path, "-c", tmp_path / "c", "--set", "outputs.metrics=all", status=2)
    assert "give a port" in bad.stderr
    assert not (tmp_path / "c").exists()


def test_the_command_serves_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    entered = MetricsServer.__enter__
    closed = MetricsServer.close

    def entering(server: MetricsServer) -> MetricsServer:
        seen["before"] = scrape(server)
        return entered(server)

    def closing(server: MetricsServer) -> None:
        seen["after"] = scrape(server)
        closed(server)

    monkeypatch.setattr(MetricsServer, "__enter__", entering)
    monkeypatch.setattr(MetricsServer, "close", closing)
    path = tmp_path / "a.txt"
    path.write_text("1 2\n3 4\n")
    run("ingest", path, "--save", tmp_path / "s", "--device", "cpu", "--set", "outputs.metrics=0")
    assert seen["before"]["lpma_edges",] == 0
    assert seen["after"]["lpma_edges",] == 2


def test_ingest_needs_no_prometheus(tmp_path: Path) -> None:
    """Only who asks for metrics does, and is told what to install."""
    code = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        "import ingest, ingest.cli\n"
        "try:\n"
        "    import ingest.metrics\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True,
                          timeout=120, check=True)  # fmt: skip
    assert done.stdout.startswith("MissingPackage")
    assert "pip install 'lpma-graph[metrics]'" in done.stdout
    assert issubclass(lpma.dependencies.MissingPackage, lpma.LpmaError)
    assert issubclass(PipelineError, IngestError)


# What clients cost ------------------------------------------------------------------------------

ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
PROGRAM = """
import resource, sys
import ingest
from ingest import Pipeline, SqliteLog
from ingest.metrics import MetricsServer
from lpma import Kind
from tests.support.stream_model import SavedModel
from tests.support.waiting import HANGS_S

log = SqliteLog(sys.argv[1] + "/log")
log.create_topic("updates")
pipeline = Pipeline(log, SavedModel(), sys.argv[1] + "/c", checkpoint_operations=50)
server = MetricsServer(pipeline, 0)
soft = len(__import__("os").listdir("/proc/self/fd")) + 48
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft))
print(server.port, flush=True)
for number, line in enumerate(sys.stdin):
    log.produce_many("updates", [ingest.encode_row(number, number + 1)] * 9)
    log.produce("queries", ingest.encode_query(f"q{number}", Kind.DEGREE, number))
    assert pipeline.run(until="end") == 10
    print(pipeline.stats.operations, flush=True)
pipeline.checkpoint_now()
pipeline.close()
server.close()
print("whole")
"""


def test_a_pipeline_with_few_files_outlives_600_half_open_connections(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], cwd=Path(__file__).parents[2], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    hanging: list[socket.socket] = []
    try:
        port = int(child.stdout.readline())
        for number in range(12):
            hanging += [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
            child.stdin.write("go\n")
            child.stdin.flush()
            assert int(child.stdout.readline()) == 10 * (number + 1)
            with socket.create_connection(("127.0.0.1", port), timeout=HANGS_S) as client:
                client.sendall(ASK)
                assert b" 200 OK" in client.recv(1 << 16)
        out, error = child.communicate(timeout=HANGS_S)
        assert (out.strip(), error) == ("whole", "")
    finally:
        child.kill()
        child.communicate()
        for half_open in hanging:
            half_open.close()
