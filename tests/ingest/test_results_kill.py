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
from tests.support.killed_results import POINTS, in_a_process, ingest_all, sink_of
from tests.support.kills import drawn

OTHERS = {  # what a sink has no use for
    "topic": {"ingest.results.sinks:_File.send", "os:fdatasync"},
    "file": {"ingest:SqliteLog.produce_parts"},
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
@pytest.mark.parametrize("kills", [
    pytest.param(3, marks=pytest.mark.system),
    pytest.param(2 * len(POINTS), marks=pytest.mark.integration),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["topic", "file"])
def test_results_are_those_of_an_unbroken_run_each_once(
    tmp_path: Path, kind: str, kills: int
) -> None:
    rng = np.random.default_rng(kills)
    original = str(tmp_path / "log")
    with SqliteLog(original) as log:
        for start in range(0, 280, 7):
            src, dst = rng.integers(0, 14, (2, 7))
            kinds = rng.choice([0, 1, 11], 7, p=[0.5, 0.2, 0.3]).astype(np.uint8)
            weight = np.where(kinds == 11, rng.integers(0, 3, 7), 1) / 1
            times = start + np.arange(7) - rng.integers(0, 9, 7)
            log.produce("updates", ingest.encode_updates(src, dst, weight, times, kinds))
    unbroken = str(tmp_path / "unbroken")
    shutil.copy(original, unbroken)
    calls = in_a_process(unbroken, tmp_path / "c", kind).calls
    assert calls.keys() >= {*POINTS} - OTHERS[kind]
    expected = list(map(content, published(unbroken, kind)))
    assert len({place[0] for place in expected}) > 20
    for number, place in enumerate(drawn(rng, calls, soak(kills, 10 * kills))):
        path, checkpoint = f"{original}{number}", tmp_path / str(number)
        shutil.copy(original, path)
        assert in_a_process(path, checkpoint, kind, place).killed, place
        if number % 2:  # the resumed one may die too, if it comes by that place
            again = drawn(rng, calls, 1)[0]
            in_a_process(path, checkpoint, kind, again._replace(call=again.call // 4))
        ingest_all(path, checkpoint, kind)
        found = published(path, kind)
        assert list(map(content, found)) == expected, place
        assert len({result.run for result in found}) == 1
