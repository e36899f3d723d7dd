"""How Numba compiles the kernels of this project.

All of them release the GIL and are cached on disk. A third of a compilation would go into wrappers
through which Python and C call a function. No kernel is called from C, and the small functions that
kernels are made of are not called from Python either.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .parts import part, plainly_typed


# A function that Python calls, or compiled code, or both.
def compiled(function: Any) -> Any:
    return plainly_typed(njit(cache=True, nogil=True, no_cfunc_wrapper=True)(function))


# A part of compiled functions, inlined into each. Calling one from Python ends the process: there
# is no wrapper to call.
inlined: Any = part

# A function that compiled code calls with a literal is compiled for that literal, and again for
# other values. With these it is compiled once.
ZERO: Any = np.int64(0)
ONE: Any = np.int64(1)
NO: Any = np.bool_(False)
