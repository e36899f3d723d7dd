"""Public graphs by name: from LPMA_DATA, from the cache, or downloaded once.

Idea: whatever a source's format, a graph is kept as one `NAME.npz` with `src`, `dst` (ids counted
from 0 in order of first appearance) and, where the source has them, `t` (never falling, in the
source's unit) and `w`; so that reading it again is one call, and a folder of such files carries
them to machines without a network. Searched in this order:

    1. $LPMA_DATA/NAME.npz
    2. the cache: $LPMA_CACHE, else ~/.cache/lpma
    3. the source's own site, into the cache; LAW's WebGraph files are not read here

Checksums (SHA-256). A file of LPMA_DATA is held against the reference's, where the catalog has it.
For the rest no checksum can be known beforehand: a download is trusted the first time, what it
was is recorded beside it (`FILE.sha256`, as `sha256sum` writes), and every later load, and every
later download of the same file, is held against that record. Removing the record trusts anew.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.batch import Columns, Kind
from lpma.files import atomic_write

from ..errors import IngestError
from .catalog import CATALOG, Dataset

Array = npt.NDArray[Any]
Progress = Callable[[str, int, int | None], None]  # what, how much is done, of how much

# What np.load raises on something else than an .npz: TypeError is for a single .npy.
_UNREADABLE = (OSError, ValueError, EOFError, TypeError, zipfile.BadZipFile, zlib.error)


class DatasetError(IngestError):
    """A dataset is unknown, absent, or not what its checksum says."""


@dataclass(frozen=True)
class EdgeList:
    """A dataset read into memory, in the order of its file."""

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
    def num_vertices(self) -> int:
        """1 + the largest id."""
        return 1 + max(int(self.src.max(initial=0)), int(self.dst.max(initial=0)))

    def columns(self) -> Columns:
        """The list as appends, for `Graph.apply` or `encode_updates`."""
        return Columns.validated(int(Kind.APPEND), self.src, self.dst, self.weight, self.time)


def names() -> list[str]:
    """The graphs known by name."""
    return list(CATALOG)


def describe(name: str) -> Dataset:
    """What is known of a graph. Raises DatasetError, with near names, on an unknown one."""
    if name not in CATALOG:
        near = [known for known in CATALOG if name.lower() in known.lower()]
        hint = f"did you mean {', '.join(near)}?" if near else "`lpma info --datasets` lists them"
        raise DatasetError(f"no dataset is called {name!r}: {hint}")
    return CATALOG[name]


def data_directory() -> Path | None:
    """$LPMA_DATA, or None where it is not set."""
    given = os.environ.get("LPMA_DATA")
    return Path(given) if given else None


def cache_directory() -> Path:
    """$LPMA_CACHE, else ~/.cache/lpma; not made before something is kept there."""
    given = os.environ.get("LPMA_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "lpma"


def find(name: str) -> Path | None:
    """Where `NAME.npz` lies on this machine, or None. Raises DatasetError on an unknown name."""
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
    """The graph, from where it is found first; see the module's text.

    download: whether the network may be asked. verify: whether checksums are compared. progress:
    told how far a download or conversion is. Raises DatasetError with what to do."""
    dataset = describe(name)
    path = find(name)
    if path is None:
        if not download:
            raise DatasetError(
                f"{name} is neither in LPMA_DATA nor in {cache_directory()}: put {name}.npz there, "
                "or allow the download"
            )
        from .download import fetch  # needs the network's libraries, which reading does not

        path = fetch(dataset, cache_directory(), progress)
    if verify:
        _verify(dataset, path)
    return _read(dataset, path)


def sha256(path: Path) -> str:
    """The file's SHA-256 in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def record_of(path: Path) -> Path:
    """The file that keeps the recorded checksum of `path`."""
    return path.with_name(path.name + ".sha256")


def recorded(path: Path) -> str | None:
    """The checksum recorded for `path`, or None."""
    try:
        words = record_of(path).read_text().split()
    except FileNotFoundError:
        return None
    return words[0] if words else None


def record(path: Path, digest: str) -> None:
    """Record `digest` as the checksum of `path`, as sha256sum writes it."""
    with atomic_write(record_of(path)) as file:
        file.write(f"{digest}  {path.name}\n".encode())


def check_digest(path: Path, found: str, expected: str, whose: str) -> None:
    """Raise DatasetError where a checksum is not the one expected."""
    if found != expected:
        raise DatasetError(
            f"{path}: SHA-256 is {found[:16]}…, {whose} {expected[:16]}…: the file is damaged or "
            "another one. Restore it; if the change is meant, load it with verify=False "
            f"(--no-verify), or remove {record_of(path).name} where one lies beside it"
        )


def _verify(dataset: Dataset, path: Path) -> None:
    found = sha256(path)
    if path.parent == data_directory():
        if dataset.sha256 is not None:
            check_digest(path, found, dataset.sha256, "the reference's is")
        return
    known = recorded(path)
    if known is None:
        record(path, found)
    else:
        check_digest(path, found, known, "the one recorded at first use was")


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
