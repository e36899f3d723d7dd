"""`python -m tests.support.no_gpu.drive SEED BATCHES [MUTANT]`: a graph without a device gets
batches of all kinds, one after the other. Prints, as JSON, how many there were of each kind, which
kernels were launched, and what conflicts there were.

MUTANT: what is taken away beforehand, one of MUTANTS."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

import numpy as np

from . import stand_in
from .stand_in import clocks

stand_in.install()

import lpma  # noqa: E402
from lpma import Batch, Kind  # noqa: E402
from lpma.backend.cuda.store import shapes  # noqa: E402
from lpma.backend.cuda.store.segments import empty_segments  # noqa: E402
from lpma.backend.cuda.update import stepwise  # noqa: E402
from lpma.backend.cuda.upload import blocks, staging, uploader  # noqa: E402
from lpma.engine import opera  # noqa: E402
from lpma.engine.answers import NO_ANSWERS  # noqa: E402
from lpma.pma.layout import Size  # noqa: E402

from .kernels import Kernels  # noqa: E402

SIZES = (100, 20_000, 60_000, 90_000, 131_072, 131_073, 200_000)
HELD = 9_000_000  # slots of the store: sparse enough that no batch has to be timed


def no_wait_for_columns(self: Any, batch: Any, what: int) -> None:
    self.bring(batch, what)


def no_wait_for_weights_alone(self: Any, batch: Any, what: int) -> None:
    self.bring(batch, what)
    block = batch.block
    if block is not None and block.last[what] > block.last[what - 1]:
        self._stream.wait_event(block.arrival_event(what))


def no_wait_for_readers(self: Any, block: Any) -> None:
    pass


def no_note_of_readers(self: Any, batch: Any) -> None:
    pass


def no_turns(self: Any) -> None:
    pass


def a_turn_a_try(self: Any) -> Any:
    block = following(self)
    self._turn = 1 - self._turn
    return block


def no_wait_for_the_twin(self: Any, size: int) -> Any:
    used, self.used = self.used, False
    try:
        return landing(self, size)
    finally:
        self.used = used


landing, following = blocks.Block.landing, blocks.Blocks.next
MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "no wait for columns": (uploader.Uploader, "await_part", no_wait_for_columns),
    "no wait for weights alone": (uploader.Uploader, "await_part", no_wait_for_weights_alone),
    "no wait for readers": (blocks.Blocks, "wait_for", no_wait_for_readers),
    "no note of readers": (uploader.Uploader, "done", no_note_of_readers),
    "no turns": (blocks.Blocks, "taken", no_turns),
    "a turn for each try": (blocks.Blocks, "next", a_turn_a_try),
    "no wait for the twin": (blocks.Block, "landing", no_wait_for_the_twin),
}


class Driver:
    """A graph whose store is large, so that batches follow each other, and what it gets."""

    def __init__(self, seed: int) -> None:
        stand_in.chance.seed(seed)
        self._rng = np.random.default_rng(seed)
        self.kernels, self.done = Kernels(), Counter[str]()
        for module, name, instead in (
            (shapes, "kernels_of", lambda *_: self.kernels),
            (stepwise, "launch_on", lambda *_: None),
            (opera, "answer_queries", self._answer),
        ):
            setattr(module, name, instead)
        staging.compiled.get_ready()
        self._graph = lpma.Graph(device="cuda")
        store: Any = self._graph._stores.out
        self._backend = store.backend
        self.kernels.install(self._backend)
        with self._backend.context:
            store.segments = empty_segments(32, np.dtype(np.float32), True, Size(19))
        store.segments.num_slots = HELD
        self._kept: dict[int, lpma.Columns] = {}  # in pinned memory, by size

    def _answer(self, _: Any, columns: Any, batch: Any) -> Any:
        assert batch is not None, "it lies beside the store"
        at = clocks.moment(self._backend.context.stream.ptr)
        self.kernels.read("queries", batch.staged.record.tobytes(), ("weight", "time"), at)
        return NO_ANSWERS

    def step(self) -> None:
        """Apply a batch of some kind, or see to it that the last one is over."""
        clocks.batch += 1
        given = (self._pinned, self._validated, self._plain, self._mixed, self._wait)
        step = given[self._rng.choice(5, p=(0.3, 0.25, 0.3, 0.1, 0.05))]
        self.kernels.declines = self._rng.random() < 0.15
        ending = "applied"
        try:
            step(int(self._rng.choice(SIZES)))
        except lpma.BatchError:
            ending = "refused"
        self.kernels.declines = self.kernels.finds_bad_rows = False
        self.done[f"{step.__name__[1:]} {ending}"] += 1

    def _kinds(self, n: int) -> Any:
        """Of rows that all insert, all delete, all set, or do any of these."""
        rows = [0, 1, 11, self._rng.choice([0, 1, 11], n)][self._rng.integers(4)]
        return np.full(n, rows, np.uint8)

    def _values(self, n: int) -> tuple[Any, Any]:
        """A column of weights and one of times, if there are such."""
        dtype = [None, np.float32, np.float64][self._rng.integers(3)]
        weights = None if dtype is None else np.ones(n, dtype)
        return weights, np.zeros(n, np.int64) if self._rng.random() < 0.5 else None

    def _pinned(self, n: int) -> None:
        """The caller uses the memory again once the batch is applied."""
        batch = self._kept.pop(n, None) or lpma.pinned_batch(n)
        batch.kind[:] = self._kinds(n)
        self.kernels.finds_bad_rows = self._rng.random() < 0.1
        if self._rng.random() < 0.1:
            batch.kind[-1] = 200
        self._graph.apply(batch)
        for column in (batch.kind, batch.src, batch.dst, batch.weight, batch.time):
            assert column is not None
            self.kernels.host_writes(column.ctypes.data, column.nbytes)
        self._kept[n] = batch

    def _validated(self, n: int) -> None:
        ends = np.zeros(n, np.uint32)
        self._graph.apply(Batch.from_columns(self._kinds(n), ends, ends, *self._values(n)))

    def _plain(self, n: int) -> None:
        """What bad rows there are is found while they are copied."""
        src, (weights, times) = np.zeros(n, np.int64), self._values(n)
        if self._rng.random() < 0.2:
            src[-1] = -1
        elif weights is not None and self._rng.random() < 0.3:
            weights[-1] = np.nan
        self._graph.insert(src, np.zeros(n, np.int64), weights, times)

    def _mixed(self, n: int) -> None:
        """Queries are answered while the batch lies beside the store."""
        kinds, ends = self._kinds(n), np.zeros(n, np.uint32)
        kinds[n // 2] = Kind.EDGE
        self._graph.apply(Batch.from_columns(kinds, ends, ends, *self._values(n)))

    def _wait(self, n: int) -> None:
        self._graph._stores.finish_pending()
        self._backend.wait()


def main(seed: int, batches: int, mutant: str | None = None) -> None:
    if mutant is not None:
        setattr(*MUTANTS[mutant])
    driver = Driver(seed)
    for _ in range(batches):
        driver.step()
    found = {
        "done": driver.done,
        "launched": Counter(driver.kernels.launched),
        "conflicts": sorted(clocks.conflicts),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
