"""Columns of results as a file: arrays (.npz) or lines of text (.csv)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.files import atomic_write

Array = npt.NDArray[Any]

CHUNK_ROWS = 1 << 18


def write(path: str | os.PathLike[str], columns: dict[str, Array]) -> None:
    """Columns of one length, by name: a NumPy archive, or a line of names and a line a row, with
    as many digits as bring back the same number. Raises PathError."""
    with atomic_write(path) as file:
        if Path(path).suffix == ".npz":
            np.savez(file, allow_pickle=False, **columns)
            return
        file.write((",".join(columns) + "\n").encode())
        length = len(next(iter(columns.values())))
        for first in range(0, length, CHUNK_ROWS):
            rows = zip(
                *(column[first : first + CHUNK_ROWS].tolist() for column in columns.values()),
                strict=True,
            )
            file.writelines((",".join(map(repr, row)) + "\n").encode() for row in rows)
