"""Columns of names as files of typed columns take them: Arrow, Parquet, NumPy's archives.

Idea: a column has one type, and names may be integers and text. Integers that one type holds are
one column, and text is one; if some are integers, or too far apart for one type, these stand in it
in decimals, and a second column, bool, named like the first with "_number" appended, says which."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..arrays import Array
from .column import NEGATIVE, TEXT, UNSIGNED

Form = Literal["uint32", "uint64", "int64", "text", "mixed"]  # of a column of names


def form_of_keys(kinds: Array, keys: Array) -> Form:
    """The form of a column that may hold any of these names: see table.py."""
    of_text = kinds == TEXT
    if bool(of_text.any()):
        return "text" if bool(of_text.all()) else "mixed"
    if not bool((kinds == NEGATIVE).any()):
        return "uint64"
    large = bool((keys[kinds == UNSIGNED] >> np.uint64(63)).any())
    return "mixed" if large else "int64"


def flattened(name: str, column: Array, form: Form | None = None) -> dict[str, Array]:
    """A column of names as columns of one type each. form: that of all names, if these are only
    some; None: these are all. Text is objects, each a str."""
    if form is None and column.dtype != object:
        return {name: column}
    if form in ("uint32", "uint64", "int64"):
        return {name: column.astype(form, copy=False)}
    items = column.tolist()
    texts = np.empty(len(items), object)
    texts[:] = [str(item) for item in items]
    numbers = np.fromiter((isinstance(item, int) for item in items), bool, len(items))
    if form == "text" or (form is None and not numbers.any()):
        return {name: texts}
    return {name: texts, f"{name}_number": numbers}
