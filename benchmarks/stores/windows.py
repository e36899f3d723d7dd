"""Sliding windows: the newest edges of a stream, batch by batch as many in as out.

`expire` is told a time, and finds by itself what goes. Beside it, the same graph is told by the
caller: one call inserts the edges that come, another deletes those that go. That is the least that
a window can cost here, and *ratio* says how much more `expire` is. scipy and networkit (`peers.py`)
keep the same window without times, and so does NetworkX at a small size; they are told what goes.

The edges of a stream all differ, so that an edge goes when it has been there for a whole window.
Every batch counts, those too that pass over the store: ratios are of means.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

import lpma

from ..keys import Array
from ..report import Report, Row, Setting
from ..stopwatch import NAN, Kernel, WrongAnswer, mean, measure, on_device, on_host
from .base import Store
from .peers import Networkit, ScipyCSR, available

ROUNDS = {10**4: 60, 10**5: 40, 10**6: 12}
NETWORKX_EDGES = 50_000  # the largest window that NetworkX is asked to keep
WARMUP = 2
PEERS = ("networkx", "networkit", "scipy")


def windows(setting: Setting) -> Report:
    report = Report("windows", "milliseconds a batch that comes and as many edges that go, mean")
    small = 2_000 if setting.quick else NETWORKX_EDGES
    report.add(_row(small, small // 50, 60, setting, np.asarray))
    if not setting.quick:
        for size, rounds in ROUNDS.items():
            report.add(_row(2_000_000, size, rounds, setting, np.asarray))
    report.notes.append("ratio: `expire` to the caller's own deletions (told).")
    return report


def gpu_windows(setting: Setting) -> Report:
    import cupy

    report = Report(
        "gpu-windows", "milliseconds a batch that comes and as many edges that go, mean"
    )
    window, sizes = (20_000, {1000: 20}) if setting.quick else (10_000_000, ROUNDS)
    for size, rounds in sizes.items():
        for near in (np.asarray, cupy.asarray):
            if not setting.out_of_time():
                report.add(_row(window, size, rounds, setting, near, "cuda"))
    if not setting.quick and not setting.out_of_time():
        report.add(_half(10**9))
    return report


def _row(
    window: int, size: int, rounds: int, setting: Setting, near: Callable[[Array], Any],
    device: str = "cpu",
) -> Row:  # fmt: skip
    """One window and one size of batches. near: brings columns to where they are given from."""
    total = window + size * (rounds + WARMUP)
    src, dst = _edges(total)
    makers: dict[str, Callable[[], _Window]] = {
        "told": partial(_Told, device), "expire": partial(_Expiring, device),
    }  # fmt: skip
    if device == "cpu":
        n = int(src.max()) + 1
        makers |= {
            kind.name: partial(_Peer, kind(), n)
            for kind in (Networkit, ScipyCSR)
            if kind in available()
        }
        if window <= NETWORKX_EDGES and find_spec("networkx"):
            makers["networkx"] = _NetworkX
    kept = {name: make() for name, make in makers.items() if setting.wants(name)}
    for one in kept.values():
        one.slide(src[:window], dst[:window], np.arange(window), None, 0)

    def batch(i: int) -> Any:
        come = slice(window + i * size, window + (i + 1) * size)
        go = slice(i * size, (i + 1) * size)
        columns = (src[come], dst[come], np.arange(come.start, come.stop), src[go], dst[go])
        s, d, t, u, v = map(near, columns)
        return s, d, t, (u, v), go.stop

    def kernel(one: _Window) -> Kernel:
        return Kernel(batch, lambda given: one.slide(*given))

    kernels = {name: kernel(one) for name, one in kept.items()}

    def verify(name: str, *_: Any) -> None:
        if kept[name].size() != window:
            raise WrongAnswer(f"{name}: {kept[name].size():,} edges instead of {window:,}")

    clock = on_host if device == "cpu" else on_device
    timings = measure(kernels, verify, rounds=rounds, warmup=WARMUP, clock=clock)
    found = {name: mean(timing.seconds) * 1e3 for name, timing in timings.items()}
    where = "host" if near is np.asarray else "device"
    row: Row = {"window": window, "batch": size, "given from": where}
    row |= {name: found.get(name) for name in ("told", "expire", *PEERS)}
    return row | {"ratio": found.get("expire", NAN) / found.get("told", NAN)}


def _half(edges: int) -> Row:
    """Let half of a large store expire at once."""
    graph = lpma.Graph(device="cuda", weight_dtype=None)
    step = 10**8
    for lo in range(0, edges, step):
        keys = np.arange(lo, lo + step)
        graph.insert((keys >> 4).astype(np.uint32), keys & 15, time=keys % 1000)
    timing = on_device(lambda: graph.expire(500))[0]
    if graph.num_edges != edges // 2:
        raise WrongAnswer(f"{graph.num_edges:,} edges are left")
    return {"window": edges, "batch": edges // 2, "given from": "none", "told": None,
            "expire": timing * 1e3, **dict.fromkeys(PEERS), "ratio": NAN}  # fmt: skip


def _edges(n: int) -> tuple[Array, Array]:
    """n different edges between n / 8 to n / 2 vertices, in no order: a mixing of 0 … n - 1 that
    is one to one."""
    bits = max(4, int(n // 8).bit_length())
    keys = np.arange(n, dtype=np.uint64)
    for factor in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03):
        keys *= np.uint64(factor)
        keys &= np.uint64((1 << 2 * bits) - 1)
        keys ^= keys >> np.uint64(bits)
    src, dst = keys >> np.uint64(bits), keys & np.uint64((1 << bits) - 1)
    return src.astype(np.uint32), dst.astype(np.uint32)


class _Window(Protocol):
    def slide(self, src: Any, dst: Any, time: Any, gone: Any, before: int) -> None:
        """Let edges come, and those go whose time is less than `before`: `gone`, None: none."""
        ...

    def size(self) -> int: ...


class _Told:
    def __init__(self, device: str) -> None:
        self.graph: Any = lpma.Graph(device=device)

    def slide(self, src: Any, dst: Any, time: Any, gone: Any, before: int) -> None:
        self.graph.insert(src, dst, time=time)
        if gone is not None:
            self.graph.delete(*gone)

    def size(self) -> int:
        return int(self.graph.num_edges)


class _Expiring(_Told):
    def slide(self, src: Any, dst: Any, time: Any, gone: Any, before: int) -> None:
        self.graph.insert(src, dst, time=time)
        self.graph.expire(before)


class _Peer:
    def __init__(self, store: Store, n: int) -> None:
        self.store, self.n = store, n

    def slide(self, src: Any, dst: Any, time: Any, gone: Any, before: int) -> None:
        if gone is None:
            self.store.load(src, dst, self.n)
            return
        self.store.insert(self.store.prepare(src, dst))
        self.store.delete(self.store.prepare(*gone))

    def size(self) -> int:
        return len(self.store.to_csr()[1])


class _NetworkX:
    def __init__(self) -> None:
        import networkx

        self.graph: Any = networkx.DiGraph()

    def slide(self, src: Any, dst: Any, time: Any, gone: Any, before: int) -> None:
        edges = zip(src.tolist(), dst.tolist(), time.tolist(), strict=True)
        self.graph.add_weighted_edges_from(edges, "time")
        if gone is not None:
            pairs = zip(*(end.tolist() for end in gone), strict=True)
            self.graph.remove_edges_from(pairs)

    def size(self) -> int:
        return int(self.graph.number_of_edges())
