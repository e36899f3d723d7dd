"""Tests of tests: a change that breaks a promise must make the test that holds it fail.

Each of these left every test as it was once. Those that take away durability are in
test_powercut.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ingest import CheckpointError
from ingest.pipeline.batching import Batcher
from ingest.state import checkpointer, inspection
from ingest.state.checkpoint import State
from ingest.state.directory import remove_below
from ingest.state.journal import segment_numbers
from tests.ingest import test_pipeline_pace as pace
from tests.ingest.state import test_checkpointer, test_inspection

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.integration
QUERY_WAITS = [(0.02, [10.0, 10.0, 0.02, 0.019]), (60.0, [10.0, 10.0, 9.999, 9.998])]


def journal_of_any_size(patch: Patch) -> None:
    """Its size is not looked at, whatever the limit."""
    is_due = checkpointer.Checkpointer.is_due

    def without(self: checkpointer.Checkpointer, state: State) -> bool:
        with pytest.MonkeyPatch.context() as within:
            within.setattr(checkpointer, "MAX_JOURNAL_BYTES", 1 << 62)
            return is_due(self, state)

    patch.setattr(checkpointer.Checkpointer, "is_due", without)


def journal_of_a_petabyte(patch: Patch) -> None:
    patch.setattr(checkpointer, "MAX_JOURNAL_BYTES", 1 << 50)


def prune_drops_a_segment(patch: Patch) -> None:
    """All but what the newest checkpoint needs."""

    def greedy(directory: Path, number: int, segment: int) -> None:
        remove_below(directory, number, max(segment_numbers(directory)))

    patch.setattr(inspection, "remove_below", greedy)


def query_interval_as_a_maximum(patch: Patch) -> None:
    """The later of two moments instead of the sooner."""

    def due(self: Batcher) -> int | None:
        first = next((piece for piece in self.pieces if len(piece)), None)
        if first is None:
            return None
        at = first.stamp + self.interval_ms
        if self.query_stamps:
            at = max(at, self.query_stamps[0] + self.query_interval_ms)
        return at

    patch.setattr(Batcher, "due", due)


def query_closes_at_once(patch: Patch) -> None:
    """Within its interval, but before that is over."""
    closes = Batcher.closes

    def eager(self: Batcher, now: int, limit: int) -> bool:
        return bool(self.query_stamps) or closes(self, now, limit)

    patch.setattr(Batcher, "closes", eager)


def journal_check(path: Path, patch: Patch) -> None:
    test_checkpointer.test_a_long_journal_makes_a_checkpoint_due(path, patch)


def prune_check(path: Path, patch: Patch) -> None:
    test_inspection.test_prune_keeps_what_the_oldest_it_keeps_needs(path)


def query_check(path: Path, patch: Patch) -> None:
    for number, (interval, waits) in enumerate(QUERY_WAITS):
        directory = path / str(number)
        directory.mkdir()
        pace.test_a_query_waits_for_its_interval_and_no_longer(directory, interval, waits)


MUTANTS: list[tuple[Callable[[Patch], None], Callable[[Path, Patch], None]]] = [
    (journal_of_any_size, journal_check),
    (journal_of_a_petabyte, journal_check),
    (prune_drops_a_segment, prune_check),
    (query_interval_as_a_maximum, query_check),
    (query_closes_at_once, query_check),
]


@pytest.mark.parametrize("mutant, check", MUTANTS, ids=[mutant.__name__ for mutant, _ in MUTANTS])
def test_a_mutant_fails_its_test(
    tmp_path: Path, mutant: Callable[[Patch], None], check: Callable[[Path, Patch], None]
) -> None:
    (tmp_path / "as it is").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        check(tmp_path / "as it is", patch)
    (tmp_path / "mutated").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        with pytest.raises((AssertionError, CheckpointError)):
            check(tmp_path / "mutated", patch)
