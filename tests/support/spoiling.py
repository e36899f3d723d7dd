"""Writing to whatever an answer is made of: see `spoil`."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

import lpma
from lpma.arrays import on_device, to_host

SNAPSHOT = ("indptr", "indices", "weights", "times", "ids", "added", "present")


def arrays_in(answer: Any) -> list[Any]:
    """All arrays of an answer: of tuples, lists, dictionaries, dataclasses and snapshots, too."""
    if isinstance(answer, np.ndarray) or on_device(answer):
        return [answer]
    parts: list[Any] = []
    if isinstance(answer, lpma.Snapshot):
        parts = [getattr(answer, name) for name in SNAPSHOT]
    elif isinstance(answer, list | tuple):
        parts = list(answer)
    elif isinstance(answer, dict):
        parts = list(answer.values())
    elif is_dataclass(answer):
        parts = [getattr(answer, field.name) for field in fields(answer)]
    return [array for part in parts for array in arrays_in(part)]


def spoil(answer: Any) -> None:
    """Write something else to every array of an answer that can be written to."""
    for array in arrays_in(answer):
        if on_device(array) or array.flags.writeable:
            array[...] = 0 if array.dtype == np.bool_ else 1


def plain(answer: Any) -> Any:
    """An answer's arrays as lists, to be compared."""
    return [np.asarray(to_host(array)).tolist() for array in arrays_in(answer)]
