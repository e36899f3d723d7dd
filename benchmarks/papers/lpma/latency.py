"""The time of each of 200 batches, by strategy, expansions marked: the paper's Figures 1 and 9; and
the rebalances of segments that a later round of the same batch does again: Figure 10. *saved* is
the share of bottom-up's rebalanced segments that a strategy avoids."""

from __future__ import annotations

import numpy as np

from ... import plots, workloads
from ...keys import Array
from ...model import Model
from ...report import Report, Setting
from ...stopwatch import Kernel, measure, median
from ...stores.base import Lpma

CONTESTANTS = (
    ("bottom-up", "never"),
    ("top-down", "never"),
    ("hybrid", "never"),
    ("hybrid", "auto"),
)


class _Watched(Lpma):
    """Remembers levels and density after every batch."""

    def __init__(self, strategy: str, global_merge: str) -> None:
        name = f"{strategy}, {global_merge}"
        super().__init__(name, strategy=strategy, global_merge=global_merge)
        self.levels: list[int] = []
        self.density: list[float] = []

    def insert(self, batch: tuple[Array, Array]) -> None:
        super().insert(batch)
        self.levels.append(self.graph.levels)
        self.density.append(self.graph.density)

    def rebalanced(self) -> tuple[int, int]:
        """(segments rebalanced so far, and how many of them again within a batch)."""
        stats = self.graph.stats()
        return int(stats.segments_by_layer.sum()), int(stats.redundant_rebalances)

    def expansions(self) -> list[int]:
        """The batches that ended with more levels than they began with."""
        rises = np.diff(self.levels) > 0
        return [int(i) + 1 for i in np.flatnonzero(rises)]


def latency(setting: Setting) -> Report:
    batches, size = (50, 1_000) if setting.quick else (200, 10_000)
    scale, loaded = (14, 30_000) if setting.quick else (18, 2_100_000)
    report = Report("latency", f"milliseconds of {batches} insert batches of {size:,} edges")
    workload = workloads.rmat(scale, loaded, (batches + 1) * size)
    model = Model(*workload.base())
    stores = [_Watched(*contestant) for contestant in CONTESTANTS]
    for store in stores:
        store.load(*workload.base(), workload.n)
    inserts = [workload.stream(i * size, size) for i in range(batches + 1)]
    for batch in inserts:
        model.insert(*batch)
    by_name = {store.name: store for store in stores}
    before = {store.name: store.rebalanced() for store in stores}
    timings = measure(
        {store.name: _kernel(store, inserts) for store in stores},
        lambda name, _rounds, _result: by_name[name].verify(model.fingerprint),
        rounds=batches,
    )
    of_bottom_up = 0
    for store in stores:
        first = before[store.name]
        moved, redundant = (now - b for now, b in zip(store.rebalanced(), first, strict=True))
        of_bottom_up = of_bottom_up or moved
        ms = np.array(timings[store.name].seconds) * 1e3
        at = store.expansions()
        row = {"strategy, merge": store.name, "median": median(ms.tolist())}
        row |= {"99 %": float(np.quantile(ms, 0.99)), "slowest": float(ms.max())}
        row |= {"slowest/median": float(ms.max() / np.median(ms)), "expansions": len(at)}
        row["slowest expansion"] = float(max((ms[i - 1] for i in at), default=np.nan))
        row |= {"rebalanced": moved, "redundant": redundant}
        report.add(row | {"saved %": 100 * (1 - moved / max(of_bottom_up, 1))})
        report.series[store.name] = ms.tolist()
    report.plots.append(_plot(setting, report, by_name, workload.name))
    return report


def _kernel(store: _Watched, inserts: list[tuple[Array, Array]]) -> Kernel:
    return Kernel(lambda i: store.prepare(*inserts[i]), store.insert)


def _plot(setting: Setting, report: Report, stores: dict[str, _Watched], graph: str) -> str:
    place = {name: list(range(1, len(ms) + 1)) for name, ms in report.series.items()}
    marks = {name: store.expansions() for name, store in stores.items()}
    latency = {name: (place[name], ms) for name, ms in report.series.items()}
    density = {name: (place[name], stores[name].density[1:]) for name in report.series}
    return plots.save(
        setting.folder / "latency.png",
        [
            plots.Panel(
                f"{report.title}, {graph}; lines mark expansions",
                "batch",
                "ms",
                latency,
                log="y",
                points=False,
                marks=marks,
            ),
            plots.Panel("", "batch", "density", density, points=False, marks=marks),
        ],
    )
