"""What an older version wrote is read: stores, a log, a checkpoint and its journal, results.

`LPMA_DATA/written` has them, beside what they hold (`expected.json`). Who changes a format adds
what the new one writes.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import ingest
import lpma
from tests.conftest import NO_DATA, missing
from tests.support.command_line import document
from tests.support.contents import edges_of

STORES = ("directed", "undirected-float64", "unweighted", "predecessors", "names")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A copy of the folder, which may be written to."""
    kept = Path(os.environ.get("LPMA_DATA", "nowhere")) / "written"
    if not kept.is_dir():
        missing("data", NO_DATA)
    copy = Path(shutil.copytree(kept, tmp_path / "written"))
    for path in (copy, *copy.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    return copy


def expected(folder: Path, name: str) -> Any:
    return json.loads((folder / "expected.json").read_text())[name]


def edges(graph: lpma.Graph) -> list[list[Any]]:
    """[source, target, weight, time] of each edge, the ends as text, sorted."""
    graph.check()
    found = edges_of(graph.snapshot(), weight=None, time=None)
    return sorted([str(u), str(v), weight, time] for (u, v), (weight, time) in found.items())


@pytest.mark.parametrize("name", STORES)
def test_a_store(written: Path, name: str, device: str) -> None:
    wanted = expected(written, name)
    graph = lpma.Graph.load(written / f"{name}.lpma", device=device)
    assert graph.directed == wanted["directed"]
    assert graph.snapshot().num_vertices == wanted["vertices"]
    assert edges(graph) == wanted["edges"]


def test_a_stream_goes_on(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From its checkpoint and journal, through its log, with the results that it had begun."""
    monkeypatch.chdir(written)
    before = (written / "results.jsonl").read_text()
    document(
        "ingest", "stream.log", "-c", "state", "--track", "core,triangles", "--results-file",
        "results.jsonl", "--batch-size", 250, "--save", "out.lpma", "--device", "cpu",
    )  # fmt: skip
    wanted = expected(written, "stream")
    assert edges(lpma.Graph.load(written / "out.lpma", device="cpu")) == wanted["edges"]
    results = list(ingest.read_results(written / "results.jsonl"))
    assert (written / "results.jsonl").read_text().startswith(before)
    assert len(results) == wanted["results"]


def test_a_past_version_of_a_stream(written: Path) -> None:
    graph = ingest.as_of(written / "state", version=11, device="cpu")
    kept = lpma.Graph.load(written / "state" / "checkpoint-0000000001" / "graph.lpma", device="cpu")
    assert graph.version == kept.version == 11
    assert edges(graph) == edges(kept)
