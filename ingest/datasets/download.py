"""A dataset's file from its site into the cache, converted to `NAME.npz`.

    1. download to a temporary name, counting bytes against the length the server stated
    2. compare its SHA-256 with the record of an earlier download, or record it (`cache.py`)
    3. read it, number the vertices, sort by time (`convert.py`)
    4. write NAME.npz, record its SHA-256, remove the downloaded file

Every file appears by a rename, so an interrupted download leaves nothing that looks whole.
Requires room for the file and its conversion.
"""

from __future__ import annotations

import http.client
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lpma.file.atomic import atomic_write

from .cache import DatasetError, Progress, check_recorded, record, sha256
from .catalog import Dataset
from .convert import convert

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
