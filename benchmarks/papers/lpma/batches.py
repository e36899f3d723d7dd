"""The paper's Figures 12 and 14 on a CUDA device: transfer against update, and exporting a CSR."""

from __future__ import annotations

from typing import Any

import numpy as np

import lpma
from lpma.batch.columns import Kind

from ...gpu import streams
from ...gpu.growth import graphs
from ...gpu.stores import Flat, Ours
from ...gpu.streams import Stream, to_host
from ...keys import ends_of
from ...report import Report, Setting
from ...stopwatch import Kernel, alone, measure, on_device
from ...stores.gpu_updates import DRAWS

ROUNDS = {10**3: 40, 10**4: 40, 10**5: 30, 10**6: 6}
WARMUP = 3
SENT = 20  # bytes per edge: source, target, weight, time
READ, WRITTEN = 20, 16  # bytes per edge of a CSR
EXPORTS, EXPORT_WARMUP = 9, 2
COPIES = 9


def figure12(setting: Setting) -> Report:
    """How much of a batch's time is transfer, and how much is the update itself.

    *device* is a batch whose columns are on the device already; *transfer* is what pinned columns
    take beyond that, and *copy* one copy of as many bytes by itself. Synchronisation is in all of
    them. *pageable*: the columns in plain NumPy arrays."""
    report = Report("figure12", "milliseconds a batch, median: transfer and update")
    scale, loaded = (14, 50_000) if setting.quick else (20, 10_000_000)
    for size, rounds in ROUNDS.items():
        if setting.out_of_time() or (setting.quick and size > 10**3):
            continue
        stream = streams.rmat(scale, loaded, 3 * (rounds + WARMUP) * size)
        report.add(_transfer(stream, size, rounds))
    report.notes.append("the paper's share of transfer and synchronisation: 22 to 38 %.")
    return report


def _transfer(stream: Stream, size: int, rounds: int) -> dict[str, Any]:
    store = Ours("lpma-hybrid", strategy="hybrid", global_merge="never")
    store.load(stream.base(), stream.vertices, len(stream.keys))
    used = 0

    def following(way: str) -> Any:
        """The next batch of the stream: all ways take turns on one store."""
        nonlocal used
        keys = stream.batch(used, size)
        used += size
        if way == "device":
            return _on_device(keys)
        return store.prepare(to_host(keys), pinned=way == "pinned")

    def kernel(way: str) -> Kernel:
        return Kernel(lambda _: following(way), store.insert)

    timings = measure(
        {way: kernel(way) for way in ("pinned", "device", "pageable")}, lambda *_: None,
        rounds=rounds, warmup=WARMUP, clock=on_device,
    )  # fmt: skip
    store.verify(stream.upto(used))
    pinned, device, pageable = (timing.median * 1e3 for timing in timings.values())
    return {
        "graph": stream.name, "batch": size, "pinned": pinned, "device": device,
        "transfer": pinned - device, "share %": 100 * (pinned - device) / pinned,
        "copy": _copy_to_device(size), "pageable": pageable,
    }  # fmt: skip


def _on_device(keys: Any) -> Any:
    import cupy

    n = len(keys)
    return lpma.Batch.from_columns(
        np.uint8(Kind.INSERT), *ends_of(keys), cupy.ones(n, cupy.float32), cupy.arange(n)
    )


def _copy_to_device(size: int) -> float:
    import cupy
    import cupyx

    host = cupyx.empty_pinned(size * SENT, np.uint8)
    there = cupy.empty(size * SENT, np.uint8)
    return alone(lambda: there.set(host), rounds=COPIES, warmup=0) * 1e3


def figure14(setting: Setting) -> Report:
    """A CSR of all edges, on the device.

    Ours exports row offsets, targets, weights and times; *GB/s* counts every edge's slot read once
    and its row written once, and *copy* is a device copy of as many bytes. Flat: offsets and
    targets. One edge is inserted before every export, so that no cached answer is timed."""
    report = Report("figure14", "milliseconds for a CSR of all edges, median")
    added = EXPORTS + EXPORT_WARMUP
    for stream in graphs(setting, 20_000_000):
        of_paper = (11_000_000, 15_000_000, 20_000_000) if stream.name == "RMAT 20" else ()
        for edges in of_paper or (len(stream.keys) - added,):
            report.add(_csr(stream.cut(min(edges, len(stream.keys) - added))))
    if not setting.quick and not setting.out_of_time():
        report.add(_csr(streams.rmat(20, 75_000_000, 0, draws=DRAWS)))
    return report


def _csr(stream: Stream) -> dict[str, Any]:
    base = stream.base()
    ours, flat = Ours("lpma"), Flat()
    for store in (ours, flat):
        store.load(base, stream.vertices, len(base) + EXPORTS + EXPORT_WARMUP)
    taken = _export(ours, stream)
    ours.verify(stream.upto(EXPORTS + EXPORT_WARMUP))
    nbytes = (READ + WRITTEN) * len(base) + 8 * stream.vertices
    return {
        "graph": stream.name, "edges": len(base), "lpma": taken, "flat": _export(flat, stream),
        "copy": _copy_on_device(nbytes), "GB/s": nbytes / float(taken) / 1e6,
    }  # fmt: skip


def _export(store: Ours | Flat, stream: Stream) -> float:
    def insert_one(i: int) -> None:
        store.insert(store.prepare(to_host(stream.batch(i, 1))))

    timings = measure(
        {"": Kernel(insert_one, lambda _: store.csr())}, lambda *_: None,
        rounds=EXPORTS, warmup=EXPORT_WARMUP, clock=on_device,
    )  # fmt: skip
    return timings[""].median * 1e3


def _copy_on_device(nbytes: int) -> float:
    """A device copy that reads and writes this many bytes together."""
    import cupy

    source = cupy.zeros(nbytes // 2, np.uint8)
    target = cupy.empty_like(source)
    return alone(lambda: cupy.copyto(target, source), rounds=COPIES, warmup=0) * 1e3
