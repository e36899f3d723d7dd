"""What a kernel returns becomes Python's without a line of Python's in between, so that a signal
that came while it ran is delivered where the kernel was called: see lpma/cpu/boxing.py."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import types
from numba.core.caching import NullCache

from lpma.cpu.jit import compiled

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")

SIGINT = int(signal.SIGINT)
_press = types.ExternalFunction("raise", types.intc(types.intc))


class Pair(NamedTuple):
    first: Any
    second: Any


def array(n: int) -> Any:
    _press(SIGINT)
    return np.ones(n, np.int32)


def arrays(n: int) -> Any:
    _press(SIGINT)
    return np.ones(n, np.int32), n, np.ones(n, np.float64)


def named(n: int) -> Any:
    _press(SIGINT)
    return Pair(np.ones(n, np.uint8), n)


def number(n: int) -> Any:
    _press(SIGINT)
    return n


def given(n: Any) -> Any:
    _press(SIGINT)
    return n


def error(n: int) -> Any:
    _press(SIGINT)
    if n > 2:
        raise ValueError("three")
    return n


CASES: dict[Callable[..., Any], Any] = {
    array: 3, arrays: 3, named: 3, number: 3, given: np.ones(3), error: 2,
}  # fmt: skip


@pytest.fixture
def handler() -> Iterator[None]:
    """Ctrl-C as Python has it, whatever whoever runs the tests does with it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def made(function: Callable[..., Any]) -> Any:
    """The kernel, compiled anew: what was kept on disk is of other sources of ours."""
    kernel = compiled(function)
    kernel._cache = NullCache()
    return kernel


@pytest.mark.parametrize("function", CASES)
def test_a_signal_within_a_kernel_interrupts_its_caller(
    function: Callable[..., Any], handler: None
) -> None:
    kernel, argument = made(function), CASES[function]
    for _ in range(3):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        kernel(argument)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            kernel(argument)


def test_a_signal_before_an_error_within_a_kernel_interrupts_too(handler: None) -> None:
    kernel = made(error)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(ValueError, match="three"):
        kernel(3)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        kernel(3)


def test_results_have_their_types(handler: None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pair = made(named)(2)
    assert type(pair) is Pair
    assert type(pair.first) is np.ndarray
    assert pair.first.dtype == np.uint8
    first, n, last = made(arrays)(2)
    assert (first.dtype, n, last.dtype) == (np.int32, 2, np.float64)
    same = np.ones(2)
    assert made(given)(same) is same
