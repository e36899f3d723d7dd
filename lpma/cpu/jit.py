"""How Numba compiles what this project has it compile.

All of it leaves the GIL to others and is kept on disk. A third of a compilation would go into
wrappers by which Python and C may call a function: none here is called from C, and the small ones
that kernels are made of not from Python either.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# A function that Python calls, or compiled code, or both.
compiled: Any = njit(cache=True, nogil=True, no_cfunc_wrapper=True)

# A part of compiled functions, put into each. To call one from Python ends the process: there is
# nothing that Python could call.
inlined: Any = njit(
    cache=True, nogil=True, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True
)

# What compiled code calls with a literal is compiled for that literal, and again for other values;
# with these for once.
ZERO: Any = np.int64(0)
ONE: Any = np.int64(1)
NO: Any = np.bool_(False)
