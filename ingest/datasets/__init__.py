"""Public graphs by name: from LPMA_DATA, from the cache, or downloaded once.

Idea: whatever a source's format, a graph is kept as one `NAME.npz` with `src`, `dst` (ids counted
from 0 in order of first appearance) and, where the source has them, `t` (never falling, in the
source's unit) and `w`. Reading it again is then one call, and a folder of such files carries graphs
to machines without a network. A graph is looked for in this order:

    1. $LPMA_DATA/NAME.npz
    2. the cache: $LPMA_CACHE, else ~/.cache/lpma
    3. the source's own site, into the cache; LAW's WebGraph files are not read here

Checksums: a file of LPMA_DATA must have the SHA-256 that the catalog gives for its reference, where
it gives one; every other file must be the one that was first used (`cache.py`).
"""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lpma.batch.columns import Columns, Kind

from ..types import Array
from .cache import (
    DatasetError,
    Progress,
    cache_directory,
    check_digest,
    check_recorded,
    data_directory,
    sha256,
)
from .catalog import CATALOG, Dataset

__all__ = [
    "Dataset",
    "DatasetError",
    "EdgeList",
    "cache_directory",
    "data_directory",
    "describe",
    "find",
    "load",
    "names",
]


# What np.load raises on something else than an .npz: TypeError is for a single .npy.
_UNREADABLE = (OSError, ValueError, EOFError, TypeError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class EdgeList:
    """A dataset read into memory, in the order of its file.

    >>> import numpy as np
    >>> src, dst = np.array([0, 1], np.uint32), np.array([1, 2], np.uint32)
    >>> edges = EdgeList("two edges", src, dst, None, None, directed=True, path=Path("two.npz"))
    >>> len(edges), edges.num_rows
    (2, 3)
    """

    name: str
    src: Array  # uint32[m]
    dst: Array  # uint32[m]; of a bipartite graph, right ids after the left ones
    time: Array | None  # int64[m], never falling, in the source's unit
    weight: Array | None  # float64[m]
    directed: bool
    path: Path

    def __len__(self) -> int:
        return len(self.src)

    @property
    def num_rows(self) -> int:
        """1 + the largest id; 1 where there is no edge."""
        return 1 + max(int(self.src.max(initial=0)), int(self.dst.max(initial=0)))

    def columns(self) -> Columns:
        """The list as append operations, for `Graph.apply` or `encode_updates`."""
        return Columns.validated(int(Kind.INSERT), self.src, self.dst, self.weight, self.time)


def names() -> list[str]:
    """The graphs known by name.

    >>> "wiki-Vote" in names()
    True
    """
    return list(CATALOG)


def describe(name: str) -> Dataset:
    """What the catalog says of a graph. Raises DatasetError, which suggests similar names, where it
    does not list it.

    >>> describe("wiki-Vote").directed, describe("wiki-Vote").edges
    (True, 103689)
    """
    if name not in CATALOG:
        near = [known for known in CATALOG if name.lower() in known.lower()]
        hint = f"did you mean {', '.join(near)}?" if near else "`lpma info --datasets` lists them"
        raise DatasetError(f"no dataset is called {name!r}: {hint}")
    return CATALOG[name]


def find(name: str) -> Path | None:
    """The path of `NAME.npz` on this machine, or None. Raises DatasetError on an unknown name."""
    describe(name)
    data = data_directory()
    for directory in [cache_directory()] if data is None else [data, cache_directory()]:
        path = directory / f"{name}.npz"
        if path.is_file():
            return path
    return None


def load(
    name: str, *, download: bool = True, verify: bool = True, progress: Progress | None = None
) -> EdgeList:
    """The graph called `name`, from the first place that has it; see the module's text.

    download: whether the network may be used. verify: whether checksums are compared. progress:
    called with (what, done, total) during a download and a conversion, in bytes and lines; total is
    None where the server does not state it. Raises DatasetError, which says what to do.

    >>> import os, tempfile, unittest.mock
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/wiki-Vote.npz", src=np.array([0, 0]), dst=np.array([1, 2]))
    ...     with unittest.mock.patch.dict(os.environ, LPMA_DATA=folder):
    ...         load("wiki-Vote", verify=False).dst
    array([1, 2], dtype=uint32)
    >>> load("vote")
    Traceback (most recent call last):
    ingest.datasets.cache.DatasetError: no dataset is called 'vote': did you mean wiki-Vote?
    """
    dataset = describe(name)
    path = find(name)
    if path is None:
        if not download:
            raise DatasetError(
                f"{name} is neither in LPMA_DATA nor in {cache_directory()}: put {name}.npz there, "
                "or allow the download"
            )
        from .download import fetch  # imports the network's libraries, which reading does without

        path = fetch(dataset, cache_directory(), progress)
    if verify:
        _verify(dataset, path)
    return _read(dataset, path)


def _verify(dataset: Dataset, path: Path) -> None:
    if path.parent != data_directory():
        check_recorded(path)
    elif dataset.sha256 is not None:
        check_digest(path, sha256(path), dataset.sha256, "the reference's is")


def _read(dataset: Dataset, path: Path) -> EdgeList:
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {key: archive[key] for key in archive.files}
    except _UNREADABLE as error:
        raise DatasetError(f"{path}: cannot be read as an .npz ({error})") from error
    if not {"src", "dst"} <= set(found):
        raise DatasetError(f"{path}: needs the arrays src and dst, holds {', '.join(found)}")
    src, dst = (_ids(found[end], path, end) for end in ("src", "dst"))
    if dataset.shape == "bipartite" and len(src):
        dst = dst + np.uint32(int(src.max()) + 1)
    time = found["t"].astype(np.int64, copy=False) if "t" in found else None
    weight = found["w"].astype(np.float64, copy=False) if "w" in found else None
    for name, column in (("dst", dst), ("t", time), ("w", weight)):
        if column is not None and len(column) != len(src):
            raise DatasetError(f"{path}: {name} has {len(column)} rows, src has {len(src)}")
    kept = _one_way(src, dst) if dataset.shape == "both ways" else None
    if kept is not None:
        src, dst = src[kept], dst[kept]
        time = None if time is None else time[kept]
        weight = None if weight is None else weight[kept]
    return EdgeList(dataset.name, src, dst, time, weight, dataset.directed, path)


def _ids(column: Array, path: Path, name: str) -> Array:
    if column.ndim != 1 or column.dtype.kind not in "iu" or int(column.min(initial=0)) < 0:
        raise DatasetError(f"{path}: {name} is no column of ids ({column.dtype}{column.shape})")
    return column.astype(np.uint32, copy=False)


def _one_way(src: Array, dst: Array) -> Array | None:
    """bool: the first line of each undirected edge; None where every line is one already."""
    low, high = np.minimum(src, dst).astype(np.uint64), np.maximum(src, dst)
    _, first = np.unique(low << np.uint64(32) | high, return_index=True)
    if len(first) == len(src):
        return None
    kept = np.zeros(len(src), bool)
    kept[first] = True
    return kept
