"""Columns of results as a file: arrays (.npz) or lines of text (.csv)."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.errors import BatchError
from lpma.file.atomic import atomic_write
from lpma.names.forms import flattened

from ...state.vertex_names import Called

Array = npt.NDArray[Any]

CHUNK_ROWS = 1 << 18


def write(path: str | os.PathLike[str], columns: dict[str, Array | Called]) -> None:
    """Columns of one length, by name: a NumPy archive, or a line of names and a line for each row,
    with enough digits to read back the same number. Lines always have text, which names vertices,
    in quotes, and integers never; `flattened` says how an archive holds them. Raises PathError,
    BatchError on text that an archive cannot hold."""
    if Path(path).suffix == ".npz":
        archive: dict[str, Any] = {name: _plain(part) for name, part in _flattened(columns).items()}
        with atomic_write(path) as file:
            np.savez(file, **archive)
        return
    with atomic_write(path) as file:
        file.write((",".join(columns) + "\n").encode())
        length = len(next(iter(columns.values())))
        for first in range(0, length, CHUNK_ROWS):
            rows = zip(
                *(column[first : first + CHUNK_ROWS].tolist() for column in columns.values()),
                strict=True,
            )
            lines = io.StringIO(newline="")
            csv.writer(lines, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerows(rows)
            file.write(lines.getvalue().encode())


def _flattened(columns: dict[str, Array | Called]) -> dict[str, Array]:
    whole = {name: column[:] for name, column in columns.items()}
    parts = [flattened(name, c) if c.dtype == object else {name: c} for name, c in whole.items()]
    return {name: column for part in parts for name, column in part.items()}


def _plain(column: Array) -> Array:
    """Text as NumPy holds it in a file, which drops NULs at its end: nothing is pickled."""
    if column.dtype != object:
        return column
    for text in column.tolist():
        if text.endswith("\0"):
            raise BatchError(f"{text!r}: an .npz cannot hold a name that ends with NUL: use .csv")
    return column.astype(np.str_)
