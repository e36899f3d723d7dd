"""A dataset's file, as its site has it, as the arrays of `NAME.npz`.

Vertices are numbered by first appearance; of a bipartite graph, each side by itself. Where there
are times, the edges are sorted by them, stably. Nothing is unpacked to a path an archive names.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.batch.columns import Columns

from ..errors import SourceError
from ..sources.files.edges import open_edges
from ..sources.files.reading import Asked
from .cache import DatasetError, Progress
from .catalog import Dataset

Array = npt.NDArray[Any]

_BLOCK_BYTES = 1 << 20


def convert(dataset: Dataset, raw: Path, progress: Progress | None = None) -> dict[str, Array]:
    """The downloaded file as the arrays of NAME.npz. Raises DatasetError on a line it cannot read,
    which in a published file means that it is damaged."""
    parts: list[Columns] = []
    lines = 0
    try:
        for value in _lines_of(dataset, raw):
            if not isinstance(value, Columns):
                text = value.value[:80].decode(errors="replace")
                raise DatasetError(f"{raw.name}: {text!r}: {value.reason}")
            parts.append(value)
            lines += len(value)
            if progress is not None:
                progress(f"read {raw.name}", lines, max(dataset.edges, lines))
    except (SourceError, tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DatasetError(f"{raw.name}: cannot be read ({error})") from error
    if not lines:
        raise DatasetError(f"{raw.name}: holds no edge")
    return _arrays(dataset, parts)


def _lines_of(dataset: Dataset, raw: Path) -> Iterator[Any]:
    if dataset.layout == "dimacs":
        yield from _values(raw, "dimacs", None)
    elif dataset.layout == "konect":
        with _konect_member(raw) as path:
            yield from _values(path, "text", _konect_columns(dataset, path))
    else:
        kind = "csv" if dataset.layout == "csv" else "text"
        yield from _values(raw, kind, dataset.columns)


def _values(path: Path, format: str, columns: Any) -> Iterator[Any]:
    asked = Asked(columns=columns, names=False, bipartite=False)
    for piece in open_edges(path, asked, format).pieces():
        yield from piece.values()


@contextmanager
def _konect_member(raw: Path) -> Iterator[Path]:
    """The archive's `out.NAME`, copied to a temporary file."""
    with tarfile.open(raw, "r:*") as archive:
        for member in archive:
            if member.isfile() and os.path.basename(member.name).startswith("out."):
                content = archive.extractfile(member)
                assert content is not None
                with content, tempfile.NamedTemporaryFile(dir=raw.parent, suffix=".tmp") as copy:
                    shutil.copyfileobj(content, copy, _BLOCK_BYTES)
                    copy.flush()
                    yield Path(copy.name)
                return
    raise DatasetError(f"{raw.name}: no member is called out.NAME: not an archive of KONECT's")


def _konect_columns(dataset: Dataset, path: Path) -> str:
    """As many of the catalog's columns as the file's first line has."""
    assert isinstance(dataset.columns, str)
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("%"):
                fields = len(line.split())
                named = dataset.columns.split()[:fields]
                return " ".join(named + ["-"] * (fields - len(named)))
    return dataset.columns


def _arrays(dataset: Dataset, parts: list[Columns]) -> dict[str, Array]:
    """Joined, ordered by time, the vertices numbered by first appearance."""
    src = np.concatenate([part.src for part in parts])
    dst = np.concatenate([part.dst for part in parts])
    extra = {
        name: np.concatenate([getattr(part, field) for part in parts])
        for name, field in (("t", "time"), ("w", "weight"))
        if getattr(parts[0], field) is not None
    }
    if "t" in extra and (np.diff(extra["t"]) < 0).any():
        order = np.argsort(extra["t"], kind="stable")
        src, dst = src[order], dst[order]
        extra = {name: column[order] for name, column in extra.items()}
    if dataset.shape == "bipartite":
        src, dst = numbered(src), numbered(dst)
    else:
        both = numbered(np.stack([src, dst], axis=1).ravel()).reshape(-1, 2)
        src, dst = both[:, 0].copy(), both[:, 1].copy()
    return {"src": src, "dst": dst, **extra}


def numbered(ids: Array) -> Array:
    """uint32: each id replaced by its place in the order of first appearance."""
    _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    place = np.empty(len(first), np.uint32)
    place[np.argsort(first)] = np.arange(len(first), dtype=np.uint32)
    return place[inverse]
