"""What runs while the power fails, and what must hold afterwards.

A case runs in a child, in the new directory `root` on the disk that fails; what lies beside `root`
survives. It marks each promise as it is given. `check` looks at what is left, with the marks that
came before the cut; it raises AssertionError, or what the code under test raises, where a promise
is broken. Both sides know the same records, drawn from a fixed seed, and everything that runs is
one thread's at a time, so that a case has the same trace whenever it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from tests.support.stream_model import random_records


class Case(Protocol):
    def prepare(self, directory: Path) -> None:
        """Make what lies beside the disk. Both sides may read it."""

    def run(self, directory: Path, root: Path) -> None: ...

    def check(self, directory: Path, root: Path, marks: Sequence[bytes]) -> None: ...


def records(count: int) -> list[bytes]:
    return random_records(np.random.default_rng(16), count)


def told(marks: Sequence[bytes], what: str) -> Iterator[bytes]:
    """What followed the word `what` in marks, in order."""
    for found in marks:
        word, _, rest = found.partition(b" ")
        if word == what.encode():
            yield rest


def last(marks: Sequence[bytes], what: str, default: int = -1) -> int:
    """The last number that was told so."""
    return int([b"%d" % default, *told(marks, what)][-1])


class Ticks:
    """A clock that goes on by 1 ms each time it is looked at."""

    def __init__(self, start: int = 0) -> None:
        self.now = start

    def __call__(self) -> int:
        self.now += 1
        return self.now
