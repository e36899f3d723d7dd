"""What a single argument is, where Python would take almost anything."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np


def is_whole(value: Any) -> bool:
    """Whether this is an integer, Python's or NumPy's; a boolean is none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    """Whether this is a real number, Python's or NumPy's; a boolean is none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_truth(value: Any) -> bool:
    """Whether this is True or False, Python's or NumPy's."""
    return isinstance(value, bool | np.bool_)
