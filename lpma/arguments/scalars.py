"""Single arguments, admitted: what a caller gives comes out as the one type that the code behind
takes, or a BatchError says which argument is wrong and what it should be.

Python would take almost anything: True for 1, "no" for true, 2**70 where a machine word is meant.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from functools import wraps
from numbers import Real
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..errors import BatchError, OutOfMemory

SHOWN = 60  # characters of a value in a message


def is_integer(value: Any) -> bool:
    """Whether this is an integer, Python's or NumPy's; no boolean, and no span of time."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def is_real(value: Any) -> bool:
    """Whether this is a real number, Python's or NumPy's; a boolean is none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_bool(value: Any) -> bool:
    """Whether this is True or False, Python's or NumPy's."""
    return isinstance(value, bool | np.bool_)


def shown(value: Any) -> str:
    """A value as messages show it: short, whatever it is.

    >>> shown("no"), shown(10**5000)
    ("'no'", 'an int')
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - of any class; and of an integer with too many digits
        text = ""
    if 0 < len(text) <= SHOWN and "\n" not in text:
        return text
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def integer(value: Any, name: str, least: int, most: int | None = None) -> int:
    """An integer from `least` on, up to `most` if that is given. Raises BatchError."""
    if is_integer(value) and least <= value and (most is None or value <= most):
        return int(value)
    wanted = f"from {least} on" if most is None else f"from {least} to {most}"
    raise BatchError(f"{name}: an integer {wanted}, not {shown(value)}")


def limit(value: Any, name: str, least: int, most: int) -> int:
    """An integer from `least` on; those above `most` mean the same as `most`. Raises BatchError."""
    return min(integer(value, name, least), most)


def number(value: Any, name: str, least: float, most: float = math.inf) -> float:
    """A real number from `least` to `most`. Raises BatchError, also for NaN."""
    if is_real(value) and least <= value <= most:
        try:
            return float(value)
        except OverflowError:  # an integer beyond all floats
            pass
    wanted = f"{least:g} or more" if most == math.inf else f"from {least:g} to {most:g}"
    raise BatchError(f"{name}: a number, {wanted}, not {shown(value)}")


def truth(value: Any, name: str) -> bool:
    """True or False. Raises BatchError."""
    if not is_bool(value):
        raise BatchError(f"{name}: True or False, not {shown(value)}")
    return bool(value)


def choice(value: Any, name: str, words: Iterable[str]) -> str:
    """SingleOperations of several words. Raises BatchError."""
    known = list(words)
    if not isinstance(value, str) or value not in known:
        raise BatchError(f"{name}: choose one of {', '.join(known)}, not {shown(value)}")
    return str(value)


def path(value: Any, name: str) -> str | bytes:
    """A path of the file system. Raises BatchError."""
    if not isinstance(value, str | bytes | os.PathLike):
        raise BatchError(f"{name}: a path, not {shown(value)}")
    return os.fspath(value)


def key(value: Any, name: str) -> Any:
    """A key of another library's attributes or columns, or None. Raises BatchError."""
    try:
        hash(value)
    except Exception as error:
        raise BatchError(f"{name}: what one is called, not {shown(value)}") from error
    return value


def function(value: Any, name: str, takes: str) -> Callable[..., Any] | None:
    """A function, or None for none. takes: what it is called with. Raises BatchError."""
    if value is not None and not callable(value):
        raise BatchError(f"{name}: a function of {takes}, or None, not {shown(value)}")
    given: Callable[..., Any] | None = value
    return given


Given = ParamSpec("Given")
Made = TypeVar("Made")


def raises_out_of_memory(convert: Callable[Given, Made]) -> Callable[Given, Made]:
    """`convert`, which raises OutOfMemory for any MemoryError."""

    @wraps(convert)
    def call(*args: Given.args, **named: Given.kwargs) -> Made:
        try:
            return convert(*args, **named)
        except OutOfMemory:
            raise
        except MemoryError as error:
            raise OutOfMemory(
                f"what was given cannot be converted ({error}): give less at once, or free memory"
            ) from error

    return call
