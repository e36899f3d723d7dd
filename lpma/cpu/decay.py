"""How the weights of edges decay, as kernels of the CPU compute it: the steps of lpma/time_view.py,
which says why they are these.

Trick: the loops have no branch, so that LLVM makes vector instructions of them. What may exceed an
int64 is a uint64, whose overflow is defined.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from ..time_view import LEAST_SINGLE, MANTISSA, SERIES, SHIFTER, SHIFTER_BITS, ZERO_AT, Decay
from .instructions import at_f32, at_f64, at_i64, bits_of, of_bits
from .jit import inlined

C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0 = SERIES
SHIFT, ZERO_POWER, BITS = SHIFTER_BITS, ZERO_AT, MANTISSA


@inlined
def factor(time: int, d: Decay) -> float:
    """What is left of a weight of 1."""
    age = np.uint64(d.now) - np.uint64(time) if time < d.now else np.uint64(0)
    age = min(age, np.uint64(d.most))
    shifted = np.float64(age) * d.inverse + SHIFTER
    k = bits_of(shifted) - SHIFT
    left = np.float64(np.int64(age - np.uint64(k) * np.uint64(d.half_life))) * d.inverse
    power = (((((C13 * left + C12) * left + C11) * left + C10) * left + C9) * left + C8) * left + C7
    power = (((((power * left + C6) * left + C5) * left + C4) * left + C3) * left + C2) * left + C1
    return (power * left + C0) * of_bits((ZERO_POWER - k) << BITS)


@inlined
def _single(weight: float) -> np.float32:
    return np.float32(weight if weight >= LEAST_SINGLE else 0.0)


@inlined
def decay_column(weights: int, times: int, n: int, weight_bytes: int, made: bool, d: Decay) -> None:
    """Let n weights of so many bytes decay where they are. made: they are 1, and not written."""
    then = carray(at_i64(times), n)
    if made:
        new = carray(at_f32(weights), n)
        for i in range(n):
            new[i] = _single(factor(then[i], d))
    elif weight_bytes == 4:
        single = carray(at_f32(weights), n)
        for i in range(n):
            single[i] = _single(np.float64(single[i]) * factor(then[i], d))
    else:
        double = carray(at_f64(weights), n)
        for i in range(n):
            double[i] *= factor(then[i], d)
