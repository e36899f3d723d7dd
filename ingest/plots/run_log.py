"""What a run did, batch by batch, as JSON lines: written as it goes, read by plots.

    line := a JSON object: the fields of `BatchStats`, then "levels" and "expansions" of the graph
            after the batch

A line is written whole after its batch. A process killed while it writes leaves half a line at the
end, which is skipped in reading and kept apart from the next run's first line.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lpma.errors import FormatError

from ..settings import BatchStats
from ..types import Array, Closing

_FIELDS = ("operations", "seconds", "num_edges", "density", "levels")  # what plots need


class _Counted(Protocol):
    @property
    def levels(self) -> int: ...
    def stats(self) -> Any: ...


class RunLog(Closing):
    """Appends to the file `path`; pass it as `progress` to `Pipeline.run`."""

    def __init__(self, path: str | os.PathLike[str], graph: _Counted) -> None:
        self._graph = graph
        self._file = open(path, "a+b")  # noqa: SIM115  (closed by close)
        if self._file.tell():
            self._file.seek(-1, os.SEEK_END)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")

    def __call__(self, batch: BatchStats) -> None:
        graph = self._graph
        line = {
            **asdict(batch),
            "levels": graph.levels,
            "expansions": graph.stats().expansions,
        }
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def read_run(path: str | os.PathLike[str]) -> dict[str, Array]:
    """The columns of a run's file: one array a field, one row a batch.

    Raises FormatError if the file is something else, or empty."""
    rows: list[dict[str, Any]] = []
    lines = Path(path).read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            if line.startswith(b"{"):
                continue  # half a line, left by a kill
            raise FormatError(f"{path}: line {number} is not JSON: not a run's file") from error
        if not isinstance(row, dict) or not set(_FIELDS) <= set(row):
            raise FormatError(f"{path}: line {number} is not a batch: not a run's file")
        rows.append(row)
    if not rows:
        raise FormatError(f"{path}: it holds no batch: was anything ingested?")
    return {field: np.array([row.get(field, 0) for row in rows]) for field in rows[0]}
