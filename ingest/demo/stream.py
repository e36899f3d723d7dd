"""The demo's stream: a real one if it is on this machine, else the messages of a made-up town."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lpma.batch.columns import Columns

from .. import datasets
from ..datasets import generators
from ..datasets.cache import Progress as Progress
from ..types import Name
from .town import MESSAGES, Circle, make_town

REAL = "sx-mathoverflow"
DELETIONS = 0.05  # share of the operations
DAYS = 90  # the real stream's window; its times are in seconds
CORE = 23  # that few of its windows reach
WINDOW = 0.05  # the town's window, as a share of its stream

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Watch:
    """A sliding window, and a rule about the core numbers in it. width: in the unit of the stream's
    times. called: the window in words. batch_size: operations after which it slides, at the
    latest."""

    width: int
    called: str
    rule: str
    batch_size: int


@dataclass(frozen=True)
class DemoStream:
    """Operations on edges, in time order.

    called: what the stream is, in words. names: what each id of `columns` goes by, integers or
    str. watch: what is looked for in it as it comes. circles: who was planted to be close to whom,
    committee: who was for a while; none in a real stream."""

    called: str
    columns: Columns
    names: npt.NDArray[np.generic]
    watch: Watch
    circles: Sequence[Circle] = ()
    committee: Circle | None = None

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def generated(self) -> bool:
        return bool(self.circles)

    def name(self, id: int) -> Name:
        """What one id goes by."""
        name: Name = self.names[[id]].tolist()[0]
        return name


def choose_stream(
    tell: Tell, progress: Progress | None = None, operations: int | None = None, seed: int = 1
) -> DemoStream:
    """The demo's stream: as many interactions as `operations`, or all if None, and deletions."""
    if datasets.find(REAL) is not None:
        appends = datasets.load(REAL, download=False, progress=progress).columns()
        tell(f"stream: {REAL}, {len(appends):,} interactions between users (SNAP)")
        if operations is not None:
            appends = appends.rows(0, min(operations, len(appends)))
        called, circles, committee = REAL, [], None
        names: npt.NDArray[np.generic] = np.arange(
            1 + int(max(appends.src.max(), appends.dst.max()))
        )
    else:
        town = make_town(MESSAGES if operations is None else operations, seed)
        appends, names, circles = town.messages, town.names, town.circles
        committee = town.committee
        called = "messages in a made-up town"
        tell(
            f"stream: {len(appends):,} {called}, between {len(names):,} people, most within one of "
            f"{len(circles)} circles ({REAL} is used where LPMA_DATA has it)"
        )
    mixed = generators.with_deletions(appends, DELETIONS, seed=seed)
    tell(
        f"        nothing is deleted in it: {len(mixed) - len(appends):,} deletions of earlier "
        f"edges are mixed in (seed {seed})"
    )
    watch = _watch(mixed, committee)
    return DemoStream(called, mixed, names, watch, circles, committee)


def _watch(columns: Columns, committee: Circle | None) -> Watch:
    """In a town: a rule that the committee fulfils when it meets, even if some of its messages are
    deleted, and nobody else."""
    batch_size = max(100, len(columns) // 100)
    if committee is None:
        return Watch(DAYS * 86_400, f"{DAYS} days", f"core >= {CORE}", batch_size)
    assert columns.time is not None
    width_ms = int(WINDOW * int(columns.time[-1] - columns.time[0]))
    rule = f"core >= {round(0.6 * len(committee.members))}"
    width_s = width_ms / 1000
    called = f"{width_s / 60:.0f} minutes" if width_s >= 120 else f"{width_s:.3g} seconds"
    return Watch(width_ms, called, rule, batch_size)
