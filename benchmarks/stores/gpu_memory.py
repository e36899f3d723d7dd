"""Memory of the device through 1000 batches: bytes per edge, and whether anything grows.

Half of the batches insert, the others delete what was inserted, so that the graph is the same
after every second one. *device* is what the driver says is taken, CuPy's free blocks given back.
"""

from __future__ import annotations

from typing import Any

from ..gpu import streams
from ..gpu.device import memory_used
from ..gpu.stores import Ours
from ..gpu.streams import Stream, to_host
from ..report import Report, Setting

BATCHES, PARTS = 1000, 4


def gpu_memory(setting: Setting) -> Report:
    report = Report("gpu-memory", "MiB of the device through 1000 batches")
    scale, edges, size = (14, 100_000, 1_000) if setting.quick else (20, 10_000_000, 10**4)
    stream = streams.rmat(scale, edges, 10 * size)
    for name, options in (("lpma", {}), ("lpma-keys", {"weight_dtype": None, "times": False})):
        if setting.wants(name) and not setting.out_of_time():
            _through(report, stream, Ours(name, **options), size)
    return report


def _through(report: Report, stream: Stream, store: Ours, size: int) -> None:
    before = memory_used()
    base = stream.base()
    taken = memory_used() - before
    store.load(base, stream.vertices, len(base))
    batches = [to_host(stream.batch(i * size, size)) for i in range(10)]
    first = None
    for part in range(PARTS + 1):  # the first fills buffers
        for i in range(BATCHES // (2 * PARTS)):
            keys = batches[i % len(batches)]
            store.insert(store.prepare(keys))
            store.delete(store.prepare(keys, deleting=True))
        now = memory_used() - before - taken
        first = now if part == 0 else first
        row: dict[str, Any] = {"store": store.name, "batches": part * BATCHES // PARTS}
        report.add(row | {
            "device": now / 2**20, "counted": store.graph.nbytes / 2**20,
            "device bytes/edge": now / store.graph.num_edges,
            "counted bytes/edge": store.graph.nbytes / store.graph.num_edges,
            "grown": (now - (first or 0)) / 2**20,
        })  # fmt: skip
    store.verify(base)
