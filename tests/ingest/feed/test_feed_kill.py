"""Writer and copy killed at any point, also within an expiry: the feed has each version once, and a
copy ends as the graph of an unbroken run, bit for bit, whichever snapshot it began with."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import SqliteLog
from ingest.results.reading import parts_in
from tests.conftest import soak
from tests.support.fed_stream import records
from tests.support.killed_feed import (
    OF_COPY,
    OF_WRITER,
    follow_all,
    following,
    write_all,
    writing,
)
from tests.support.kills import drawn

OTHERS = {  # what a place has no use for
    "topic": {"ingest.results.sinks:_File.send"},
    "file": {"ingest:SqliteLog.produce_parts"},
}


def published(log: str, kind: str) -> list[ingest.EdgeChanges]:
    if kind == "file":
        lines = Path(f"{log}.feed").read_bytes().splitlines()
        return [ingest.decode_changes(line) for line in lines]
    with SqliteLog(log, ["changes"]) as reader:
        return list(parts_in(reader, ingest.decode_changes))


def content(part: ingest.EdgeChanges) -> tuple[Any, ...]:
    """All but the run's name, which is a start's own."""
    columns = part.change, part.src, part.dst, part.weight, part.time, part.names
    lists = (None if c is None else c.tolist() for c in columns)
    return (
        *part.place,
        part.parts,
        part.stamp,
        part.updated,
        part.edges,
        part.digest,
        part.first,
        *lists,
    )


@pytest.mark.soak
@pytest.mark.parametrize("kills", [
    pytest.param(5, marks=pytest.mark.system),
    pytest.param(40, marks=pytest.mark.nightly),
])  # fmt: skip
@pytest.mark.parametrize(("kind", "names", "waiting"), [
    ("topic", False, 1), ("file", True, 1), ("topic", True, 4), ("file", False, 4),
])  # fmt: skip
def test_a_copy_ends_as_the_graph_of_an_unbroken_run(
    tmp_path: Path, kind: str, kills: int, names: bool, waiting: int
) -> None:
    rng = np.random.default_rng(kills + 7 * names)
    original, unbroken = str(tmp_path / "log"), str(tmp_path / "unbroken")
    with SqliteLog(original) as log:
        log.produce_many("updates", list(records(rng, 60, names=names, queries=False)))
    shutil.copy(original, unbroken)
    calls = writing(unbroken, tmp_path / "c", kind, names, waiting).calls
    assert calls.keys() >= {*OF_WRITER} - OTHERS[kind]
    expected = list(map(content, published(unbroken, kind)))
    versions = sorted({part[0] for part in expected})
    assert versions == list(range(len(versions)))
    assert len(versions) > 15
    state = write_all(unbroken, tmp_path / "c", kind, names)
    starts = stores_of(unbroken, kind, tmp_path, rng.choice(versions, 3).tolist())
    of_copy = following(unbroken, tmp_path / "k", kind, None).calls
    assert of_copy.keys() >= {*OF_COPY}
    sends = calls["ingest.results.publisher:Publisher.send"]
    assert sends < len(versions) if waiting > 1 else sends >= len(versions)
    rounds, killed, of_writer = soak(kills, 4 * kills), 0, 0
    of_both = zip(drawn(rng, calls, rounds), drawn(rng, of_copy, rounds), strict=True)
    for number, (place, at) in enumerate(of_both):
        path, checkpoint = f"{original}{number}", tmp_path / f"w{number}"
        shutil.copy(original, path)
        of_writer += writing(path, checkpoint, kind, names, waiting, place).killed
        copy, start = tmp_path / f"r{number}", [None, *starts][number % 4]
        if start is None and published_any(path, kind):
            follow_all(path, copy, kind, None)  # what the killed writer left
        write_all(path, checkpoint, kind, names)
        found = published(path, kind)
        assert list(map(content, found)) == expected, place
        assert len({part.run for part in found}) == 1
        killed += following(path, copy, kind, start, at).killed  # if it comes by that place
        assert follow_all(path, copy, kind, start) == state, (place, at)
        assert follow_all(path, copy, kind, start) == state, (place, at)
    assert of_writer >= (rounds if waiting == 1 else rounds // 2)
    assert killed >= rounds // 4


def published_any(log: str, kind: str) -> bool:
    if kind == "file":
        return Path(f"{log}.feed").exists() and bool(Path(f"{log}.feed").read_bytes())
    with SqliteLog(log) as reader:
        there = "changes" in reader.topic_names()
    return there and bool(published(log, kind))


def stores_of(log: str, kind: str, folder: Path, versions: list[int]) -> list[Path]:
    """The writer's graph at these versions, saved."""
    found = []
    with ingest.follow(SqliteLog(log, ["changes"]) if kind == "topic" else f"{log}.feed",
                       device="cpu") as copy:  # fmt: skip
        graph = copy.graph
        assert isinstance(graph, lpma.Graph)
        while True:
            if graph.version in versions:
                found.append(folder / f"{graph.version}.lpma")
                graph.save(found[-1])
            if not copy.step(drain=True):
                return [*found, *found, *found][:3]
