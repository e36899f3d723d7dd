"""The windows of a store's last plan, wherever it was made: a spy on the way to the backend."""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.backend.numba.located import reported_plan
from lpma.backend.numba.rebalance import ROLLED
from lpma.backend.values import Committed
from lpma.store.lpma import LPMA
from tests.support.oracles import host


class PlanSpy:
    """Sees each plan that a store's backend makes from now on."""

    def __init__(self, store: LPMA) -> None:
        self.store = store
        self.plan: Any = None  # the last; None after a global merge, or a batch that moved nothing
        self._watch("locate", self._none_yet)
        if hasattr(store.backend, "outcome"):
            self._watch("outcome", self._learnt)
        else:
            self._watch("apply_at_once", self._applied)
        self._watch("plan", self._planned)
        self._watch("rebuild", self._none_yet)

    def _watch(self, name: str, note: Any) -> None:
        backend = self.store.backend
        method = getattr(backend, name, None)
        if method is None:
            return  # it has no way of its own for small batches

        def watched(*arguments: Any) -> Any:
            result = method(*arguments)
            note(result, *arguments)
            return result

        setattr(backend, name, watched)

    def _planned(self, plan: Any, *_: Any) -> None:
        self.plan = plan

    def _none_yet(self, *_: Any) -> None:
        self.plan = None

    def _learnt(self, result: Any, launched: Any, *_: Any) -> None:
        """A device has planned a batch by itself."""
        self.plan = None
        if isinstance(result, Committed) and result.tally.touched:
            from lpma.backend.cuda.update import launch_block, located

            store: Any = self.store
            mailbox = store.backend.fused.block.mailboxes[launched.ticket & 1]
            report = mailbox.words.tolist()[launch_block.HEAD :]
            self.plan = located.DevicePlan(launched.strategy, report)

    def _applied(self, result: Any, *_: Any) -> None:
        self.plan = None
        if isinstance(result, Committed):
            work: Any = getattr(self.store.backend, "workspace")  # noqa: B009
            self.plan = reported_plan(work, work.report.tolist())

    def windows(self) -> list[tuple[int, int]]:
        """(window, layer) of each window that the last plan names; none after a global merge."""
        plan, store = self.plan, self.store
        if plan is None:
            return []
        if hasattr(plan, "window"):
            leaves = (1 << store.segments.m) + plan.touched.rank[plan.touched.flags & ROLLED == 0]
            larger = zip(plan.window.tolist(), plan.layer.tolist(), strict=True)
            return [(leaf, 0) for leaf in leaves.tolist()] + list(larger)
        store.backend.wait()
        m = store.segments.m
        leaves = self._column("touched", plan.num_touched)
        layers = self._column("layer", plan.num_touched, np.uint8)
        windows = [((1 << m) + int(leaf), 0) for leaf in leaves[layers == 0]]
        for window in self._column("window", plan.num_windows):
            windows.append((int(window), m + 1 - int(window).bit_length()))
        return windows

    def _column(self, name: str, n: int, dtype: Any = np.uint32) -> Any:
        """The first entries of a column of a device's work buffers."""
        backend: Any = self.store.backend
        work = backend.work
        at = int(work.record[name]) - work._buffer.data.ptr
        return host(work._buffer[at : at + n * np.dtype(dtype).itemsize].view(dtype))
