"""What is asked over HTTP agrees with a serial run of the stream, at the version that is named.

A stream of random batches is written while random questions are asked. An oracle applies the same
operations one by one, and remembers the graph after each version. Whatever is answered is what the
oracle has at that version; versions never fall for one client; and what was applied before a
question was asked is in its answer.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
from ingest import Ask
from ingest.service.context import Limits
from lpma import Kind
from tests.conftest import soak
from tests.ingest.service.conftest import Served
from tests.support.serving import answered
from tests.support.stream_model import SavedModel, same_answer

VERTICES = 8
UPDATES = (
    Kind.INSERT, Kind.INSERT, Kind.SET, Kind.SET, Kind.DELETE, Kind.ADD_VERTEX, Kind.REMOVE_VERTEX
)  # fmt: skip
QUERIES = (Kind.EDGE, Kind.SUCCESSORS, Kind.PREDECESSORS, Kind.DEGREE, Kind.VERTEX, Kind.HOPS)

vertex = st.integers(0, VERTICES - 1)
update = st.tuples(st.sampled_from(UPDATES), vertex, vertex, st.integers(-4, 8))
query = st.tuples(st.sampled_from(QUERIES), vertex, vertex, st.integers(1, 2))
step = st.one_of(
    st.lists(update, min_size=1, max_size=12),
    st.lists(query, min_size=1, max_size=12),
)


class Oracle:
    """The model after each version, made from what the pipeline says of its batches."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._rows: list[tuple[Kind, int, int, int]] = []
        self._model = SavedModel(predecessors=True)
        self._done = 0  # operations
        self._batches = 0
        self.at: dict[int, SavedModel] = {0: deepcopy(self._model)}

    def write(self, rows: list[tuple[Kind, int, int, int]]) -> None:
        self._rows += rows
        kind, src, dst, weight = (np.array(column) for column in zip(*rows, strict=True))
        self._served.produce(src, dst, weight=weight / 4, kind=kind)

    def catch_up(self) -> None:
        """Apply what the pipeline has applied since."""
        assert self._served.pipeline is not None
        history = list(self._served.pipeline.stats.history)
        for batch in history[self._batches :]:
            for kind, u, v, w in self._rows[self._done : batch.total_operations]:
                if kind == Kind.INSERT:
                    self._model.insert(u, v, w / 4)
                elif kind == Kind.SET:
                    self._model.set(u, v, w / 4)
                elif kind == Kind.DELETE:
                    self._model.delete(u, v)
                elif kind == Kind.ADD_VERTEX:
                    self._model.add_vertices(u)
                else:
                    self._model.remove_vertices(u)
            self._done = batch.total_operations
            self.at[batch.version] = deepcopy(self._model)
        self._batches = len(history)


def asked(row: tuple[Kind, int, int, int]) -> Ask:
    kind, u, v, k = row
    return Ask(kind, u, v if kind is Kind.EDGE else None, k if kind is Kind.HOPS else None)


def run_stream(served: Served, oracle: Oracle, steps: list[list[Any]]) -> None:
    oracle.write([(Kind.REMOVE_VERTEX, v, 0, 0) for v in range(VERTICES)])
    served.settle()
    least = served.context.graph.version
    with ingest.Client.http(served.url) as client:
        for rows in steps:
            if rows[0][0] in UPDATES:
                oracle.write(rows)
                if len(rows) % 2:
                    served.settle()
                    least = max(least, served.context.graph.version)
                continue
            queries = [asked(row) for row in rows]
            replies = client.ask_many(queries)
            oracle.catch_up()
            for one, reply in zip(queries, replies, strict=True):
                assert reply.version >= least, "versions never fall, and what was applied is seen"
                assert reply.version in oracle.at
                assert same_answer(reply.answer, answered(oracle.at[reply.version], one))
            by_kind: dict[Any, set[int]] = {}
            for one, reply in zip(queries, replies, strict=True):
                by_kind.setdefault((one.kind, one.steps), set()).add(reply.version)
            assert all(len(versions) == 1 for versions in by_kind.values())
            least = max(reply.version for reply in replies)


def test_answers_agree_with_a_serial_run(serve_stream: Callable[..., Served]) -> None:
    """All streams are one after the other; each begins with an empty graph."""
    served = serve_stream(
        predecessors=True, limits=Limits(page_rows=5), settings={"batch_interval": 0.002}
    )
    oracle = Oracle(served)

    @settings(max_examples=soak(20, 2000))
    @given(steps=st.lists(step, min_size=2, max_size=12))
    def drawn(steps: list[list[Any]]) -> None:
        run_stream(served, oracle, steps)

    drawn()
