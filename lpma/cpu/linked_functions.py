"""Parts of kernels: functions that are only ever linked into the kernels that call them.

Numba optimizes and translates every function, and again, linked into each function that calls it,
up to the kernel that Python calls: most of a compilation went into code that nothing runs. A part
is typed and lowered once, and first optimized and translated within a kernel.

Numba also compiles a function anew for each literal that compiled code calls it with, and for each
width of an integer. Here a literal counts as its type, and a signed integer as an int64.

Requires Numba's compiler as it is in 0.61 to 0.68: _Linked and the list of passes replace parts of
it.
"""

from __future__ import annotations

import gc
from typing import Any

from numba import njit, types
from numba.core import typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager


class _Linked(JITCodeLibrary):
    """Code that waits to be linked into a kernel's."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            if hasattr(library, "_reload_init"):  # from Numba 0.62 on
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """There is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """Asked to store the environment at an address, which this code does not have."""
        return _NoAddresses


class _NoAddresses:
    @staticmethod
    def set_env(env_name: str, env: Any) -> None:
        pass


# Numba's passes without those for what no part contains: closures, exceptions, array expressions.
_PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.GenericRewrites,
    untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.IRLegalization,
    typed_passes.AnnotateTypes,
    typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)


class _PartCompiler(CompilerBase):
    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        library = _Linked(targetctx.codegen(), "part")
        super().__init__(typingctx, targetctx, library, *rest)

    def define_pipelines(self) -> list[Any]:
        manager = PassManager("part")
        for step in _PASSES:
            manager.add_pass(step, step.__name__)
        manager.finalize()
        return [manager]


def part(function: Any) -> Any:
    """A function that kernels are made of, inlined into each. Python must not call it: that ends
    the process, because there is nothing to call."""
    made: Any = njit(
        nogil=True, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True,
        pipeline_class=_PartCompiler,
    )(function)  # fmt: skip

    def compile(takes: Any) -> Any:
        """Without the timers, events and look-ups that Numba has around each compilation."""
        with global_compiler_lock:
            if takes not in made.overloads:
                made.add_overload(made._compiler.compile(takes, None))
        return made.overloads[takes].entry_point

    made.compile = compile
    return plainly_typed(made)


def plainly_typed(kernel: Any) -> Any:
    """The kernel, which compiled code calls with plain types: neither literals nor signed integers
    of fewer than 64 bits. While it is compiled, Python looks for no garbage: that takes a tenth of
    the time, and frees next to nothing."""
    find, make = kernel.get_call_template, kernel.compile

    def compile(takes: Any) -> Any:
        collects = gc.isenabled()
        gc.disable()
        try:
            return make(takes)
        finally:
            if collects:
                gc.enable()

    kernel.compile = compile

    def get_call_template(args: Any, kws: Any) -> Any:
        return find(tuple(map(_plain, args)), {name: _plain(kind) for name, kind in kws.items()})

    kernel.get_call_template = get_call_template
    return kernel


def _plain(kind: Any) -> Any:
    kind = types.unliteral(kind)
    narrow = isinstance(kind, types.Integer) and kind.signed and kind.bitwidth < 64
    return types.int64 if narrow else kind
