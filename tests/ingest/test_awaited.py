"""Whether a record that is waited for was buffered: known without a look at all who wait."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from ingest.pipeline.graph_requests import GraphRequests
from ingest.types import Partition, Position

A, B = Partition("a", 0), Partition("a", 1)
PLACES = st.tuples(st.sampled_from([A, B]), st.integers(0, 6))


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("await"), PLACES),
            st.tuples(st.just("read"), PLACES),
            st.tuples(st.just("give up"), st.integers(0, 20)),
            st.tuples(st.just("move"), st.just(None)),
        ),
        max_size=40,
    )
)
@example([("await", (A, 5)), ("await", (A, 6)), ("move", None), ("read", (A, 6))])
def test_it_is_due_as_soon_as_one_of_them_is_buffered(steps: list[tuple[str, Any]]) -> None:
    """Beside a list of all who wait. Who gave up counts until the stream's next step."""
    requests = GraphRequests()
    waiting: list[tuple[Partition, int, Future[int]]] = []
    ends: dict[Partition, int] = {}
    for what, value in steps:
        if what == "await":
            waiting.append((*value, requests.when_applied(*value)))
        elif what == "read":
            partition, end = value
            ends[partition] = max(end, ends.get(partition, 0))
            requests.read.update(ends)
        elif what == "give up" and value < len(waiting):
            waiting[value][2].cancel()
        elif what == "move":
            positions = {partition: Position(end) for partition, end in ends.items()}
            requests.moved(positions, 1, lambda: None)
            for partition, offset, future in waiting:
                is_there = offset < ends.get(partition, 0)
                assert future.cancelled() or future.done() == is_there
            waiting = [one for one in waiting if not one[2].done()]
        expected = any(offset < ends.get(partition, 0) for partition, offset, _ in waiting)
        assert (requests.due(False) is not None) == expected
    requests.close("the end")
    assert requests.due(False) is None
