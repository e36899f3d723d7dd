"""Tests of the conformance suite: each line of the seam is cited, and a backend that breaks a line
fails the test that cites it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from lpma.backend import protocol
from lpma.backend.numba.backend import NumbaBackend
from lpma.backend.values import FORWARD, Committed
from lpma.pma.counters import Stats
from lpma.pma.layout import Size
from tests.lpma import test_conformance as stores
from tests.lpma import test_conformance_batches as batches
from tests.lpma import test_conformance_reads as reads
from tests.lpma import test_one as single
from tests.support.seam import Make
from tests.support.slow_backend import CountsAhead, SlowBackend, SlowPlan
from tests.support.slow_store import SlowSegments

pytestmark = pytest.mark.integration

DRAWS = 20  # of examples, before a mutant counts as one that no test catches

# The suite itself -----------------------------------------------------------------------------


def test_every_line_is_cited() -> None:
    """By the docstring of a test; and no test cites a line that is not there."""
    source = Path(protocol.__file__).read_text()
    lines = set(re.findall(r"\[([A-Z]\d+)\]", source))
    cited = {
        label
        for module in (stores, batches, reads, single)
        for name, test in vars(module).items()
        if name.startswith("test_") and test.__doc__
        for label in re.findall(r"\b([ABOQRSW]\d+)\b", test.__doc__)
    }
    assert lines - cited == set()
    assert cited - lines == set()
    unlabelled = [line for line in source.splitlines()
                  if "ENSURES:" in line and not re.search(r"\[[A-Z]\d+\]", line)]  # fmt: skip
    assert unlabelled == []


class PublishesWhilePlanning(SlowBackend):
    """Writes the counts as they will be, and does not say so."""

    def plan(self, strategy: str, segments: Any, located: Any) -> SlowPlan:
        plan = super().plan(strategy, segments, located)
        segments.counts[1] += located.tally.delta
        return plan


class NoRollback(CountsAhead):
    """Leaves the counts as they would have been."""

    def rollback(self, located: Any) -> None:
        self.written = False


class IgnoresStrategy(SlowBackend):
    def plan(self, strategy: str, segments: Any, located: Any) -> SlowPlan:
        return super().plan("top-down", segments, located)


class KeepsFirstPlan(SlowBackend):
    def plan(self, strategy: str, segments: Any, located: Any) -> SlowPlan:
        plan = super().plan(strategy, segments, located)
        return cast(SlowPlan, located.__dict__.setdefault("plan", plan))


class HeldBefore(SlowPlan):
    @property
    def held_above_leaves(self) -> int:
        windows = [(layer, j) for r in self.rounds for layer, j, _ in r if layer]
        return sum(sum(self.case.counts[j << x : (j + 1) << x]) for x, j in windows)


class TellsWhatWasHeldBefore(SlowBackend):
    def plan(self, strategy: str, segments: Any, located: Any) -> SlowPlan:
        plan = super().plan(strategy, segments, located)
        return HeldBefore(plan.case, plan.rounds)


class ForgetsMarkers(SlowBackend):
    """Its changes are of edges alone."""

    def commit(self, segments: Any, located: Any, plan: Any, stats: Any, most: int) -> Committed:
        edges = {key: there for key, there in located.inserted.items() if ~key & (2**32 - 1)}
        located.inserted = edges
        return super().commit(segments, located, plan, stats, most)


class RebuildsWithoutTheBatch(SlowBackend):
    def rebuild(self, segments: Any, located: Any, size: Size) -> SlowSegments:
        return self._spread_over(segments, segments.slots, size)


class CountsTwice(SlowBackend):
    """What changes nothing is counted while locating and while moving."""

    def commit(self, segments: Any, located: Any, plan: Any, stats: Any, most: int) -> Committed:
        done = super().commit(segments, located, plan, stats, most)
        done.unchanged = [2 * count for count in done.unchanged]
        return done


class SeesWhatComesLater(SlowBackend):
    """Each query sees the whole batch."""

    def neighbors(
        self, segments: Any, staged: Any, vertices: Any, limits: Any, values: bool
    ) -> Any:
        last = None if limits is None else np.full(len(limits), 1 << 40)
        return super().neighbors(segments, staged, vertices, last, values)


class ForgetsWhatIsImplied(SlowBackend):
    """The rows beside the store are those of the columns alone."""

    def sort_beside(self, segments: Any, staged: Any, rows: Any) -> None:
        own = self.key_rows(staged, staged.columns, FORWARD)
        super().sort_beside(segments, staged, own)


class PutsTheBatchIn(SlowBackend):
    """What is to lie beside the store is in it at once."""

    def sort_beside(self, segments: Any, staged: Any, rows: Any) -> None:
        located = self.locate(segments, staged, rows, "top-down")
        plan = self.plan("top-down", segments, located)
        self.commit(segments, located, plan, Stats(), -1)
        super().sort_beside(segments, staged, rows)


class AppliesWhatItRefuses(NumbaBackend):
    """A small batch that would cost too much is applied all the same."""

    def apply_at_once(self, *batch: Any) -> Any:
        *how, most_cost, stats = batch
        done = super().apply_at_once(*how, np.inf, stats)  # type: ignore[call-arg]
        return None if most_cost <= 0 else done


MUTANTS: list[tuple[type, Callable[..., None]]] = [
    (PublishesWhilePlanning, stores.test_planning_publishes_nothing),
    (NoRollback, stores.test_planning_publishes_nothing),
    (IgnoresStrategy, batches.test_a_plan_is_of_the_strategy_that_was_asked_for),
    (KeepsFirstPlan, batches.test_a_plan_is_of_the_strategy_that_was_asked_for),
    (TellsWhatWasHeldBefore, batches.test_a_plan_is_of_the_strategy_that_was_asked_for),
    (IgnoresStrategy, batches.test_every_backend_leaves_the_same_store),
    (ForgetsMarkers, batches.test_changes_name_markers_too),
    (RebuildsWithoutTheBatch, batches.test_a_rebuilt_store_is_a_built_one),
    (CountsTwice, batches.test_batches_come_to_what_operations_come_to),
    (SeesWhatComesLater, reads.test_a_mixed_batch),
    (SeesWhatComesLater, reads.test_what_lies_beside_a_store_is_not_in_it),
    (ForgetsWhatIsImplied, reads.test_what_lies_beside_a_store_is_not_in_it),
    (PutsTheBatchIn, reads.test_what_lies_beside_a_store_is_not_in_it),
    (AppliesWhatItRefuses, batches.test_small_batches_have_no_other_end),
]


@pytest.mark.parametrize("mutant, test", MUTANTS, ids=lambda it: it.__name__)
def test_a_mutant_is_caught(mutant: type, test: Callable[..., None]) -> None:
    """A backend that breaks a line fails the test that cites it, if not by the first examples that
    are drawn, then by others."""
    with_flag = (
        batches.test_a_rebuilt_store_is_a_built_one,
        reads.test_what_lies_beside_a_store_is_not_in_it,
    )
    rest = [test is with_flag[1]] if test in with_flag else []

    def test_often() -> None:
        for _ in range(DRAWS):
            test(mutant, *rest)

    with pytest.raises((AssertionError, ExceptionGroup)):
        test_often()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_a_host_that_does_not_roll_back_is_caught(
    when: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that fails once it is planned, and is not rolled back."""
    with pytest.raises(AssertionError):
        stores.test_what_fails_before_the_first_write_changes_nothing(
            cast(Make, NoRollback), "reserve", when, error, monkeypatch
        )
