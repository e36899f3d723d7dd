"""`python -m tests.support.emulated.fuzz SEED GRAPHS ROWS [CODE]`: graphs of all kinds, each on an
emulated device and on the CPU, get the same batches and must answer and hold the same. Prints, as
JSON, how often each kernel was launched.

ROWS: above how many a batch is large, in place of ONE_LAUNCH_ROWS: so small ones go that way, too.
CODE: what is taken out of the kernels beforehand."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

import numpy as np

from lpma.backend import overlapping
from lpma.engine import admission

from . import build, cupy_on_host

FEW_ROWS = 2000


def prepare(rows: int) -> Counter[str]:
    """Have an emulated device, and large batches begin at `rows`. Returns what will be counted."""
    launched = Counter[str]()
    for module in (overlapping, admission):
        vars(module)["ONE_LAUNCH_ROWS"] = rows
    cupy_on_host.install()
    from lpma.backend.cuda.upload import zero_copy
    from lpma.cuda import launch

    start = launch.start

    def counting(name: str, *args: Any) -> None:
        launched[name] += 1
        start(name, *args)

    vars(launch)["start"] = counting
    zero_copy.MOST_ROWS = min(zero_copy.MOST_ROWS, rows // 2)
    return launched


class Pair:
    """A graph on the device, and the same on the CPU."""

    def __init__(self, rng: np.random.Generator) -> None:
        import lpma

        options: dict[str, Any] = {
            "directed": bool(rng.integers(2)), "predecessors": bool(rng.integers(2)),
            "global_merge": str(rng.choice(["auto", "never"])),
            "strategy": str(rng.choice(["hybrid", "top-down", "bottom-up"])),
        }  # fmt: skip
        self._rng, self._span = rng, int(rng.choice([20, 300, 3000]))
        self.there, self.here = (lpma.Graph(device=on, **options) for on in ("cuda", "cpu"))
        self.about = str(options)

    def step(self) -> None:
        """One batch for both."""
        n = int(self._rng.choice([3, 200, 490, 520, FEW_ROWS]))
        kinds = np.full(n, self._rng.choice([0, 0, 0, 1, 11]), np.uint8)
        if self._rng.random() < 0.3:
            kinds = self._rng.choice([0, 0, 1, 11], n).astype(np.uint8)
        src, dst = self._rng.integers(0, self._span, (2, n))
        rest = self._rng.integers(-4, 9, n) / 4, self._rng.integers(0, 100, n)
        given = self._pinned, self._plain, self._mixed, self._validated
        given[self._rng.integers(4)](kinds, src, dst, *rest)
        assert self.there.num_edges == self.here.num_edges, self.about

    def _validated(self, *columns: Any) -> None:
        from lpma import Batch

        batch = Batch.from_columns(*columns)
        self.there.apply(batch)
        self.here.apply(batch)

    def _pinned(self, *columns: Any) -> None:
        """Refused for a kind and for its weights, then applied, then overwritten."""
        import lpma
        from lpma.batch.columns import weighted_rows

        batch = lpma.pinned_batch(len(columns[0]))
        for column, values in zip(_columns(batch), columns, strict=True):
            column[:] = values
        self.here.apply(batch)
        if weighted_rows(batch.kind).any():
            assert batch.weight is not None
            batch.weight[:] = np.nan
            try:
                self.there.apply(batch)
                raise AssertionError(f"{self.about}: weights that are none")
            except lpma.BatchError:
                batch.weight[:] = columns[3]
        batch.kind[-1] = 77
        try:
            self.there.apply(batch)
        except lpma.BatchError:
            batch.kind[-1] = columns[0][-1]
            self.there.apply(batch)
        for column in _columns(batch):
            column[:] = 1

    def _plain(self, kinds: Any, src: Any, dst: Any, weight: Any, time: Any) -> None:
        for g in (self.there, self.here):
            if kinds[0] != 1:
                (g.set if kinds[0] else g.insert)(src, dst, weight, time)
            else:
                g.delete(src, dst, time=time)

    def _mixed(self, kinds: Any, *rest: Any) -> None:
        """With queries, and now and then a vertex that goes."""
        from lpma import Batch, Kind
        from tests.support.oracles import assert_same

        asked = [Kind.EDGE, Kind.SUCCESSORS, Kind.DEGREE, Kind.VERTEX]
        if self._rng.random() < 0.3:
            asked.append(Kind.REMOVE_VERTEX)
        places = self._rng.integers(0, len(kinds), 12)
        kinds[places] = self._rng.choice(asked, 12)
        batch = Batch.from_columns(kinds, *rest)
        got, expected = self.there.apply(batch), self.here.apply(batch)
        assert len(got) == len(expected)
        for number in range(len(expected)):
            assert_same(got[number], expected[number], f"{self.about}, query {number}")

    def compare(self) -> None:
        """What both hold, the device's invariants, and what was counted."""
        from tests.support.oracles import assert_same

        assert_same(self.there.snapshot(), self.here.snapshot(), self.about)
        self.there.check()
        assert self.there.version == self.here.version
        for counted in ("batches", "operations"):
            assert getattr(self.there.stats(), counted) == getattr(self.here.stats(), counted)


def _columns(batch: Any) -> tuple[Any, ...]:
    return batch.kind, batch.src, batch.dst, batch.weight, batch.time


def main(seed: int, graphs: int, rows: int, *code: str) -> None:
    build.TAKEN_AWAY += code
    launched, rng = prepare(rows), np.random.default_rng(seed)
    for _ in range(graphs):
        pair = Pair(rng)
        for _ in range(int(rng.integers(3, 12))):
            pair.step()
        pair.compare()
    print(json.dumps(launched))


if __name__ == "__main__":
    seed, graphs, rows = map(int, sys.argv[1:4])
    main(seed, graphs, rows, *sys.argv[4:])
