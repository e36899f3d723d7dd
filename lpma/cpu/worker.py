"""A process that compiles kernels for another one, which hands them over: see compiling.py.

Each line on stdin is an entry of a list of kernels (manifest.py); the answer is a line on stdout,
empty or what went wrong. The process ends when stdin does.
"""

from __future__ import annotations

import os
import sys

from .jit import telling
from .manifest import parse


def main() -> None:
    os.nice(int(sys.argv[1]))
    telling.silent = True
    for line in sys.stdin:
        entry = parse(line.rstrip("\n"))
        try:
            entry.compile()
            wrong = ""
        except Exception as error:  # noqa: BLE001 - whatever Numba raises, the other is told
            wrong = f"{type(error).__name__}: {error}".replace("\n", " ")
        print(wrong, flush=True)


if __name__ == "__main__":
    main()
