"""A place that outlives a disk: a directory, or a bucket of an object store.

Idea: the least that both can do. An object is written once, whole or not at all, and never changed;
no rename, append or lock is asked for. `pyarrow.fs` speaks to all of them.

Requirements: an object appears when it is closed, and is read and listed from then on: S3, GCS and
Azure promise it. On a local disk a temporary name, a sync and a rename make it so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Self

from lpma.file.atomic import fsync_directory
from lpma.host import sync

from ..errors import CheckpointError

PIECE_BYTES = 4 << 20  # read and written at once


class Storage:
    """A folder of a file system, by names with "/" between their parts.

    Every method raises CheckpointError if the place does not answer or refuses.

    filesystem: a `pyarrow.fs.FileSystem`. root: the folder's path within it."""

    def __init__(self, filesystem: Any, root: str) -> None:
        self._filesystem = filesystem
        self.root = root.rstrip("/")

    @classmethod
    def of(cls, address: str) -> Self:
        """The place that `address` names: the path of a directory, or a URI such as
        s3://bucket/folder, gs://bucket/folder or file:///path. Raises CheckpointError if it names
        none."""
        from pyarrow import ArrowException, fs

        if "://" not in address:
            return cls(fs.LocalFileSystem(), os.path.abspath(address))
        try:
            filesystem, root = fs.FileSystem.from_uri(address)
            if not root.strip("/"):
                raise OSError("it names no bucket or folder")
        except (ArrowException, OSError) as error:
            raise CheckpointError(
                f"{address}: no place to keep checkpoints: {error}: give a path, or a URI as "
                "s3://bucket/folder"
            ) from error
        return cls(filesystem, root)

    def __str__(self) -> str:
        return self.root

    def within(self, folder: str) -> Storage:
        return Storage(self._filesystem, f"{self.root}/{folder}")

    @contextmanager
    def _telling(self, name: str, done: str) -> Iterator[str]:
        from pyarrow import ArrowException

        path = f"{self.root}/{name}" if name else self.root
        try:
            yield path
        except (ArrowException, OSError) as error:
            raise CheckpointError(f"{path}: cannot be {done}: {error}") from error

    def list(self) -> dict[str, int]:
        """The objects in the folder and below it, with their bytes; empty if there is no folder."""
        from pyarrow import fs

        with self._telling("", "listed"):
            selector = fs.FileSelector(self.root, allow_not_found=True, recursive=True)
            found = self._filesystem.get_file_info(selector)
        cut = len(self.root) + 1
        return {one.path[cut:]: one.size for one in found if one.type == fs.FileType.File}

    def read(self, name: str) -> bytes:
        """A small object's bytes."""
        with self._telling(name, "read") as path, self._filesystem.open_input_stream(path) as file:
            data: bytes = file.read()
        return data

    def pieces(self, name: str) -> Iterator[bytes]:
        """A large object's bytes, piece by piece."""
        with self._telling(name, "read") as path, self._filesystem.open_input_stream(path) as file:
            while piece := file.read(PIECE_BYTES):
                yield piece

    def write(self, name: str, data: bytes) -> None:
        with self._writing(name) as file:
            file.write(data)

    def copy(self, file: BinaryIO, name: str) -> Iterator[bytes]:
        """Write what is left in `file` as an object, and give each piece once it is written."""
        with self._writing(name) as target:
            while piece := file.read(PIECE_BYTES):
                target.write(piece)
                yield piece

    @contextmanager
    def _writing(self, name: str) -> Iterator[Any]:
        from pyarrow import fs

        local = isinstance(self._filesystem, fs.LocalFileSystem)
        with self._telling(name, "written") as path:
            self._filesystem.create_dir(path.rpartition("/")[0], recursive=True)
            written = f"{path}.tmp" if local else path  # a bucket shows no half of an object
            try:
                with self._filesystem.open_output_stream(written) as file:
                    yield file
            except BaseException:
                with suppress(OSError):  # it was closed with less in it than it should have
                    self._filesystem.delete_file(written)
                raise
            if local:
                _name_durably(written, path)

    def remove(self, folder: str, first: str) -> None:
        """Remove a folder with all that is in it, of which the object `first` goes first. What is
        not there is as good as removed."""
        from pyarrow import fs

        with self._telling(folder, "removed") as path:
            for name, delete in ((f"{path}/{first}", "delete_file"), (path, "delete_dir")):
                if self._filesystem.get_file_info(name).type != fs.FileType.NotFound:
                    getattr(self._filesystem, delete)(name)


def _name_durably(written: str, path: str) -> None:
    """Give a file its name once its bytes are on the disk, and its folder's name with it."""
    descriptor = os.open(written, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(written, path)
    folder = os.path.dirname(path)
    fsync_directory(folder)
    fsync_directory(os.path.dirname(folder))
