"""Runs a program on all workers of a graph: what a driver does, which is next to nothing.

Whatever is to be decided, the workers decide themselves, each from what all of them said.
"""

from __future__ import annotations

from typing import Any

from .types import Workers


def run(workers: Workers, program: str, num_rows: int, **params: Any) -> list[Any]:
    """What a program came to, of each worker. num_rows: of the whole graph."""
    workers.begin(program, {"num_rows": num_rows, **params})
    control = None
    while True:
        control = workers.step(control)
        ended = [is_done for is_done, _ in control]
        if all(ended):
            return workers.results()
        assert not any(ended), "workers end a program in the same superstep"
