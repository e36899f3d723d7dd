"""A copy that follows an edge feed is the writer's graph, bit for bit, at every version, whichever
of the writer's versions it began with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
import lpma
from ingest import Pipeline, SqliteLog
from ingest.formats import changes as feed_format
from tests.support.fed_stream import State, records, state_of

GRAPHS: Any = st.fixed_dictionaries({
    "directed": st.booleans(), "weight_dtype": st.sampled_from(["float32", "float64", None]),
    "times": st.booleans(), "names": st.booleans(), "predecessors": st.booleans(),
})  # fmt: skip


def written(log: SqliteLog, graph: lpma.Graph, folder: Path, **settings: Any) -> dict[int, State]:
    """What the graph was at each version, which is saved, too."""
    states = {graph.version: state_of(graph)}
    graph.save(folder / f"{graph.version}.lpma")
    with Pipeline(log, graph, batch_interval=1e6, query_interval=1e6, names=graph.names is not None,
                  **settings) as pipeline:  # fmt: skip
        while pipeline.step(drain=True) or not log.at_end():
            states[graph.version] = state_of(graph)
            graph.save(folder / f"{graph.version}.lpma")
    return states


def followed(copy: Pipeline, states: dict[int, State]) -> None:
    """Step a copy to the end, and hold each version against the writer's."""
    graph: Any = copy.graph
    assert state_of(graph) == states[graph.version]
    version = graph.version
    while copy.step(drain=True):
        version += 1
        assert graph.version == version
        assert state_of(graph) == states[version]
    assert version == max(states)
    graph.check()


@settings(deadline=None)
@given(
    how=GRAPHS, seed=st.integers(0, 2**32), form=st.sampled_from(["columns", "json"]),
    place=st.sampled_from(["topic", "file"]), batch_size=st.integers(1, 12), part=st.integers(1, 9),
    window=st.sampled_from([None, 25]),
)  # fmt: skip
def test_a_copy_is_the_graph_at_every_version(
    tmp_path_factory: pytest.TempPathFactory,
    device: str,
    how: dict[str, Any],
    seed: int,
    form: Any,
    place: str,
    batch_size: int,
    part: int,
    window: int | None,
) -> None:
    folder, rng = tmp_path_factory.mktemp("feed"), np.random.default_rng(seed)
    if not how["times"]:
        window = None
    graph = lpma.Graph(device=device, **how)
    with pytest.MonkeyPatch.context() as patch, SqliteLog(folder / "log") as log:
        patch.setattr(feed_format, "MAX_CHANGES_ROWS", part)
        patch.setattr("ingest.feed.writer.FORMS", {
            "columns": (ingest.results.forms.CHANGES, part),
            "json": (ingest.results.forms.CHANGES_IN_ROWS, 1),
        })  # fmt: skip
        values = list(records(rng, 14, names=how["names"], times=how["times"]))
        log.produce_many("updates", values)
        to: Any = log if place == "topic" else folder / "feed"
        states = written(
            log,
            graph,
            folder,
            changes=to,
            changes_format=form,
            batch_size=batch_size,
            window=window,
        )
        starts = [None, *rng.choice(sorted(states), 2).tolist()]
        for start in starts:
            with SqliteLog(folder / "log", ["changes"]) as reader:
                source: Any = reader if place == "topic" else folder / "feed"
                begin = None if start is None else folder / f"{start}.lpma"
                with ingest.follow(source, start=begin, device=device) as copy:
                    followed(copy, states)


def test_a_version_without_changes_is_a_version(tmp_path: Path, device: str) -> None:
    with SqliteLog(tmp_path / "log") as log:
        rows = [([1], [2], 1.0, 0), ([5], [6], -1.0, 0), ([5], [6], None, 1)]
        for at, (src, dst, weight, kind) in enumerate(rows):
            weights = None if weight is None else [weight]
            log.produce("updates", ingest.encode_updates(src, dst, weights, [at], [kind]))
        log.produce("updates", ingest.encode_query("q", lpma.Kind.DEGREE, 1))
        graph = lpma.Graph(device=device)
        states = written(log, graph, tmp_path, changes=log, batch_size=1)
        assert sorted(states) == [0, 1, 2, 3, 4]
    with SqliteLog(tmp_path / "log", ["changes"]) as feed:
        parts = [ingest.decode_changes(p.value) for p in feed.poll()]  # type: ignore[arg-type]
        assert [(part.version, part.rows) for part in parts] == [
            (0, 0), (1, 1), (2, 0), (3, 0), (4, 0),
        ]  # fmt: skip
        with ingest.follow(feed, device=device) as copy:
            followed(copy, states)


def test_an_edge_put_back_as_it_was_is_no_change(tmp_path: Path, device: str) -> None:
    found: list[ingest.EdgeChanges] = []
    with SqliteLog(tmp_path / "log") as log:
        log.produce("updates", ingest.encode_updates([1, 3], [2, 4], time=[5, 5]))
        again = [1, 1, 3], [2, 2, 4], [1.0, 1.0, 1.0], [5, 5, 9], [1, 0, 0]
        log.produce("updates", ingest.encode_updates(*again))
        log.produce("updates", ingest.encode_updates([3], [4], [0.0], [10]))
        graph = lpma.Graph(device=device)
        with Pipeline(log, graph, batch_interval=1e6, changes=found.append) as pipeline:
            for rows in (2, 3, 1):
                pipeline.step(rows)
    said = [
        (p.change.tolist(), p.src.tolist(), p.weight.tolist(), p.time.tolist())  # type: ignore[union-attr]
        for p in found if p.rows
    ]  # fmt: skip
    assert said == [
        ([0, 0], [1, 3], [1.0, 1.0], [5, 5]), ([4], [3], [2.0], [9]), ([4], [3], [2.0], [10]),
    ]  # fmt: skip
