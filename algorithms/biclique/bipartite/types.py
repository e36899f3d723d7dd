"""A bipartite graph as two sets of rows, and the error for graphs without two sides."""

from __future__ import annotations

from dataclasses import dataclass

from lpma.arrays import on_device, to_host
from lpma.errors import BatchError

from ...arrays import Array


class NotBipartite(BatchError):
    """A graph does not have the given sides, or any two. `message` has a {} for each of `vertices`,
    which prove it."""

    def __init__(self, message: str, *vertices: int | str) -> None:
        super().__init__(message.format(*vertices))
        self.message = message
        self.vertices = vertices  # rows of the graph that was given, or their names


@dataclass(frozen=True)
class Bipartite:
    """A bipartite graph whose vertices are numbered from 0 on each side. A row holds the sorted
    numbers of a vertex's neighbours. All arrays are NumPy's, or all are CuPy's on one device."""

    left_indptr: Array  # int64[a+1]
    left_indices: Array  # uint32[m]
    right_indptr: Array  # int64[b+1]
    right_indices: Array  # uint32[m]
    left_ids: Array  # uint32[a]: the vertex behind each number
    right_ids: Array  # uint32[b]

    @property
    def num_left(self) -> int:
        return len(self.left_indptr) - 1

    @property
    def num_right(self) -> int:
        return len(self.right_indptr) - 1

    @property
    def num_edges(self) -> int:
        return len(self.left_indices)

    @property
    def on_device(self) -> bool:
        """Whether these are CuPy arrays."""
        return on_device(self.left_indptr)

    @property
    def left_degrees(self) -> Array:
        return self.left_indptr[1:] - self.left_indptr[:-1]

    @property
    def right_degrees(self) -> Array:
        return self.right_indptr[1:] - self.right_indptr[:-1]

    @property
    def rows(self) -> tuple[Array, Array, Array, Array]:
        """The rows of both sides, in the order in which kernels take them."""
        return self.left_indptr, self.left_indices, self.right_indptr, self.right_indices

    def swapped(self) -> Bipartite:
        """The same arrays, left and right exchanged."""
        return Bipartite(
            self.right_indptr, self.right_indices, self.left_indptr, self.left_indices,
            self.right_ids, self.left_ids,
        )  # fmt: skip

    def on_host(self) -> Bipartite:
        """The same graph in NumPy's arrays: a copy if they are on a device, else the same ones."""
        return Bipartite(*(to_host(array) for array in vars(self).values()))
