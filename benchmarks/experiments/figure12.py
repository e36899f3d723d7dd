"""The paper's Figure 12: what of a batch's time is transfer, and what the update itself.

*device* is a batch whose columns are on the device already; *transfer* is what pinned columns
take beyond that, and *copy* one copy of as many bytes by itself. Synchronisation is in all of
them. *pageable*: the columns in plain NumPy arrays.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

import lpma
from lpma.batch import Kind

from ..gpu import streams
from ..gpu.device import seconds
from ..gpu.stores import Ours
from ..gpu.streams import Stream, to_host
from ..keys import ends_of
from ..report import Report, Setting

ROUNDS = {10**3: 40, 10**4: 40, 10**5: 30, 10**6: 6}
WARMUP = 3
BYTES = 20  # an edge: source, target, weight, time


def run(setting: Setting) -> Report:
    report = Report("figure12", "milliseconds a batch, median: transfer and update")
    scale, loaded = (14, 50_000) if setting.quick else (20, 10_000_000)
    for size, rounds in ROUNDS.items():
        if setting.out_of_time() or (setting.quick and size > 10**3):
            continue
        stream = streams.rmat(scale, loaded, 3 * (rounds + WARMUP) * size)
        report.add(_row(stream, size, rounds))
    report.notes.append("the paper's share of transfer and synchronisation: 22 to 38 %.")
    return report


def _row(stream: Stream, size: int, rounds: int) -> dict[str, Any]:
    store = Ours("lpma-hybrid", strategy="hybrid", global_merge="never")
    store.load(stream.base(), stream.vertices, len(stream.keys))
    found: dict[str, list[float]] = {"pinned": [], "device": [], "pageable": []}
    used = 0
    for i in range(rounds + WARMUP):
        for way, times in found.items():  # in turns: the store's state is the same for all
            keys = stream.batch(used, size)
            used += size
            batch = _on_device(keys) if way == "device" else store.prepare(
                to_host(keys), pinned=way == "pinned"
            )  # fmt: skip
            taken = seconds(lambda: store.insert(batch)) * 1e3  # noqa: B023  # called at once
            if i >= WARMUP:
                times.append(taken)
    store.verify(stream.upto(used))
    pinned, device, pageable = (statistics.median(times) for times in found.values())
    return {
        "graph": stream.name, "batch": size, "pinned": pinned, "device": device,
        "transfer": pinned - device, "share %": 100 * (pinned - device) / pinned,
        "copy": _copy_ms(size), "pageable": pageable,
    }  # fmt: skip


def _on_device(keys: Any) -> Any:
    import cupy

    n = len(keys)
    return lpma.Batch.from_columns(
        np.uint8(Kind.APPEND), *ends_of(keys), cupy.ones(n, cupy.float32), cupy.arange(n)
    )


def _copy_ms(size: int) -> float:
    import cupy
    import cupyx

    host = cupyx.empty_pinned(size * BYTES, np.uint8)
    there = cupy.empty(size * BYTES, np.uint8)
    return statistics.median(seconds(lambda: there.set(host)) for _ in range(9)) * 1e3
