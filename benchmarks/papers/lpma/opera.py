"""The paper's Figure 16: mixed batches, 3 % of them queries, and other ways to do the same.

Half of the queries ask for an edge, half for a vertex's successors, at random places among the
insertions. *mixed* is the whole batch; *updates* and *queries* are its two parts by themselves, *to
parts* mixed over their sum; *serial* is the batch cut at every query, its pieces run one after the
other. Answers are compared between the ways. The paper's own form is in opera_cpu.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gpu.growth import graphs
from ...gpu.stores import Ours
from ...gpu.streams import Stream, to_host
from ...report import Report, Setting
from ...stopwatch import median, on_device
from .mixed import compare, each, mixed_batch, work_of

ROUNDS, SERIAL_ROUNDS, WARMUP = 12, 2, 2


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
    """`batches` mixed batches, the first `serial` of them in pieces too."""
    kept = ("mixed", "parts", "serial") if serial else ("mixed", "parts")
    stores = {name: Ours("lpma") for name in kept}
    for store in stores.values():
        store.load(stream.base(), stream.vertices, len(stream.keys))
    rng = np.random.default_rng(size)
    ms: dict[str, list[float]] = {name: [] for name in ("mixed", "updates", "queries", "serial")}
    warmup = min(WARMUP, batches - 1)
    for i in range(batches):
        batch = mixed_batch(rng, to_host(stream.batch(i * size, size)), stream.vertices)
        answers = {}
        for held, name, parts in work_of(batch, i < serial):
            apply = stores[held].graph.apply
            seconds, answers[name] = on_device(lambda: [apply(part) for part in parts])  # noqa: B023
            if i >= warmup or name == "serial":
                ms[name].append(seconds * 1e3)
        if "serial" in answers:
            compare(each(answers["mixed"]), each(answers["serial"]), rng)
    stores["mixed"].verify(stream.upto(batches * size))
    stores["parts"].verify(stream.upto(batches * size))
    found = {name: median(times) for name, times in ms.items() if times}
    row = {"graph": stream.name, "batch": size} | found
    row["to parts"] = float(found["mixed"]) / (found["updates"] + found["queries"])
    return row | ({"serial/mixed": found["serial"] / found["mixed"]} if serial else {})
