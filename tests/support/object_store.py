"""A bucket in memory, as `pyarrow.fs` shows one: no rename, no append, and an object appears when
it is closed. It can fail, or stop its caller, at any of its calls."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pyarrow
from pyarrow import fs


class Stopped(BaseException):
    """What a killed caller meets: nothing it does afterwards happens."""


class ObjectStore(fs.FileSystemHandler):
    """objects: their bytes by path. on_call: called before each call that counts, with its name."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.calls = 0
        self.on_call: Callable[[str], None] = lambda _: None

    def filesystem(self) -> fs.PyFileSystem:
        return fs.PyFileSystem(self)

    def stop_at(self, call: int) -> None:
        """Raise Stopped at this call from now on, and at every later one."""
        left = [call]

        def count(_: str) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Stopped

        self.on_call = count

    def _called(self, name: str) -> None:
        self.calls += 1
        self.on_call(name)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = None  # type: ignore[assignment]

    def get_type_name(self) -> str:
        return "memory"

    def normalize_path(self, path: str) -> str:
        return path

    def _info(self, path: str) -> fs.FileInfo:
        if path in self.objects:
            return fs.FileInfo(path, fs.FileType.File, size=len(self.objects[path]))
        inside = any(name.startswith(f"{path}/") for name in self.objects)
        return fs.FileInfo(path, fs.FileType.Directory if inside else fs.FileType.NotFound)

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        self._called("info")
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        self._called("list")
        assert selector.recursive
        return [self._info(p) for p in self.objects if p.startswith(f"{selector.base_dir}/")]

    def create_dir(self, path: str, recursive: bool) -> None:
        self._called("create_dir")

    def delete_dir(self, path: str) -> None:
        """Object by object, as buckets do it."""
        for name in [name for name in self.objects if name.startswith(f"{path}/")]:
            self.delete_file(name)

    def delete_file(self, path: str) -> None:
        self._called("delete")
        del self.objects[path]

    def open_input_stream(self, path: str) -> Any:
        self._called("read")
        if path not in self.objects:
            raise FileNotFoundError(path)
        return pyarrow.BufferReader(self.objects[path])

    def open_input_file(self, path: str) -> Any:
        return self.open_input_stream(path)

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        assert path not in self.objects or path.endswith("/keeper"), f"{path} is written twice"
        return pyarrow.PythonFile(_Object(self, path), mode="w")

    def _refuse(self, *arguments: Any) -> Any:
        raise NotImplementedError("a bucket does not do this")

    move = copy_file = open_append_stream = _refuse
    delete_dir_contents = delete_root_dir_contents = _refuse


class _Object(io.BytesIO):
    """An object that is being written: there once it is closed."""

    def __init__(self, store: ObjectStore, path: str) -> None:
        super().__init__()
        self._store, self._path = store, path

    def write(self, data: Any, /) -> int:
        self._store._called("write")
        return super().write(data)

    def close(self) -> None:
        if not self.closed:
            data = self.getvalue()
            super().close()
            self._store._called("close")
            self._store.objects[self._path] = data
