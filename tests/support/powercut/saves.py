"""`Graph.save` under power cuts: the old file whole, or the new one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import lpma

from .cases import last
from .trace import mark

COUNT = 6


class Save:
    def prepare(self, directory: Path) -> None:
        """The versions, as they are when nothing fails: equal graphs make equal files."""
        graph = lpma.Graph(device="cpu", segment_size=8)
        for number in range(COUNT):
            graph.insert(range(300 * number), range(1, 300 * number + 1))
            graph.save(directory / f"version{number}.lpma")

    def run(self, directory: Path, root: Path) -> None:
        for number in range(COUNT):
            graph = lpma.Graph.load(directory / f"version{number}.lpma", "cpu")
            mark(b"saving %d" % number)
            graph.save(root / "graph.lpma")
            mark(b"saved %d" % number)

    def check(self, directory: Path, root: Path, marks: Sequence[bytes]) -> None:
        path = root / "graph.lpma"
        saved, saving = last(marks, "saved"), last(marks, "saving")
        if saved < 0 and not path.exists():
            return
        found = path.read_bytes()
        versions = [(directory / f"version{n}.lpma").read_bytes() for n in range(COUNT)]
        assert found in versions[max(saved, 0) : saving + 1], "neither the old file nor the new"
