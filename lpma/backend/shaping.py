"""The part of the seam that makes whole stores: see protocol.py, whose rules hold here too."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np

from ..pma.layout import Size
from .values import Array, Segments

Shape = TypeVar("Shape", bound=Segments)


class Shaping(Protocol[Shape]):
    """Whole stores: made, grown by a level or a part of one, shrunk by a level."""

    way_out: str  # what a user can do where `most_levels` is not enough

    def most_levels(self, segment_size: int) -> int:
        """The highest m that the backend's arithmetic can number. The host never exceeds it."""

    def parted_from(self, segment_size: int) -> int:
        """The first level that comes in parts (layout.py), 3 or more. Above `most_levels` where the
        backend keeps whole levels alone."""

    def empty(
        self, segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool
    ) -> Shape:  # fmt: skip
        """[S1] ENSURES: one segment with nothing in it, and the columns asked for."""

    def build(
        self, segment_size: int, size: Size, keys: Array, weights: Array | None, times: Array | None
    ) -> Shape:
        """A store of whole columns. keys: uint64[n]; weights and times: [n]; None: no such column.
        [S2] REQUIRES: the keys strictly rise, and the root has room for n.
        [S3] ENSURES: of the s segments that are there, number k in key order holds slots
        k n / s … (k + 1) n / s - 1; one that is not there has its successor's fence."""

    def expand(self, segments: Shape, size: Size) -> Shape:
        """A level more, or a part of one. REQUIRES: `size` is the next larger one (`Size.larger`),
        whole where `parted_from` says so; nothing is planned for `segments`.
        [S4] ENSURES: the same slots in the same arrays. With a level more rank i is rank 2 i, and
        every segment of odd rank is empty and has its successor's fence, those that are not there
        too. With a part more the tree is the same. `segments` is as it was."""

    def even_out(self, segments: Shape, layer: int, first: int, last: int) -> None:
        """A published store has got a part of a level more. REQUIRES: nothing is located;
        `layer` is layout.even_layer, and not 0.
        [S7] ENSURES: the same slots, windows first … last - 1 of that layer, counted from the left,
        each spread evenly. Raises MemoryError, and then nothing is written."""

    def shrink(self, segments: Shape, most: Array) -> tuple[Shape, Array]:
        """One level less, the last whole. Returns (the store, windows rebalanced by layer
        int64[m]). most: int64[m], what windows of the smaller store may hold. REQUIRES: its root
        has room.
        [S5] ENSURES: the same slots; a pair of segments that fits into one shares it, one that
        does not is spread evenly with what is around it. `segments` must not be used any more."""
