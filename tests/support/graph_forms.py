"""Graphs for the tests of algorithms: small ones in every form that may be given, and no graphs."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sparse

import lpma
from ingest.datasets import generators
from lpma import Snapshot
from tests.support.strategies import Config

Array = npt.NDArray[Any]


def inputs(device: str, n: int, src: Array, dst: Array) -> list[Any]:
    """The same graph in every form that an algorithm takes, with n vertices, each row one; those on
    the host too where the device is another."""
    forms: list[Any] = []
    for config in (Config(), Config(directed=False, weight_dtype=None)):
        g = config.graph(device)
        g.insert(src, dst, 1.0, 0)
        g.add_vertices(np.arange(n), 0)
        forms.append(g.snapshot())
    order = np.argsort(src, kind="stable")  # targets unsorted within a row, repeats kept
    indptr = np.searchsorted(src[order], np.arange(n + 1))
    forms += [(indptr, dst[order]), [indptr.astype(np.int32), dst[order].astype(np.uint64)]]
    if n:
        matrix = sparse.csr_matrix((np.zeros(len(src)), (src, dst)), shape=(n, n))
        forms += [matrix, sparse.csr_array(matrix)]
    if device != "cpu":
        forms += on_cuda(indptr, dst[order], matrix if n else None)
    return forms


def on_cuda(indptr: Array, indices: Array, matrix: Any) -> list[Any]:
    """Arrays, and a matrix unless it is None, on the device."""
    cupy, cupyx = importlib.import_module("cupy"), importlib.import_module("cupyx.scipy.sparse")
    arrays = cupy.asarray(indptr), cupy.asarray(indices)
    return [arrays] if matrix is None else [arrays, cupyx.csr_matrix(matrix)]


def clustered(scale: int = 11) -> tuple[int, Array, Array]:
    """RMAT with a clique and a star in it: levels far apart, a hub, and rows of many pieces."""
    src, dst = generators.rmat(scale, 12 << scale, seed=3)
    u, v = np.triu_indices(150, 1)
    n = 2 << scale
    star = np.arange(n, dtype=np.uint32)
    centers = np.full(n, 77, np.uint32)
    return n, np.concatenate((src, 5 * u, centers)), np.concatenate((dst, 5 * v, star))


def snapshot_of(device: str, n: int, src: Array, dst: Array, directed: bool = True) -> Snapshot:
    g = lpma.Graph(device=device, weight_dtype=None, times=False, directed=directed)
    g.insert(src, dst)
    if n:
        g.add_vertices(n - 1)
    return g.snapshot()


def cliques_in_a_chain(sizes: list[int]) -> tuple[Array, Array]:
    """Each shares one vertex with the next."""
    parts, first = [], 0
    for size in sizes:
        parts.append(np.stack(np.triu_indices(size, 1)) + first)
        first += size - 1
    src, dst = np.concatenate(parts, axis=1)
    return src, dst


def _with(**arrays: Any) -> Any:
    """A matrix of 3 by 3 in which somebody has replaced arrays."""
    matrix = sparse.csr_matrix(np.eye(3))
    for name, array in arrays.items():
        setattr(matrix, name, array)
    return matrix


BAD_GRAPHS: dict[str, Any] = {
    "text": "graph",
    "none": None,
    "three arrays": (np.zeros(1, int), np.zeros(0, int), np.zeros(0)),
    "no start": (np.zeros(0, int), np.zeros(0, int)),
    "start past 0": (np.array([1, 1]), np.array([0])),
    "end too early": (np.array([0, 1]), np.array([0, 0])),
    "falling": (np.array([0, 2, 1, 2]), np.array([0, 1])),
    "target too large": (np.array([0, 1]), np.array([1])),
    "negative target": (np.array([0, 1]), np.array([-1])),
    "fractions": (np.array([0, 1]), np.array([0.5])),
    "two dimensions": (np.array([0, 1]), np.array([[0]])),
    "lists of several lengths": ([[0], [1, 2]], [0]),
    "a fall to far below 0": (np.array([0, -(2**62), 1]), np.array([0])),
    "a start far beyond the end": (np.array([0, 2**62, 1]), np.array([0])),
    "a target beyond 32 bits": (np.array([0, 1]), np.array([2**32])),
    "a matrix cut short": _with(indptr=np.array([0, 1])),
    "a matrix with a wrong target": _with(indices=np.array([0, 1, 2**31 - 1], np.int32)),
    "not square": sparse.csr_matrix((3, 4)),
    "columns first": sparse.csc_matrix((3, 3)),
}
