"""Parts of kernels: functions that are only ever linked into the kernels that call them.

Numba optimizes every function and translates it to machine code, and then again, linked into each
function that calls it, and so on up to the kernel that Python calls: of a kernel's compilation most
went into code that nothing runs. A part is typed and lowered once, and stays as it is until it is
linked into a kernel; there it is optimized and translated, with everything else, for the first
time.

Numba also compiles a function anew for each literal that compiled code calls it with, and for each
width of an integer. Here a literal counts as its type, and a signed integer as an int64.

Requires Numba's compiler as of 0.60 to 0.6x; a test compares what it makes with plain njit's.
"""

from __future__ import annotations

from typing import Any

from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _Linked(JITCodeLibrary):
    """Code that waits to be linked into a kernel's."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
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


class _PartCompiler(Compiler):
    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        library = _Linked(targetctx.codegen(), "part")
        super().__init__(typingctx, targetctx, library, *rest)


def part(function: Any) -> Any:
    """A function that kernels are made of, inlined into each. Python must not call it: that ends
    the process, because there is nothing to call."""
    return plainly_typed(
        njit(
            nogil=True, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True,
            pipeline_class=_PartCompiler,
        )(function)
    )  # fmt: skip


def plainly_typed(kernel: Any) -> Any:
    """The kernel, which compiled code calls with plain types: neither literals nor signed integers
    of fewer than 64 bits."""
    find = kernel.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        return find(tuple(map(_plain, args)), {name: _plain(kind) for name, kind in kws.items()})

    kernel.get_call_template = get_call_template
    return kernel


def _plain(kind: Any) -> Any:
    kind = types.unliteral(kind)
    narrow = isinstance(kind, types.Integer) and kind.signed and kind.bitwidth < 64
    return types.int64 if narrow else kind
