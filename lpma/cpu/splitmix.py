"""A hash of 64 bits: the mixing function of splitmix64 (Steele, Lea and Flood, OOPSLA 2014),
started from a secret seed, so that nobody can choose keys by their hashes.

Of single numbers in kernels, of whole arrays in NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_STEP = np.uint64(0x9E37_79B9_7F4A_7C15)
_FIRST = np.uint64(0xBF58_476D_1CE4_E5B9)
_SECOND = np.uint64(0x94D0_49BB_1331_11EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)


def mix(key: Any, seed: Any) -> Any:
    """The hash of a key. uint64, one of the two an array of them."""
    z = (key ^ seed) + _STEP
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    return z ^ (z >> _S31)
