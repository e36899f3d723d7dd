"""The hash of splitmix.py, for Numba's kernels: what hashes arrays imports no compiler."""

from __future__ import annotations

from .jit import inlined
from .splitmix import mix

mixed = inlined(mix)
