"""A dataset's file from its site into the cache, converted to `NAME.npz`.

    1. download to a temporary name, counting bytes against the length the server stated
    2. compare its SHA-256 with the record of an earlier download, or record it (`cache.py`)
    3. read it; number the vertices by first appearance, of a bipartite graph each side by itself;
       where there are times, sort the edges by them, stably
    4. write NAME.npz, record its SHA-256, remove the downloaded file

Every file appears by a rename, so an interrupted download leaves nothing that looks whole. Nothing
is unpacked to a path that an archive names. Requires room for the file and its conversion.
"""

from __future__ import annotations

import gzip
import http.client
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lpma.batch.columns import Columns
from lpma.file.atomic import atomic_write

from ..errors import SourceError
from ..sources.files.edges import format_in, open_edges
from ..sources.files.reading import Asked
from ..types import Array
from .cache import DatasetError, Progress, check_recorded, record, sha256
from .catalog import Dataset

TIMEOUT_S = 30.0  # without a byte
_BLOCK_BYTES = 1 << 20
_AGENT = "lpma (a graph store; https://pypi.org/project/lpma)"


def fetch(dataset: Dataset, cache: Path, progress: Progress | None = None) -> Path:
    """Download and convert a dataset. Returns the path of its NAME.npz in `cache`, a directory that
    is made where there is none.

    Raises DatasetError where the network fails, a checksum differs, or the file cannot be read."""
    if dataset.layout == "npz":
        raise DatasetError(
            f"{dataset.name} cannot be downloaded in a form that is read here (see {dataset.url}): "
            f"convert it and put {dataset.name}.npz, with arrays src and dst, into LPMA_DATA or "
            f"{cache}"
        )
    try:
        cache.mkdir(parents=True, exist_ok=True)
        raw = cache / dataset.url.rpartition("/")[2]
        if not raw.exists():
            download(dataset.url, raw, progress)
        path = cache / f"{dataset.name}.npz"
        # Removed, so that a damaged download is not what the next call finds.
        with _removed_on_error(raw):
            check_recorded(raw)
            columns: dict[str, Any] = convert(dataset, raw, progress)
        with atomic_write(path) as file:
            np.savez_compressed(file, **columns)
        record(path, sha256(path))
        raw.unlink()
    except OSError as error:
        raise DatasetError(f"{dataset.name}: {error}") from error
    return path


@contextmanager
def _removed_on_error(path: Path) -> Iterator[None]:
    try:
        yield
    except DatasetError:
        with suppress(OSError):
            path.unlink()
        raise


def download(url: str, path: Path, progress: Progress | None = None) -> None:
    """Store the body at `url` as `path`, whole or not at all.

    Raises DatasetError: no network, an HTTP error, a body shorter than stated, no room."""
    if not url.startswith(("http://", "https://")):
        raise DatasetError(f"{url}: only http and https are fetched")
    request = urllib.request.Request(url, headers={"User-Agent": _AGENT})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            stated = answer.headers.get("Content-Length")
            total = int(stated) if stated and stated.isdecimal() else None
            free = shutil.disk_usage(path.parent).free
            if total is not None and total > free:
                raise DatasetError(
                    f"{url}: {total:,} bytes, and {free:,} are free at {path.parent}"
                )
            with atomic_write(path) as file:
                done = _copy(answer, file, f"download {path.name}", total, progress)
                if total is not None and done != total:
                    raise DatasetError(
                        f"{url}: cut off after {done:,} of {total:,} bytes: try again"
                    )
    except urllib.error.HTTPError as error:
        raise DatasetError(f"{url}: the server says {error.code} {error.reason}") from error
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError) as error:
        raise DatasetError(
            f"{url}: cannot be fetched ({error}): try again, or put the graph's .npz into LPMA_DATA"
        ) from error


def _copy(
    source: Any, file: BinaryIO, what: str, total: int | None, progress: Progress | None
) -> int:
    done = 0
    while block := source.read(_BLOCK_BYTES):
        file.write(block)
        done += len(block)
        if progress is not None:
            progress(what, done, total)
    return done


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
    with _konect_member(raw) if dataset.layout == "konect" else nullcontext(raw) as path:
        columns = _konect_columns(dataset, path) if path != raw else dataset.columns
        asked = Asked(columns=columns, names=False, bipartite=False)
        for piece in open_edges(path, asked, format_in(path)).pieces():
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
