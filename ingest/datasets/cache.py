"""Where the files of datasets lie, and what they were when they were first used.

A checksum (SHA-256) of a download cannot be known beforehand: the first one is trusted and recorded
beside the file (`FILE.sha256`, as coreutils' sha256sum writes it). Every later load, and every
later download of the same file, must match that record. Removing the record trusts the file anew.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from lpma.file.atomic import atomic_write

from ..errors import IngestError

Progress = Callable[[str, int, int | None], None]  # what, how much is done, of how much


class DatasetError(IngestError):
    """A dataset is unknown, absent, or not what its checksum says; the message says what to do."""


def data_directory() -> Path | None:
    """$LPMA_DATA, or None where it is not set."""
    given = os.environ.get("LPMA_DATA")
    return Path(given) if given else None


def cache_directory() -> Path:
    """$LPMA_CACHE, else ~/.cache/lpma. It is made when the first file is put there."""
    given = os.environ.get("LPMA_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "lpma"


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def record(path: Path, digest: str) -> None:
    """Record `digest` as the checksum of `path`."""
    with atomic_write(_record_of(path)) as file:
        file.write(f"{digest}  {path.name}\n".encode())


def check_recorded(path: Path) -> None:
    """Raise DatasetError where `path` is not the file that was recorded; record it where nothing
    was."""
    found = sha256(path)
    try:
        words = _record_of(path).read_text().split()
    except FileNotFoundError:
        words = []
    if words:
        check_digest(path, found, words[0], "the one recorded at first use was")
    else:
        record(path, found)


def check_digest(path: Path, found: str, expected: str, whose: str) -> None:
    """Raise DatasetError where a checksum is not the one expected."""
    if found != expected:
        raise DatasetError(
            f"{path}: SHA-256 is {found[:16]}…, {whose} {expected[:16]}…: the file is damaged or "
            "another one. Restore it; if the change is meant, load it with verify=False "
            f"(--no-verify), or remove {_record_of(path).name} where one lies beside it"
        )


def _record_of(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")
