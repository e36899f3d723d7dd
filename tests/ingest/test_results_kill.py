"""Killed at any point, also within an expiry, a pipeline with a window resumes to the results of an
unbroken run, each of them once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
from ingest import SqliteLog
from ingest.results.reading import read_results
from tests.conftest import soak
from tests.support.killed_results import Place, in_a_process, sink_of

KILLS = soak(1, 20)  # at each point
OF = {
    "topic": ("begin", "make", "send", "topic", "checkpoint", "commit"),
    "file": ("file", "line", "journal", "apply", "expire"),
}


def content(result: ingest.Result) -> tuple[Any, ...]:
    """All but the run's name and the stamp, which are a start's own."""
    columns = (None if c is None else np.asarray(c).tolist()
               for c in (result.vertex, result.old, result.new))  # fmt: skip
    return (*result.place, result.parts, result.figure, result.alert, *columns)


def published(log: str, kind: str) -> list[ingest.Result]:
    with SqliteLog(log, ["results"]) as reader:
        if kind == "file":
            return list(read_results(sink_of(kind, reader)))
        return [ingest.decode_result(bytes(p.value)) for p in reader.poll(10**6)]  # type: ignore[arg-type]


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["topic", "file"])
def test_results_are_those_of_an_unbroken_run_each_once(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(4)
    original = str(tmp_path / "log")
    with SqliteLog(original) as log:
        for start in range(0, 280, 7):
            src, dst = rng.integers(0, 14, (2, 7))
            deletes = (rng.random(7) < 0.3).astype(np.uint8)
            times = start + np.arange(7) - rng.integers(0, 9, 7)
            log.produce("updates", ingest.encode_updates(src, dst, time=times, kind=deletes))
    unbroken = str(tmp_path / "unbroken")
    shutil.copy(original, unbroken)
    assert not in_a_process(unbroken, tmp_path / "c", kind, None)
    expected = list(map(content, published(unbroken, kind)))
    assert len({place[0] for place in expected}) > 20
    kills = 0
    for point in OF[kind]:
        for number in range(KILLS):
            path, checkpoint = f"{original}-{point}{number}", tmp_path / f"{point}{number}"
            shutil.copy(original, path)
            for _ in range(soak(1, 2)):  # the resumed one may die, too
                passage = int(rng.integers(1, 8)) if point not in ("begin", "commit") else 0
                place = Place(point, passage, bool(rng.random() < 0.5))
                kills += in_a_process(path, checkpoint, kind, place)
            in_a_process(path, checkpoint, kind, None)
            found = published(path, kind)
            assert list(map(content, found)) == expected, point
            assert len({result.run for result in found}) == 1
    assert kills >= KILLS * len(OF[kind])
