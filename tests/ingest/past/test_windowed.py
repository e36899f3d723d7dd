"""Past views of a stream with a window and queries: a batch's queries move no window, and take
none away."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ingest
import lpma
from ingest import past
from ingest.window import bound_of
from lpma import Kind
from tests.ingest.past.test_as_of import Recorder, check_times, content


@pytest.mark.parametrize("moved_by", ["event", "arrival"])
def test_a_window_with_queries_among_its_updates(tmp_path: Path, moved_by: str) -> None:
    rng = np.random.default_rng(5)
    run = Recorder(tmp_path, ("updates",))
    with ingest.SqliteLog(run.log) as log:
        for i in range(40):
            times = 100 * i - rng.integers(0, 300, 3)
            src, dst = rng.integers(0, 30, (2, 3))
            log.produce("updates", ingest.encode_updates(src, dst, time=times))
            if i % 3:
                log.produce("updates", ingest.encode_query(f"q{i}", Kind.DEGREE, 7))
    width = 400 if moved_by == "event" else 5
    pipeline = run.open(
        lpma.Graph(device="cpu"), batch_size=4, window=width, window_time=moved_by,
        replies=lambda reply: None,
    )  # fmt: skip
    newest = {}
    while pipeline.step(drain=True):
        run.note(pipeline)
        newest[pipeline.graph.version] = pipeline.expired_before
    pipeline.close(checkpoint=False)
    assert pipeline.expired_before is not None
    assert len(run.after) == 1 + -(-(3 * 40 + pipeline.queries) // 4)
    with run.source() as source:
        for version, expected in run.after.items():
            found = ingest.as_of(run.state, source, version=version, device="cpu")
            assert content(found) == expected
        for version, before in newest.items():
            state = past.view(run.state, source, version=version, device="cpu").state
            assert state.version == version
            assert bound_of(state.window_newest, width) == before
        check_times(run, source)
