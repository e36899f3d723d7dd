"""A batch in every form in which a caller may have it: pinned, on the device, plain arrays of
NumPy's by type of their ids, and columns that were validated before.

The forms take turns on one graph. What a batch has inserted is deleted again while no clock runs,
so that each finds the graph as the others did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import lpma
from lpma.backend.cuda import staging
from lpma.batch.columns import Kind

from ..keys import Array, ends_of
from ..stopwatch import NAN, median, on_device
from .stores import Ours
from .streams import Stream, to_host

Insert = Callable[[], Any]
PLAIN = ("uint32", "int32", "int64")
FORMS = ("pinned", "device", *PLAIN, "columns")


@dataclass(frozen=True)
class FormRounds:
    """How many batches of each form."""

    timed: int
    warmup: int = 2


def run_forms(stream: Stream, size: int, rounds: FormRounds) -> Iterator[dict[str, Any]]:
    """A row for each form: milliseconds of a batch of `size` edges, median and slowest."""
    staging.compiled.get_ready()  # else the first large batch has that done, and goes the slow way
    store = Ours("lpma")
    store.load(stream.base(), stream.vertices, stream.loaded + size)
    found: dict[str, list[float]] = {form: [] for form in FORMS}
    batches, turn = max(stream.streamed // size, 1), 0
    for i in range(rounds.warmup + rounds.timed):
        for form in FORMS:
            keys = stream.batch(turn % batches * size, size)
            turn += 1
            seconds, _ = on_device(_insert(store, form, to_host(keys)))
            if i >= rounds.warmup:
                found[form].append(seconds * 1e3)
            half = np.uint64(32)
            store.graph.delete((keys >> half).astype(np.uint32), keys.astype(np.uint32))
    store.verify(stream.base())
    for form, took in found.items():
        yield {"form": form, "insert": median(took), "slowest": max(took, default=NAN)}


def _insert(store: Ours, form: str, keys: Array) -> Insert:
    """What inserts these keys, given in that form. Making the arrays is not timed."""
    graph = store.graph
    if form == "pinned":
        batch = store.prepare(keys)
        return lambda: store.insert(batch)
    src, dst = ends_of(keys)
    weights, times = np.ones(len(keys), np.float32), np.arange(len(keys))
    if form == "columns":
        columns = lpma.Batch.from_columns(int(Kind.INSERT), src, dst, weights, times)
        return lambda: graph.apply(columns)
    if form == "device":
        import cupy

        there = tuple(map(cupy.asarray, (src, dst, weights, times)))
        return lambda: graph.insert(*there)
    src, dst = src.astype(form), dst.astype(form)
    return lambda: graph.insert(src, dst, weights, times)
