"""Arguments that there is no memory to convert: OutOfMemory before anything is changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from .errors import OutOfMemory

Given = ParamSpec("Given")
Made = TypeVar("Made")


def within_memory(convert: Callable[Given, Made]) -> Callable[Given, Made]:
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
