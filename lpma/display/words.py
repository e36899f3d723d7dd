"""Numbers, moments and degrees, in words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from ..arrays import Array
from .html import chart

_DAY_MS = 86_400_000


def count_of(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def size_of(size_bytes: int) -> str:
    """A number of bytes, to three digits."""
    size, units = float(size_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1000 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.3g} {units[0]}"


def moment_of(time_ms: int) -> str:
    """A time, as a date too if it is likely to be milliseconds since 1970: from 1971 to 2200."""
    if not 365 * _DAY_MS < time_ms < 84_000 * _DAY_MS:
        return str(time_ms)
    moment = datetime.fromtimestamp(time_ms // 1000, UTC)
    return f"{time_ms} ({moment:%Y-%m-%d %H:%M:%S} UTC)"


def type_of(directed: bool, weight: Any, times: bool) -> str:
    """What edges are like. weight: a dtype, or None."""
    kept = [f"{np.dtype(weight).name} weights"] if weight is not None else []
    kept += ["times"] if times else []
    return ", ".join(["directed" if directed else "undirected", *kept])


def degree_chart(degrees: Array, what: str) -> str:
    """How many of these rows have 1, 2–3, 4–7 … edges, in logarithms; those without are left
    out."""
    degrees = degrees[degrees > 0]
    if not len(degrees):
        return ""
    bins = np.bincount(np.frexp(degrees.astype(np.float64))[1] - 1)
    highest = np.log1p(bins.max())
    bars = []
    for k, number in enumerate(bins.tolist()):
        span = str(1 << k) if k == 0 else f"{1 << k} to {(2 << k) - 1}"
        told = f"{count_of(number, 'vertex', 'vertices')} of degree {span}"
        bars.append((_short(1 << k), float(np.log1p(number) / highest), told))
    return chart(f"{what} (log scale)", bars)


def _short(number: int) -> str:
    for size, unit in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "k")):
        if number >= size:
            return f"{number // size}{unit}"
    return str(number)


def density_chart(densities: list[float]) -> str:
    """How full each level of a store is."""
    bars = [
        (str(level), density, f"level {level}: {density:.1%} of its slots are filled")
        for level, density in enumerate(densities)
    ]
    return chart("density by level", bars)
