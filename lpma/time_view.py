"""Views in time: which edges a snapshot holds by their times, and how their weights decay.

An edge is in a view where since ≤ t < until. A half-life makes of its weight w

    w · 2^-((now - t) / half_life)

where `now` is the newest time in the view unless it is given. An edge that is newer than `now`
counts whole; one whose weight falls below what its type holds with all digits (2^-126 of float32,
2^-1022 of float64) weighs 0, and stays an edge.

Idea: every device finds the same bits, since each does the same steps, each of which IEEE 754
rounds in one way: no exp2 of a library, no fused multiply-add. An age is an exact unsigned integer
of 64 bits. k = age / half_life to the nearest integer gives the power of two 2^-k, by its bits;
what is left of the age, an exact integer too, is at most half a half-life either way, and
2^-(left / half_life) is a series: 13 terms give it to within 2 units in the last place.

Trick: the sum of a double below 2^51 and 1.5 · 2^52 is rounded to an integer, which is then in its
low bits. So is no conversion needed that a vector unit lacks.

`decayed` is these steps in NumPy and CuPy; lpma/cpu/decay.py and lpma/cuda/decay.cuh are the same
for kernels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .arrays import Array, array_module

LEAST, MOST = -(2**63), 2**63 - 1  # times
SHIFTER = 1.5 * 2.0**52
SHIFTER_BITS = 0x4338000000000000
LEAST_SINGLE = 2.0**-126  # of a float32 with all digits: devices make 0 of what is less
ZERO_AT = 1023  # half-lives: 2^-1023 has the bits of 0
MANTISSA = 52  # bits
ZERO = np.uint64(0)
PIECE = 1 << 14  # edges that the host computes at once, in its caches
# (-ln 2)^i / i!, rounded, the highest first.
_TERMS = (
    "-0x1.816193166d0f9p-40", "0x1.c3bd650fc2986p-36", "-0x1.e8cac7351bb25p-32",
    "0x1.e4cf5158b8ecap-28", "-0x1.b5253d395e7c4p-24", "0x1.62c0223a5c824p-20",
    "-0x1.ffcbfc588b0c7p-17", "0x1.430912f86c787p-13", "-0x1.5d87fe78a6731p-10",
    "0x1.3b2ab6fba4e77p-7", "-0x1.c6b08d704a0c0p-5", "0x1.ebfbdff82c58fp-3",
    "-0x1.62e42fefa39efp-1", "0x1.0p+0",
)  # fmt: skip
SERIES = tuple(map(float.fromhex, _TERMS))


class Decay(NamedTuple):
    """What kernels need to know of a half-life."""

    now: int
    half_life: int
    most: int  # uint64: an age beyond this one counts as this one
    inverse: float  # 1 / half_life


class TimeView(NamedTuple):
    """Edges whose time is first … last, and the half-life of their weights, 0 for none; `now` is
    None for the newest of their times."""

    first: int = LEAST
    last: int = MOST
    half_life: int = 0
    now: int | None = None

    def holds(self, times: Array) -> Array:
        """bool[n]: which of these times are in the view."""
        return (times >= self.first) & (times <= self.last)

    def decay(self, newest: int) -> Decay | None:
        """How weights decay; None if they do not. newest: of the times in the view."""
        if not self.half_life:
            return None
        now = newest if self.now is None else self.now
        most = min(ZERO_AT * self.half_life, 2**64 - 1)
        return Decay(now, self.half_life, most, 1.0 / self.half_life)

    def decay_of(self, times: Array) -> Decay | None:
        """The same of the times in the view."""
        is_open = self.now is None and self.half_life and len(times)
        return self.decay(int(times.max()) if is_open else 0)


def decayed(weights: Array | None, times: Array, decay: Decay) -> Array:
    """Weights as they are at `decay.now`, of the same dtype; of edges without weights, float32,
    what is left of 1."""
    xp = array_module(times)
    if weights is None:
        weights = xp.ones(len(times), np.float32)
    made = xp.empty_like(weights)
    piece = PIECE if xp is np else max(len(times), 1)
    for first in range(0, len(times), piece):
        part = slice(first, first + piece)
        product = weights[part].astype(np.float64) * _factors(xp, times[part], decay)
        if made.dtype == np.float32:
            product = xp.where(product >= LEAST_SINGLE, product, 0.0)
        made[part] = product
    return made


def _factors(xp: Any, times: Array, decay: Decay) -> Array:
    """float64[n]: what is left of a weight of 1."""
    age = xp.where(times < decay.now, np.uint64(decay.now % 2**64) - times.view(np.uint64), ZERO)
    age = xp.minimum(age, np.uint64(decay.most))
    shifted = age.astype(np.float64) * decay.inverse + SHIFTER
    k = shifted.view(np.int64) - SHIFTER_BITS
    left = (age.view(np.int64) - k * decay.half_life).astype(np.float64) * decay.inverse
    power = xp.full(len(times), SERIES[0])
    for term in SERIES[1:]:
        power = power * left + term
    factors: Array = power * ((ZERO_AT - k) << MANTISSA).view(np.float64)
    return factors


def rows_in_view(
    view: TimeView, indptr: Array, indices: Array, weights: Array | None, times: Array
) -> tuple[Array, Array, Array | None, Array]:
    """What of a CSR's arrays is in a view."""
    xp = array_module(indptr)
    held = view.holds(times)
    before = xp.zeros(len(held) + 1, np.int64)
    xp.cumsum(held, out=before[1:])
    times = times[held]
    return before[indptr], indices[held], weights_in_view(view, weights, held, times), times


def weights_in_view(
    view: TimeView, weights: Array | None, held: Array, times: Array
) -> Array | None:
    """The weights of the edges that are `held`, as they have decayed. times: of these."""
    weights = None if weights is None else weights[held]
    decay = view.decay_of(times)
    return weights if decay is None else decayed(weights, times, decay)
