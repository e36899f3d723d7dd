"""Edges with times, as columns on the host or a device: what expiry.py keeps and hands out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .arrays import array_module, on_device, to_host

Array = npt.NDArray[Any]  # or cupy.ndarray


class Entries(NamedTuple):
    """Edges and the times that they had when they were noted. An undirected edge has one entry."""

    src: Array  # uint32[n]
    dst: Array  # uint32[n]
    time: Array  # int64[n]

    def rows(self, which: slice | Array) -> Entries:
        """Some of them, as an index of their columns says."""
        return Entries(*(column[which] for column in self))

    def on_host(self) -> Entries:
        """The same, copied to the host if they lie on a device."""
        return Entries(*map(to_host, self))


def together(parts: list[Entries]) -> Entries:
    """All of them, on a device if one of them lies there."""
    return Entries(*(joined(*columns) for columns in zip(*parts, strict=True)))


def joined(*parts: Array) -> Array:
    """Columns one after the other, on a device if one of them lies there."""
    parts = tuple(part for part in parts if len(part)) or parts[:1]
    if len(parts) == 1:
        return parts[0]
    xp = next((array_module(part) for part in parts if on_device(part)), np)
    joined: Array = xp.concatenate([xp.asarray(part) for part in parts])
    return joined
