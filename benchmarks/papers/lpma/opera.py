"""The paper's Figure 16: mixed batches, 3 % of them queries, with Opera and without.

Half of the queries ask for an edge, half for a vertex's successors, at random places among the
insertions. *mixed* is the whole batch with Opera; *updates* and *queries* are its two parts by
themselves, *to parts* mixed over their sum; *serial* is `opera=False`: the batch cut at every
query. All answers of a batch are compared between Opera and serial.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import lpma
from lpma import Columns, Edges, Kind, Neighbors, arrays

from ...gpu.growth import graphs
from ...gpu.stores import Ours
from ...gpu.streams import Stream, to_host
from ...keys import Array, ends_of
from ...report import Report, Setting
from ...stopwatch import WrongAnswer, median, on_device

SHARE = 0.03
ROUNDS, SERIAL_ROUNDS, WARMUP = 12, 2, 2
COMPARED = 200  # answers of a batch


def figure16(setting: Setting) -> Report:
    report = Report("figure16", "milliseconds a mixed batch, median, 3 % queries")
    for stream in graphs(setting, 12_000_000):
        stream = stream.cut(len(stream.keys) * 5 // 6)
        for size in (1_000,) if setting.quick else (10**4, 10**5):
            batches = min(stream.streamed // size, ROUNDS + WARMUP)
            if setting.out_of_time() or batches <= SERIAL_ROUNDS:
                continue
            report.add(opera_row(stream, size, batches))
    report.notes.append("the paper claims serial/mixed of 2 to 6 at 10^4 and 4 to 11 at 10^5.")
    return report


def opera_row(
    stream: Stream, size: int, batches: int, serial: int = SERIAL_ROUNDS
) -> dict[str, Any]:
    """`batches` mixed batches, the first `serial` of them without Opera too."""
    kept = ("mixed", "parts", "serial") if serial else ("mixed", "parts")
    stores = {name: Ours("lpma") for name in kept}
    for store in stores.values():
        store.load(stream.base(), stream.vertices, len(stream.keys))
    rng = np.random.default_rng(size)
    ms: dict[str, list[float]] = {name: [] for name in ("mixed", "updates", "queries", "serial")}
    warmup = min(WARMUP, batches - 1)
    for i in range(batches):
        batch = _mixed(rng, to_host(stream.batch(i * size, size)), stream.vertices)
        asked = batch.kind >= Kind.EDGE
        work = [("mixed", "mixed", batch, True), ("parts", "updates", _rows(batch, ~asked), True),
                ("parts", "queries", _rows(batch, asked), True)]  # fmt: skip
        if i < serial:
            work.append(("serial", "serial", batch, False))
        answers = {}
        for held, name, part, opera in work:
            taken, answers[name] = _apply(stores[held], part, opera)
            if i >= warmup or name == "serial":
                ms[name].append(taken)
        if "serial" in answers:
            _compare(answers["mixed"], answers["serial"], rng)
    stores["mixed"].verify(stream.upto(batches * size))
    stores["parts"].verify(stream.upto(batches * size))
    found = {name: median(times) for name, times in ms.items() if times}
    row = {"graph": stream.name, "batch": size} | found
    row["to parts"] = float(found["mixed"]) / (found["updates"] + found["queries"])
    return row | ({"serial/mixed": found["serial"] / found["mixed"]} if serial else {})


def _mixed(rng: np.random.Generator, keys: Array, vertices: int) -> Columns:
    """These insertions in order, with queries at random places among them."""
    queries = int(len(keys) * SHARE)
    n = len(keys) + queries
    batch = lpma.pinned_batch(n)
    asks = np.zeros(n, bool)
    asks[rng.choice(n, queries, replace=False)] = True
    batch.kind[:] = Kind.APPEND
    batch.kind[asks] = rng.choice([Kind.EDGE, Kind.SUCCESSORS], queries)
    if batch.time is not None:
        batch.time[:] = np.arange(n)
    batch.src[~asks], batch.dst[~asks] = ends_of(keys)
    # Edges of this very batch, before and after their insertion, are the interesting ones.
    batch.src[asks], batch.dst[asks] = ends_of(rng.choice(keys, queries))
    some = asks & (rng.random(n) < 0.5)
    batch.src[some] = rng.integers(0, vertices, int(some.sum()), dtype=np.uint32)
    return batch


def _rows(batch: Columns, chosen: Array) -> Columns:
    part = lpma.pinned_batch(int(chosen.sum()))
    for name in ("kind", "src", "dst", "weight", "time"):
        getattr(part, name)[:] = getattr(batch, name)[chosen]
    return replace(part)


def _apply(store: Ours, batch: Columns, opera: bool) -> tuple[float, Any]:
    seconds, answers = on_device(lambda: store.graph.apply(batch, opera=opera))
    return seconds * 1e3, answers


def _compare(ours: Any, serial: Any, rng: np.random.Generator) -> None:
    """A sample of the answers, column by column."""
    if len(ours) != len(serial):
        raise WrongAnswer(f"opera: {len(ours)} answers, serially {len(serial)}")
    for i in rng.integers(0, len(ours), min(COMPARED, len(ours))).tolist():
        pairs = zip(_columns(ours[i]), _columns(serial[i]), strict=True)
        if not all(np.array_equal(a, b) for a, b in pairs):
            raise WrongAnswer(f"opera: the answer of query {i} is not the serial one's")


def _columns(answer: Edges | Neighbors | Any) -> list[Array]:
    columns = [answer.found, answer.weight] if isinstance(answer, Edges) else (
        [answer.ids, answer.weight]
    )  # fmt: skip
    return [arrays.to_host(column) for column in columns]
