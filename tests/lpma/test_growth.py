"""A store is expanded before the batch that would expand it (lpma/store/growth.py): the device
declines no small batch for that, and nobody sees a difference. The CPU backend is the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import lpma
from lpma import BatchError, OutOfMemory
from lpma.backend.values import Committed
from lpma.pma.density import root_bounds
from lpma.store import growth
from tests.support.oracles import assert_same
from tests.support.parts import levels_in_parts

pytestmark = pytest.mark.gpu

ROWS = 30
LOADED = 2 * growth.EARLY * ROWS


class Pair:
    """The same graph on both devices, and what each batch came to on the one that expands early."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        self.there, self.here = (
            lpma.Graph(device=device, segment_size=4, **options) for device in ("cuda", "cpu")
        )
        self.store: Any = self.there._stores.out
        self.declined = 0
        backend: Any = self.store.backend
        outcome = backend.outcome

        def watched(*launched: Any) -> Any:
            done = outcome(*launched)
            self.declined += not isinstance(done, Committed)
            return done

        monkeypatch.setattr(backend, "outcome", watched)
        self._ids = iter(np.random.default_rng(3).permutation(1 << 16))
        self.insert(LOADED)
        self.insert(ROWS)
        self.declined, self.expansions_before = 0, self.store.stats.expansions

    def insert(self, n: int) -> None:
        ids = np.fromiter(self._ids, np.int64, n)
        self.give(ids >> 6, ids)

    def give(self, src: Any, dst: Any) -> None:
        self.last = src, dst
        for graph in (self.there, self.here):
            graph.insert(src, dst, time=1)

    @property
    def expansions(self) -> int:
        return int(self.store.stats.expansions) - self.expansions_before

    @property
    def room(self) -> int:
        self.store.finish_pending()
        segments: Any = self.store.segments
        most, _ = root_bounds(segments.size, segments.segment_size)
        return int(most - segments.num_slots)

    def fill(self) -> None:
        """Up to where there is room for one more batch."""
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(growth.Growth, "_expand", lambda *_: None)
            while self.room >= 2 * ROWS:
                self.insert(ROWS)

    def agree(self) -> None:
        assert_same(self.there.snapshot(), self.here.snapshot())
        assert self.there.version == self.here.version
        self.there.check()


@pytest.mark.parametrize("global_merge", ["auto", "never"])
@pytest.mark.parametrize("directed", [True, False])
def test_no_small_batch_is_declined_for_an_expansion(
    cupy: Any, monkeypatch: pytest.MonkeyPatch, global_merge: str, directed: bool
) -> None:
    with levels_in_parts():
        pair = Pair(monkeypatch, global_merge=global_merge, directed=directed)
        for _ in range(300):
            pair.insert(ROWS)
        assert pair.expansions >= (3 if global_merge == "auto" else 1)
        assert pair.declined == 0
        pair.agree()


def test_without_that_they_are(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above is worth."""
    monkeypatch.setattr(growth, "EARLY", 1 << 40)
    with levels_in_parts():
        pair = Pair(monkeypatch)
        for _ in range(300):
            pair.insert(ROWS)
        assert pair.declined == pair.expansions >= 3


@pytest.fixture
def full(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """With room for one more batch."""
    with levels_in_parts():
        pair = Pair(monkeypatch)
        pair.fill()
        pair.expansions_before = pair.store.stats.expansions
        yield pair


def test_batches_that_insert_nothing_expand_nothing(full: Pair) -> None:
    for _ in range(3):
        full.give(*full.last)
    assert full.expansions == 0
    full.insert(ROWS)
    assert full.expansions == 1
    full.agree()


def test_memory_runs_out(full: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch before is applied all the same; the one that does need the room is refused."""
    with monkeypatch.context() as broken:
        broken.setattr(full.store.backend, "expand", _fail)
        full.insert(ROWS)
        assert full.room < ROWS
        with pytest.raises(OutOfMemory, match="no room"):
            full.insert(ROWS)
    full.insert(ROWS)
    full.agree()


def test_a_batch_is_refused_once_the_store_is_larger(full: Pair) -> None:
    full.insert(ROWS)
    assert full.expansions == 1
    with pytest.raises(BatchError):
        full.there.insert([1, 2], [2, 2**32 - 1])
    full.agree()
    full.insert(ROWS)
    assert full.expansions == 1
    full.agree()


def _fail(*_: Any) -> None:
    raise MemoryError("no room")
