"""Loads, stores and vector instructions by address, which Numba cannot express.

Each is a function that emits a few lines of LLVM, made callable by `instruction`. Vector operations
are written out where it matters: from a loop over computed addresses LLVM makes a gather, which is
no faster than the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ..arrays import DATA
from .jit import inlined

COMPARED = 32  # keys compared at once
GROUP = 8  # slots moved at once
LINE = 64  # bytes of a line of the caches

BIT, I32, I64 = map(ir.IntType, (1, 32, 64))
BYTES = cgutils.voidptr_t

_int, _u64, _none = types.int64, types.uint64, types.void


def instruction(returns: Any, *takes: Any) -> Callable[[Callable[..., Any]], Any]:
    """Makes a function that compiled code can call of one that emits its code: emit(context,
    builder, *values) gets the arguments, converted to the types in `takes`, and returns a value of
    type `returns`, or None for void."""

    def made(emit: Callable[..., Any]) -> Any:
        def define(typingctx: Any, *given: Any) -> Any:
            if len(given) < len(takes):
                raise TypeError(f"{emit.__name__}: missing {len(takes) - len(given)} arguments")

            def codegen(context: Any, builder: Any, signature: Any, given: Any) -> Any:
                result = emit(context, builder, *given)
                return context.get_dummy_value() if result is None else result

            return returns(*takes), codegen

        # Numba wants each argument named.
        names = ["typingctx", *(f"_{i}" for i in range(len(takes)))]
        define.__dict__["__signature__"] = Signature(
            [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        )
        define.__name__, define.__doc__ = emit.__name__, emit.__doc__
        return intrinsic(define)

    return made


def _loader(value: Any, align: int | None = None) -> Any:
    @instruction(value, _int)
    def load(context: Any, builder: Any, address: Any) -> Any:
        pointer = context.get_value_type(value).as_pointer()
        return builder.load(builder.inttoptr(address, pointer), align=align)

    return load


def _storer(value: Any) -> Any:
    @instruction(_none, _int, value)
    def store(context: Any, builder: Any, address: Any, stored: Any) -> None:
        pointer = context.get_value_type(value).as_pointer()
        builder.store(stored, builder.inttoptr(address, pointer))

    return store


def _pointer(value: Any) -> Any:
    @instruction(types.CPointer(value), _int)
    def at(context: Any, builder: Any, address: Any) -> Any:
        """An address as a pointer, of which Numba's carray makes an array."""
        return builder.inttoptr(address, context.get_value_type(types.CPointer(value)))

    return at


at_u64 = _pointer(types.uint64)
at_i64 = _pointer(types.int64)
at_u32 = _pointer(types.uint32)
at_i32 = _pointer(types.int32)
at_bool = _pointer(types.boolean)
at_f32 = _pointer(types.float32)
at_f64 = _pointer(types.float64)
load_u64 = _loader(types.uint64)
load_i64 = _loader(types.int64)
load_i32 = _loader(types.int32)
load_u32 = _loader(types.uint32)
load_u16 = _loader(types.uint16)
load_u8 = _loader(types.uint8)
load_text = _loader(types.uint64, align=1)  # 8 bytes from any place
load_f32 = _loader(types.float32)
load_f64 = _loader(types.float64)
store_u64 = _storer(types.uint64)
store_i64 = _storer(types.int64)
store_i32 = _storer(types.int32)
store_u32 = _storer(types.uint32)
store_u16 = _storer(types.uint16)
store_u8 = _storer(types.uint8)
store_f32 = _storer(types.float32)
store_f64 = _storer(types.float64)


@inlined
def data(array: int) -> int:
    """The address of the first entry of an array that is given by its id(). Numba compiles a kernel
    anew for each dtype, for read-only arrays and for strided ones: arrays from callers are passed
    like this. It also costs less than passing the array, or its address. REQUIRES: the array is
    contiguous and outlives the call."""
    return load_i64(array + DATA)


@inlined
def data_if_any(array: int) -> int:
    """The same; 0 for 0, which stands for no array."""
    return data(array) if array else 0


@instruction(_int, _int)
def load_shared(context: Any, builder: Any, address: Any) -> Any:
    """An int64 that another thread or a device writes: read anew each time, and before whatever is
    read after it."""
    return builder.load_atomic(builder.inttoptr(address, I64.as_pointer()), "acquire", 8)


@instruction(_int, types.float64)
def bits_of(context: Any, builder: Any, value: Any) -> Any:
    """The bits of a double."""
    return builder.bitcast(value, I64)


@instruction(types.float64, _int)
def of_bits(context: Any, builder: Any, bits: Any) -> Any:
    """The double that has these bits."""
    return builder.bitcast(bits, ir.DoubleType())


