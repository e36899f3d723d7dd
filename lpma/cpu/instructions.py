"""Loads, stores and vector instructions by address, which Numba cannot express.

Each is an intrinsic of a few lines of LLVM. Vector operations are written out where it matters:
from a loop over computed addresses LLVM makes a gather, which is no faster than the loop.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

COMPARED = 32  # keys compared at once
GROUP = 8  # slots moved at once
LINE = 64  # bytes of a line of the caches


def _loader(value: Any, align: int | None = None) -> Any:
    @intrinsic
    def load(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = context.get_value_type(value).as_pointer()
            return builder.load(builder.inttoptr(args[0], pointer), align=align)

        return value(types.int64), codegen

    return load


@intrinsic
def load_shared(typingctx: Any, address: Any) -> Any:
    """An int64 that another thread or a device writes: read anew each time, and before whatever is
    read after it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(types.int64), codegen


def _storer(value: Any) -> Any:
    @intrinsic
    def store(typingctx: Any, address: Any, stored: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = context.get_value_type(value).as_pointer()
            builder.store(args[1], builder.inttoptr(args[0], pointer))
            return context.get_dummy_value()

        return types.void(types.int64, value), codegen

    return store


def _pointer(value: Any) -> Any:
    @intrinsic
    def at(typingctx: Any, address: Any) -> Any:
        """An address as a pointer, of which Numba's carray makes an array."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(value)(types.int64), codegen

    return at


at_u64 = _pointer(types.uint64)
at_i64 = _pointer(types.int64)
at_u32 = _pointer(types.uint32)
at_i32 = _pointer(types.int32)
at_u16 = _pointer(types.uint16)
at_u8 = _pointer(types.uint8)
at_bool = _pointer(types.boolean)
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


@intrinsic
def add_i64(typingctx: Any, address: Any, value: Any) -> Any:
    """Add to an integer at `address`, which other threads add to as well."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = context.get_value_type(types.int64).as_pointer()
        builder.atomic_rmw("add", builder.inttoptr(args[0], pointer), args[1], "monotonic")
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def move_bytes(typingctx: Any, to: Any, source: Any, size: Any) -> Any:
    """memmove: the ranges may overlap."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = cgutils.voidptr_t
        cgutils.raw_memmove(
            builder,
            builder.inttoptr(args[0], byte),
            builder.inttoptr(args[1], byte),
            args[2],
            1,
        )
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


def _on_semaphore(function: str, *rest: int) -> Any:
    """A function of the C library on a semaphore, sem_t, given by address. `rest`: its other
    arguments."""

    @intrinsic
    def call(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            i32 = ir.IntType(32)
            kinds = [cgutils.voidptr_t, *[i32] * len(rest)]
            called = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(i32, kinds), function
            )
            semaphore = builder.inttoptr(args[0], cgutils.voidptr_t)
            builder.call(called, [semaphore, *map(i32, rest)])
            return context.get_dummy_value()

        return types.void(types.int64), codegen

    return call


SEMAPHORE = 64  # bytes, of which sem_t takes no more than half
make_semaphore = _on_semaphore("sem_init", 0, 0)  # of this process, at 0
post = _on_semaphore("sem_post")
wait = _on_semaphore("sem_wait")  # a signal's handler ends it too


@intrinsic
def stream_line(typingctx: Any, to: Any, source: Any) -> Any:
    """Copy LINE bytes past the caches, which would first read what is overwritten. `to`: a multiple
    of LINE. The next atomic operation in order comes after it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.IntType(32), LINE // 4).as_pointer()
        line = builder.load(builder.inttoptr(args[1], vector), align=1)
        store = builder.store(line, builder.inttoptr(args[0], vector), align=LINE)
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.IntType(32)(1)]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def prefetch(typingctx: Any, address: Any) -> Any:
    """Ask for the cache line at `address`; never faults."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i32 = ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, i32, i32, i32]),
            "llvm.prefetch.p0",
        )
        pointer = builder.inttoptr(args[0], cgutils.voidptr_t)
        builder.call(function, [pointer, i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@intrinsic
def smaller_keys(typingctx: Any, address: Any, key: Any) -> Any:
    """Which of the COMPARED keys at `address` are smaller than `key`: bit i of the result for
    the i-th. Written as one vector comparison, because a loop over addresses becomes a gather."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.IntType(64), COMPARED)
        pointer = builder.inttoptr(args[0], vector.as_pointer())
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), args[1], ir.IntType(32)(0))
        picks = ir.Constant(ir.VectorType(ir.IntType(32), COMPARED), [0] * COMPARED)
        all_alike = builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), picks)
        smaller = builder.icmp_unsigned("<", builder.load(pointer, align=8), all_alike)
        return builder.zext(builder.bitcast(smaller, ir.IntType(COMPARED)), ir.IntType(64))

    return types.int64(types.int64, types.uint64), codegen


def _expander(bits: int) -> Any:
    @intrinsic
    def expand(typingctx: Any, to: Any, source: Any, where: Any) -> Any:
        """Write GROUP entries at `to`: the next one from `source` where a bit is set, else 0. One
        instruction with AVX-512; elsewhere LLVM spells it out."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            entry = ir.IntType(bits)
            vector, mask = ir.VectorType(entry, GROUP), ir.VectorType(ir.IntType(1), GROUP)
            function = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(vector, [entry.as_pointer(), mask, vector]),
                f"llvm.masked.expandload.v{GROUP}i{bits}",
            )
            picked = builder.bitcast(builder.trunc(args[2], ir.IntType(GROUP)), mask)
            source = builder.inttoptr(args[1], entry.as_pointer())
            none = ir.Constant(vector, [0] * GROUP)
            expanded = builder.call(function, [source, picked, none])
            builder.store(expanded, builder.inttoptr(args[0], vector.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    return expand


expand_u32 = _expander(32)
expand_u64 = _expander(64)


@intrinsic
def ones(typingctx: Any, bits: Any) -> Any:
    """How many bits are set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.int64), codegen


@intrinsic
def lowest(typingctx: Any, bits: Any) -> Any:
    """The place of the lowest bit that is set. REQUIRES: one is."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@intrinsic
def trailing_zeros(typingctx: Any, value: Any) -> Any:
    """ctz of an int64; 64 for zero."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), codegen
