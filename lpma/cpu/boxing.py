"""How compiled kernels hand their results to Python: no Python code runs on the way.

Numba makes a Python object of what a kernel returns. For an array, or a tuple with fields, it gets
the object's class by *calling* a function written in Python. Python runs signal handlers whenever
such a function begins: so a Ctrl-C during the kernel raised KeyboardInterrupt in compiled code that
expects no error, and Python raised SystemError, which `except Exception` takes for a failure.

Here classes lie in the kernel's environment, a list of constants from which it reads the dtypes of
arrays already. A signal then waits until the kernel has returned.

Requires Numba's compiler as it is in 0.61 to 0.68: two of its classes are extended.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from numba.core.compiler import Compiler
from numba.core.pythonapi import PythonAPI


class _Constant(NamedTuple):
    """An object that compiled code reads from its environment."""

    value: Any


class _PythonAPI(PythonAPI):
    """What compiled code of one kernel asks of Python."""

    _environment: Any = None  # known while results are boxed

    def from_native_value(self, typ: Any, val: Any, env_manager: Any = None) -> Any:
        if env_manager is not None:
            self._environment = env_manager
        return super().from_native_value(typ, val, env_manager)

    def serialize_object(self, obj: Any) -> Any:
        return super().serialize_object(obj) if self._environment is None else _Constant(obj)

    def unserialize(self, structptr: Any) -> Any:
        """A new reference to what was serialized."""
        if not isinstance(structptr, _Constant):
            return super().unserialize(structptr)
        environment = self._environment
        found = environment.read_const(environment.add_const(structptr.value))
        self.incref(found)
        return found


class KernelCompiler(Compiler):
    """Numba's compiler of functions that Python calls."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        context = self.state.targetctx  # a copy, for this kernel alone
        context.get_python_api = partial(_PythonAPI, context)
