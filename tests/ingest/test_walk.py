"""How far a reader walks who follows a record from the log to its reply: few files, and few steps
from one to another.

The bounds are what the code has reached. A change that raises them has put a step somewhere that a
reader must take: look at the walk that the failure prints."""

from __future__ import annotations

from pathlib import Path

import pytest

import ingest
import lpma
from ingest import Pipeline, SqliteLog
from lpma import Kind
from tests.support.walk import Walk, walk

FIRST = "ingest/steps.py"


def walk_of(directory: Path, records: list[tuple[str, bytes]]) -> Walk:
    """The walk through `ingest` of a step that reads and applies these, of (topic, record)."""
    with SqliteLog(directory / "log") as log:
        log.create_topic("updates")
        with Pipeline(log, lpma.Graph(device="cpu"), directory / "state") as pipeline:

            def step() -> None:
                for topic, record in records:
                    log.produce(topic, record)
                pipeline.step(drain=True)

            steps = walk(step).steps
            assert pipeline.operations > 0
    ours = [file for file in steps[steps.index(FIRST) :] if file.startswith("ingest/")]
    return Walk([file for i, file in enumerate(ours) if i == 0 or ours[i - 1] != file])


COLUMNS = "updates", ingest.encode_updates([1, 2], [2, 3], [0.5, 1.5])
ROW = "updates", ingest.encode_row(1, 2)
QUERY = "queries", ingest.encode_query("q", Kind.SUCCESSORS, 1)


@pytest.mark.parametrize(
    "records, files, moves",
    [([COLUMNS], 16, 73), ([ROW], 16, 71), ([QUERY], 19, 85), ([COLUMNS, QUERY], 19, 97)],
    ids=["columns", "row", "query", "columns and a query"],
)
def test_the_walk_of_a_record(
    tmp_path: Path, records: list[tuple[str, bytes]], files: int, moves: int
) -> None:
    found = walk_of(tmp_path, records)
    assert FIRST in found.files
    assert len(found.files) <= files < 20, found
    assert len(found.steps) - 1 <= moves, f"{len(found.steps) - 1} moves: {found}"
