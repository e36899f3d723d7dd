"""What an older version wrote is read: stores, a log, a checkpoint and its journal, results. What
is of another format is refused, as `docs/howto/upgrade.md` says.

`LPMA_DATA/written` has them, beside what they hold (`expected.json`). Who changes a format adds
what the new one writes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import struct
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import ingest
import lpma
from tests.conftest import NO_DATA, missing
from tests.support.command_line import document
from tests.support.contents import edges_of

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "upgrade.md"
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


# Other formats ----------------------------------------------------------------------------------


def said_on_the_page(of: str) -> str:
    """The message that the table of the page has for this kind of file."""
    (found,) = re.findall(rf"^\| {of} \| `([^`]+)`", PAGE.read_text("utf-8"), re.MULTILINE)
    return found


def store_of_another_format(folder: Path) -> None:
    path = folder / "graph.lpma"
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, 8, 2)
    struct.pack_into("<I", data, 20, zlib.crc32(data[:20]))
    path.write_bytes(data)


def checkpoint_of_another_format(folder: Path) -> None:
    for path in (folder / "state").glob("checkpoint-*/checkpoint.json"):
        path.write_bytes(path.read_bytes().replace(b'"format":3', b'"format":4'))


def journal_of_another_format(folder: Path) -> None:
    for path in (folder / "state").glob("journal-*"):
        path.write_bytes(b"LPMAJRN4" + path.read_bytes()[8:])


def log_of_another_format(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "stream.log")) as database:
        database.execute("PRAGMA user_version = 4")


def open_all(folder: Path) -> None:
    lpma.Graph.load(folder / "graph.lpma", device="cpu")
    with ingest.SqliteLog(folder / "stream.log") as log:
        ingest.Pipeline.resume(folder / "state", log).close()


@pytest.mark.parametrize("of, change", [
    ("a store", store_of_another_format), ("a checkpoint", checkpoint_of_another_format),
    ("a journal", journal_of_another_format), ("an embedded log", log_of_another_format),
])  # fmt: skip
def test_another_format_is_refused_as_the_page_says(
    tmp_path: Path, of: str, change: Callable[[Path], None]
) -> None:
    graph = lpma.Graph(device="cpu")
    with ingest.SqliteLog(tmp_path / "stream.log") as log:
        log.produce("updates", ingest.encode_updates([1, 2], [2, 3]))
        with ingest.Pipeline(log, graph, tmp_path / "state") as pipeline:
            pipeline.run("end")
    graph.save(tmp_path / "graph.lpma")
    change(tmp_path)
    with pytest.raises(lpma.LpmaError) as refused:
        open_all(tmp_path)
    assert said_on_the_page(of) in str(refused.value)
