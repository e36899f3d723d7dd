"""Whole files of lpma/file/container.py, written and read in one call."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import Any

from lpma.file.atomic import atomic_write
from lpma.file.container import Reader, write_to


def write(
    path: str | os.PathLike[str], header: Mapping[str, Any], columns: Mapping[str, Any]
) -> None:
    with atomic_write(path) as file:
        write_to(file, header, columns)


def read(path: str | os.PathLike[str] | io.BytesIO) -> tuple[dict[str, Any], dict[str, Any]]:
    reader = Reader(path)
    columns = {name: reader.read(name) for name in reader.columns}
    reader.close()
    return reader.header, columns