@instruction(_none, _int, _int)
def add_i64(context: Any, builder: Any, address: Any, value: Any) -> None:
    """Add to an integer at `address`, which other threads add to as well."""
    builder.atomic_rmw("add", builder.inttoptr(address, I64.as_pointer()), value, "monotonic")


@instruction(_none, _int, _int, _int)
def move_bytes(context: Any, builder: Any, to: Any, source: Any, size: Any) -> None:
    """memmove: the ranges may overlap."""
    to, source = builder.inttoptr(to, BYTES), builder.inttoptr(source, BYTES)
    cgutils.raw_memmove(builder, to, source, size, 1)


def _on_semaphore(function: str, *rest: int) -> Any:
    """A function of the C library on a semaphore, sem_t, given by address. `rest`: its other
    arguments."""

    @instruction(_none, _int)
    def call(context: Any, builder: Any, address: Any) -> None:
        kind = ir.FunctionType(I32, [BYTES, *[I32] * len(rest)])
        called = cgutils.get_or_insert_function(builder.module, kind, function)
        builder.call(called, [builder.inttoptr(address, BYTES), *map(I32, rest)])

    return call


SEMAPHORE = 64  # bytes, of which sem_t takes no more than half
make_semaphore = _on_semaphore("sem_init", 0, 0)  # of this process, at 0
post = _on_semaphore("sem_post")
wait = _on_semaphore("sem_wait")  # a signal's handler ends it too


@instruction(_none, _int, _int)
def stream_line(context: Any, builder: Any, to: Any, source: Any) -> None:
    """Copy LINE bytes past the caches, which would first read what is overwritten. `to`: a multiple
    of LINE. The next atomic operation in order comes after it."""
    vector = ir.VectorType(I32, LINE // 4).as_pointer()
    line = builder.load(builder.inttoptr(source, vector), align=1)
    store = builder.store(line, builder.inttoptr(to, vector), align=LINE)
    store.set_metadata("nontemporal", builder.module.add_metadata([I32(1)]))


@instruction(_none, _int)
def prefetch(context: Any, builder: Any, address: Any) -> None:
    """Ask for the cache line at `address`; never faults."""
    kind = ir.FunctionType(ir.VoidType(), [BYTES, I32, I32, I32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [builder.inttoptr(address, BYTES), I32(0), I32(3), I32(1)])


@instruction(_int, _int, _u64)
def smaller_keys(context: Any, builder: Any, address: Any, key: Any) -> Any:
    """Which of the COMPARED keys at `address` are smaller than `key`: bit i of the result for
    the i-th."""
    vector = ir.VectorType(I64, COMPARED)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), key, I32(0))
    picks = ir.Constant(ir.VectorType(I32, COMPARED), [0] * COMPARED)
    all_alike = builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), picks)
    keys = builder.load(builder.inttoptr(address, vector.as_pointer()), align=8)
    smaller = builder.icmp_unsigned("<", keys, all_alike)
    return builder.zext(builder.bitcast(smaller, ir.IntType(COMPARED)), I64)


def _expander(bits: int) -> Any:
    @instruction(_none, _int, _int, _int)
    def expand(context: Any, builder: Any, to: Any, source: Any, where: Any) -> None:
        """Write GROUP entries at `to`: the next one from `source` where a bit is set, else 0. One
        instruction with AVX-512; elsewhere LLVM spells it out."""
        entry = ir.IntType(bits)
        vector, mask = ir.VectorType(entry, GROUP), ir.VectorType(BIT, GROUP)
        kind = ir.FunctionType(vector, [entry.as_pointer(), mask, vector])
        name = f"llvm.masked.expandload.v{GROUP}i{bits}"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        picked = builder.bitcast(builder.trunc(where, ir.IntType(GROUP)), mask)
        source = builder.inttoptr(source, entry.as_pointer())
        expanded = builder.call(function, [source, picked, ir.Constant(vector, [0] * GROUP)])
        builder.store(expanded, builder.inttoptr(to, vector.as_pointer()), align=1)

    return expand


expand_u32 = _expander(32)
expand_u64 = _expander(64)


@instruction(_int, _int)
def ones(context: Any, builder: Any, bits: Any) -> Any:
    """How many bits are set."""
    return builder.ctpop(bits)


@instruction(_int, _u64)
def lowest(context: Any, builder: Any, bits: Any) -> Any:
    """The place of the lowest bit that is set. REQUIRES: one is."""
    return builder.cttz(bits, BIT(1))


@instruction(_int, _int)
def trailing_zeros(context: Any, builder: Any, value: Any) -> Any:
    """ctz of an int64; 64 for zero."""
    return builder.cttz(value, BIT(0))
