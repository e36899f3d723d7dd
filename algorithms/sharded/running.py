"""Runs a program on all workers of a graph: what a driver does, which is next to nothing.

Whatever is to be decided, the workers decide themselves, each from what all of them said.
"""

from __future__ import annotations

import secrets
from typing import Any

from .types import Control, Workers


def run(workers: Workers, program: str, num_rows: int, **params: Any) -> list[Any]:
    """What a program came to, of each worker. num_rows: of the whole graph."""
    control = Control(secrets.token_hex(8), [])
    workers.begin(program, {"run": control.run, "num_rows": num_rows, **params})
    while True:
        control = Control(control.run, workers.step(control))
        ended = [is_done for is_done, _ in control.said]
        if all(ended):
            return workers.results()
        assert not any(ended), "workers end a program in the same superstep"
