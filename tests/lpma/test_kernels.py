"""How kernels are compiled: parts that are linked in, calls by address, arrays given by id()."""

from __future__ import annotations

import gc
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit, types
from numba.core.errors import TypingError

from lpma.arrays import address
from lpma.cpu.calls import ByAddress, record_type
from lpma.cpu.instructions import data, data_if_any, load_i64
from lpma.cpu.jit import compiled, inlined
from lpma.cpu.linked_functions import plainly_typed

Array = Any


class Pair(NamedTuple):
    first: int
    second: int


def _collatz(n: int, most: int) -> int:
    steps = 0
    while n != 1 and steps < most:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


_part = inlined(_collatz)


@inlined
def _sum(values: Array, pair: Pair) -> int:
    total = 0
    for value in values[pair.first : pair.second]:
        total += _part(value, 1000)
    return total


@compiled
def _kernel(values: Array, pair: Pair) -> int:
    return _sum(values, pair) + _part(27, 5) + _part(values[0], pair.second)


@compiled
def _fill(values: Array, first: int, pair: Pair) -> int:
    for i in range(len(values)):
        values[i] = first + i
    return pair.first + pair.second


_fill_at = ByAddress(_fill, types.int64, types.int64[::1], types.int64, record_type(Pair))
_call_fill = _fill_at.call


@compiled
def _filled(n: int, fill_at: int) -> tuple[Array, int]:
    values = np.empty(n, np.int64)
    total = _call_fill(fill_at, values, 7, Pair(1, n))
    return values, total


def test_parts_do_what_they_do_compiled_by_themselves() -> None:
    values, plain = np.arange(1, 60, dtype=np.int32), njit(_collatz)
    expected = sum(plain(int(n), 1000) for n in values[3:50])
    assert _kernel(values, Pair(3, 50)) == expected + plain(27, 5) + plain(1, 50)


def recompile() -> None:
    """Compile the kernel for what it was called with, whatever is in the cache."""
    _kernel(np.arange(1, 60, dtype=np.int32), Pair(3, 50))
    _kernel.recompile()


def test_a_part_is_compiled_once_whatever_it_is_called_with() -> None:
    """With an int32, an int64 and a literal. Its callers may come from the cache: then it is not
    compiled at all."""
    recompile()
    assert list(_part.overloads) == [(types.int64, types.int64)]


def test_a_part_has_no_machine_code() -> None:
    recompile()
    (made,) = _part.overloads.values()
    assert made.library.get_pointer_to_function(made.fndesc.llvm_func_name) == 0


def test_a_call_by_address_converts_its_arguments_and_keeps_no_array() -> None:
    values, total = _filled(5, _fill_at.address)
    assert values.tolist() == [7, 8, 9, 10, 11]
    assert total == 6
    assert list(_fill.overloads) == [_fill_at.takes]
    assert _fill(values, 0, Pair(2, 3)) == 5  # Python finds the same
    assert list(_fill.overloads) == [_fill_at.takes]


def test_an_address_with_another_return_type_is_refused() -> None:
    with pytest.raises(TypeError, match="returns int64"):
        _ = ByAddress(_fill, types.float64, *_fill_at.takes).address


def test_a_call_with_arguments_missing_does_not_compile() -> None:
    call = _fill_at.call

    @njit
    def wrong(fill_at: int) -> int:
        return call(fill_at, 1)

    with pytest.raises(TypeError, match="missing 2"):
        wrong(0)


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_looked_for_again_after_a_compilation(collects: bool) -> None:
    seen: list[bool] = []
    one, wrong = plainly_typed(njit(lambda: 1)), plainly_typed(njit(lambda n: n.nothing))
    make = one._compiler.compile

    def observed(*given: Any) -> Any:
        seen.append(gc.isenabled())
        return make(*given)

    one._compiler.compile = observed
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        assert one() == 1
        assert gc.isenabled() is collects
        with pytest.raises(TypingError):
            wrong(1)
        assert gc.isenabled() is collects
        assert seen == [False]
    finally:
        (gc.enable if before else gc.disable)()


@compiled
def _first(array: int) -> tuple[int, int, int]:
    return load_i64(data(array)), data(array), data_if_any(0)


def test_addresses_are_those_that_numpy_gives() -> None:
    whole = np.arange(100)
    read_only = whole[5:]
    read_only.flags.writeable = False
    for array in (whole, whole[3:], whole[::2], whole[::-1], read_only, np.ones(3, np.float32),
                  np.zeros((3, 4), np.uint8)[1:], np.empty(0)):  # fmt: skip
        assert address(array) == array.ctypes.data
    assert _first(id(read_only)) == (5, read_only.ctypes.data, 0)
