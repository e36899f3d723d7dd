"""The same long stream on both devices: large random batches, in every form that they are given in.

`make soak` sends 10^8 operations, a day of a busy stream. Small graphs and every operation there is
are `test_stream`'s; here stores grow and shrink by whole levels, hubs have most of the edges, and
batches follow each other without waiting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lpma
from lpma import Kind
from tests.conftest import SOAK
from tests.support.oracles import assert_same

OPERATIONS = 100_000_000 if SOAK else 400_000
LARGEST = 1_000_000 if SOAK else 60_000
VERTICES = 1 << (20 if SOAK else 14)
LOOK_AFTER = OPERATIONS // 20  # operations between two looks at all there is


class Source:
    """Draws batches. Its deletions fall on edges that are there as often as not."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.told = np.empty((2, 0), np.uint32)  # edges of an earlier insertion
        self.time = 0

    def ends(self, n: int) -> Any:
        """Small ids are hubs."""
        return (VERTICES * self.rng.random((2, n)) ** 3).astype(np.uint32)

    def batch(self) -> tuple[str, Any, Any, Any, Any]:
        """(what to do, sources, targets, weights, times)."""
        rng = self.rng
        n = int(LARGEST ** rng.random())
        what = str(rng.choice(["insert", "insert", "set", "delete", "mixed"]))
        if what == "delete" and self.told.shape[1] and rng.random() < 0.8:
            start = int(rng.integers(self.told.shape[1]))
            src, dst = self.told[:, start : start + n]
        else:
            src, dst = self.ends(n)
        if what == "insert" and (n > self.told.shape[1] or rng.random() < 0.2):
            self.told = np.stack([src, dst])
        n = len(src)
        time = self.time + np.arange(n)
        self.time += n
        return what, src, dst, rng.integers(-8, 9, n) / 4, time


def mixed(source: Source, src: Any, dst: Any, weight: Any, time: Any) -> lpma.Columns:
    """Updates with a query at every thirtieth place or so."""
    kind = source.rng.choice(
        [Kind.INSERT, Kind.SET, Kind.DELETE, Kind.EDGE, Kind.SUCCESSORS, Kind.DEGREE], len(src),
        p=[0.62, 0.1, 0.25, 0.02, 0.005, 0.005],
    ).astype(np.uint8)  # fmt: skip
    asks = np.isin(kind, [Kind.SUCCESSORS, Kind.DEGREE])
    # Rows of hubs fill memory with answers.
    src = np.where(asks, np.maximum(src, VERTICES // 8), src).astype(np.uint32)
    return lpma.Columns.validated(kind, src, dst, weight, time)


def given(cupy: Any, form: int, values: Any) -> Any:
    """A column as a caller may have it: on the device, as the store keeps it, or otherwise."""
    if form == 0:
        return cupy.asarray(values)
    return values.astype(np.int64) if form == 1 and values.dtype == np.uint32 else values


def one_by_one(answers: lpma.Answers) -> list[Any]:
    on_host = answers.on_host()
    return [on_host[number] for number in range(len(on_host))]


@pytest.mark.gpu
@pytest.mark.soak
@pytest.mark.parametrize("options", [
    {}, {"predecessors": True}, {"directed": False, "strategy": "top-down"},
    {"weight_dtype": "float64", "global_merge": "never"},
])  # fmt: skip
def test_both_devices_agree(cupy: Any, options: dict[str, Any]) -> None:
    source = Source(len(options))
    here, there = (lpma.Graph(device=device, **options) for device in ("cpu", "cuda"))
    done = looked = 0
    while done < OPERATIONS / 4:
        what, src, dst, weight, time = source.batch()
        form = int(source.rng.integers(3))
        columns = [given(cupy, form, values) for values in (src, dst, weight, time)]
        if what == "mixed":
            batch = mixed(source, src, dst, weight, time)
            assert_same(one_by_one(there.apply(batch)), one_by_one(here.apply(batch)), "answers")
        elif what == "insert":
            there.insert(*columns)
            here.insert(src, dst, weight, time)
        else:
            there.delete(columns[0], columns[1], time=columns[3])
            here.delete(src, dst, time=time)
        done += len(src)
        if done - looked > LOOK_AFTER / 4:
            looked = done
            assert_same(there.snapshot(), here.snapshot(), f"after {done:,} operations")
            there.check()
    assert (there.num_edges, there.version) == (here.num_edges, here.version)
    assert_same(there.snapshot(), here.snapshot(), "at the end")
