"""Values that arguments should not have: of every wrong type and range, and what comes of them."""

from __future__ import annotations

import math
import re
import warnings
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

import lpma
from lpma import LpmaError
from lpma.arrays import to_host


class Hostile:
    """What raises at every look, as a proxy whose other end is gone does."""

    def __repr__(self) -> str:
        raise RuntimeError("gone")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("gone")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("gone")

    __hash__ = None  # type: ignore[assignment]


WRONG: list[Any] = [
    None, "", "no", "auto", "0", b"no", b"", True, False, np.True_, np.False_, -1, 0, 1, 2, 7, 99,
    2**31, 2**63, 2**64, 2**70, -(2**70), 10**5000, 1.0, 1.5, -0.5, math.nan, math.inf, -math.inf,
    np.float32(0.5), np.float64("nan"), np.int8(-1), np.int64(1), np.uint64(2**64 - 1),
    Decimal(1), Fraction(1, 2), 1 + 2j, object(), Hostile(), int, print, lambda: None,
    [], (), {}, set(), {1}, deque([1]), range(0), range(2), [None], [-1], [0], [0, 0], [99], [1.5],
    [2**70], ["b"], ["no", None], [[0]], [[0], [0, 1]], [True], [object()], {0: 1}, {"a": 1.0},
    {"a": "b"}, {None: 1}, {0: [1, 2]}, {0: -1}, {0: math.nan}, (x for x in [1]), iter([]),
    np.array(1), np.array(1.5), np.array("a"), np.array(None), np.array([]), np.array([1, 2]),
    np.array([0.5, 0.5]), np.array(["a", "b"]), np.array([None, 1]), np.array([[1, 2], [3, 4]]),
    np.array([True, False]), np.array([1j]), np.array([b"a"]), np.datetime64("2020-01-01"),
    np.array(["2020-01-01"], "datetime64[s]"), np.ma.array([1, 2], mask=[True, False]),
    np.zeros(2, [("a", int)]), memoryview(b"ab"), bytearray(b"ab"), slice(2), ..., NotImplemented,
    lpma.Graph(device="cpu"),
]  # fmt: skip


def plain(value: Any) -> Any:
    if hasattr(value, "indptr"):
        return plain((value.indptr, value.indices, value.present))
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    return to_host(value).tolist() if hasattr(value, "dtype") else value


def outcome(call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What comes back, plainly; or the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(call(*given, **named))
    except Exception as error:  # noqa: BLE001 - it is judged
        return error


def refused(error: BaseException, name: str) -> bool:
    """Whether this is an error of ours whose message begins with the argument's name."""
    said = re.match(r"([\w, ]+?)(:| is )", str(error))
    return isinstance(error, LpmaError) and said is not None and name in said[1].split(", ")
