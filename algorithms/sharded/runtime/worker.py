"""A worker: holds one shard's part and runs its side of a program.

A program is a generator (`types`). The worker resumes it once a superstep, on the part's device,
with the messages moved there, and waits for the device before it returns messages, so that
receivers may copy them at once.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lpma.arrays import array_module, device_of, finish, on_device, to_host
from lpma.errors import BatchError
from lpma.names.forms import Form
from lpma.snapshot.snapshot import Snapshot
from lpma.time_view import LEAST, TimeView

from ...arrays import Array
from ..parquet import described, file_name
from ..programs import PROGRAMS, begun
from .state import ShardState
from .types import Control, Facts, Messages, Part, ProgramPreempted, Steps, part_in_view, times_of


class Worker:
    """Holds a part, and what is derived from it. Programs run on all of it, or on what of it is in
    a view in time, of which the last one is kept. Not for use from two threads at once.

    >>> graph = lpma.from_edges([0, 0, 1], [1, 2, 2], device="cpu")
    >>> worker = algorithms.sharded.Worker(algorithms.sharded.Part.of(graph.snapshot(), 0, 1))
    >>> worker.begin("degrees", {"num_rows": 3})
    >>> is_done, said = False, []
    >>> while not is_done:
    ...     control = algorithms.sharded.Control(None, said)
    ...     messages, (is_done, value) = worker.step(control, [None])
    ...     said = [(is_done, value)]
    >>> worker.result().tolist()
    [2, 1, 0]
    """

    def __init__(self, part: Part) -> None:
        self._state = self._whole = ShardState(part)
        self._viewed: tuple[TimeView, ShardState] | None = None
        self._steps: Steps | None = None
        self._run: str | None = None
        self._is_begun = False
        self._result: Any = None

    @property
    def part(self) -> Part:
        """The part, which `number_names` replaces by another."""
        return self._whole.part

    def facts(self, view: TimeView | None = None) -> Facts:
        """A summary of the part, or what of it is in a view, without its arrays."""
        return self._in(view).facts()

    def newest(self, view: TimeView) -> int:
        """The newest time of an edge in a view; that of none is the earliest there is."""
        times = times_of(self._whole.part)
        with device_of(times):
            held = times[view.holds(times)]
            return int(held.max()) if len(held) else LEAST

    def _in(self, view: TimeView | None) -> ShardState:
        """What programs see that run on a view; None: on the whole part."""
        if view is None:
            return self._whole
        if self._viewed is None or self._viewed[0] != view:
            self._viewed = None  # its memory may be needed
            state = ShardState(part_in_view(self._whole.part, view))
            state.numbered, state.known = self._whole.numbered, self._whole.known
            self._viewed = view, state
        return self._viewed[1]

    def begin(self, program: str, params: dict[str, Any]) -> None:
        """Begin a program. params: its arguments; `num_rows`, of the whole graph; `run`, as in the
        steps' controls; and `view`, which of its edges are seen. Raises BatchError on an unknown
        program."""
        if program not in PROGRAMS:
            raise BatchError(f"program {program!r}: choose one of {', '.join(PROGRAMS)}")
        arguments = dict(params)
        self._run = arguments.pop("run", None)
        self._state = self._in(arguments.pop("view", None))
        if program == "number_names":
            self._viewed = None  # the rows become others
        self._state.widen(arguments.pop("num_rows"))
        self._steps, self._result = begun(self._state, program, arguments), None
        self._is_begun = False

    def step(self, control: Control, inbox: Messages) -> tuple[Messages, Any]:
        """One superstep. inbox: a message from each worker. Returns a message to each, and
        (is_done, value). Raises ProgramPreempted if another run was begun meanwhile."""
        if self._steps is None or control.run != self._run:
            raise ProgramPreempted("another program was begun on this graph: begin this one again")
        part = self._state.part
        with device_of(part.indptr):
            try:
                if self._is_begun:
                    values = [value for _, value in control.said]
                    outbox, value = self._steps.send((_moved(part.indptr, inbox), values))
                else:
                    self._is_begun = True
                    outbox, value = next(self._steps)
            except StopIteration as end:
                self._result, self._steps = end.value, None
                return [None] * part.shards, (True, None)
            finish(part.indptr)
        return outbox, (False, value)

    def write_parquet(
        self, directory: str, num_rows: int, form: Form | None, view: TimeView | None = None
    ) -> dict[str, Any]:
        """Write this part's file, or what of it is in a view, and return its entry in the manifest:
        see parquet.py. form: of the columns of names; None without names."""
        state = self._in(view)
        state.widen(num_rows)
        part = state.part
        names = None if form is None else replace(state.known, form=form)
        table = Snapshot._trusted(
            part.indptr, part.indices, part.weights, part.times, len(part.indices), part.version,
            part.time, part.directed, added=part.added, names=names, left=part.left,
        )  # fmt: skip
        path = Path(directory) / file_name(part.shard, part.shards)
        with device_of(part.indptr):
            table.write_parquet(path)
        return described(path)

    def result(self) -> Any:
        """The result of the last program here. Arrays lie on the host."""
        return self._result


def _moved(near: Array, messages: Messages) -> Messages:
    """The same messages on the device of `near`, which REQUIRES to be the current one."""
    return [None if one is None else tuple(_to(near, array) for array in one) for one in messages]


def _to(near: Array, array: Array) -> Array:
    if not on_device(near):
        return np.asarray(to_host(array))
    if on_device(array):  # CuPy copies to the current device
        return array if array.device == near.device else array.copy()
    copied: Array = array_module(near).asarray(array)
    return copied
