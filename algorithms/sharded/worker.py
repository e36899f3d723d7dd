"""A worker: at its shard, it holds one part and runs its side of a program.

A program is a generator (`types`). The worker resumes it once a superstep, on the part's device,
with the messages brought there; it waits for the device before it hands out messages, so that
whoever receives them may copy them at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lpma.arrays import device_of, finish
from lpma.errors import BatchError
from lpma.names.forms import Form
from lpma.snapshot.snapshot import Snapshot

from .held import Held
from .messages import brought
from .naming import ColumnsOf
from .parquet import described, file_name
from .programs import PROGRAMS, begun
from .types import Control, Facts, Messages, Overtaken, Part, Steps


class Worker:
    """Holds a part, and what algorithms derive from it: views are exchanged once and kept.

    Not for use from two threads at once.

    >>> graph = lpma.Graph(device="cpu")
    >>> graph.insert([0, 0, 1], [1, 2, 2])
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
        self._held = Held(part)
        self._steps: Steps | None = None
        self._run: str | None = None
        self._is_begun = False
        self._result: Any = None

    @property
    def part(self) -> Part:
        """The part, as it is by now: `number_names` puts another in its place."""
        return self._held.part

    def facts(self) -> Facts:
        """What there is to know of the part without its arrays."""
        return self._held.facts()

    def begin(self, program: str, params: dict[str, Any]) -> None:
        """Begin a program. params: its arguments; `num_rows`, how many rows the whole graph has;
        and `run`, what the steps' controls say. Raises BatchError on an unknown one."""
        if program not in PROGRAMS:
            raise BatchError(f"program {program!r}: choose one of {', '.join(PROGRAMS)}")
        arguments = dict(params)
        self._run = arguments.pop("run", None)
        self._held.widen(arguments.pop("num_rows"))
        self._steps, self._result = begun(self._held, program, arguments), None
        self._is_begun = False

    def step(self, control: Control, inbox: Messages) -> tuple[Messages, Any]:
        """One superstep. inbox: what each worker sent to this one. Returns what it sends to each,
        and (is_done, value). Raises Overtaken if another run was begun meanwhile."""
        if self._steps is None or control.run != self._run:
            raise Overtaken("another program was begun on this graph: begin this one again")
        part = self._held.part
        with device_of(part.indptr):
            try:
                if self._is_begun:
                    values = [value for _, value in control.said]
                    outbox, value = self._steps.send((brought(part.indptr, inbox), values))
                else:
                    self._is_begun = True
                    outbox, value = next(self._steps)
            except StopIteration as end:
                self._result, self._steps = end.value, None
                return [None] * part.shards, (True, None)
            finish(part.indptr)
        return outbox, (False, value)

    def write_parquet(self, directory: str, num_rows: int, form: Form | None) -> dict[str, Any]:
        """Write this part's file: see parquet.py. form: of the columns of names; None without
        names. Returns what the manifest says of it."""
        held = self._held
        held.widen(num_rows)
        part = held.part
        names: Any = None if form is None else ColumnsOf(held.known, form)
        table = Snapshot._trusted(
            part.indptr, part.indices, part.weights, part.times, len(part.indices), part.version,
            part.time, part.directed, added=part.added, names=names,
        )  # fmt: skip
        path = Path(directory) / file_name(part.shard, part.shards)
        with device_of(part.indptr):
            table.write_parquet(path)
        return described(path)

    def result(self) -> Any:
        """What the last program came to here. Arrays lie on the host."""
        return self._result
