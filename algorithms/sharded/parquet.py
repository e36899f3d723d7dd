"""A sharded snapshot as Parquet: a file per shard, written by the shard, and a manifest.

`manifest.json` is written last, when all files are complete and on disk, so a directory without one
holds nothing. It is one JSON object:

    format    "lpma sharded parquet 1"
    epoch, time, versions, directed, named
    rows, vertices, edges    of the whole graph
    files     of each shard {name, edges, bytes, sha256}: of the file's bytes, in hexadecimal

Each file is what `Snapshot.write_parquet` writes of the shard's rows: an undirected edge is in the
file of its smaller end's owner. Names are columns of the same types in all files.

The shards write to a directory of this export's own within the directory, the room, from which the
files move out when all are complete. A failed export removes its room. So a writer on a machine out
of reach, for which nobody can wait, finds no place for its file any more, and leaves none.

    1. make the room                            4. sync the names, remove the room
    2. all shards write their files there       5. write the manifest
    3. move them out                            on an error: remove what is ours, the room last
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lpma.dependencies import optional_import
from lpma.errors import FormatError
from lpma.file.atomic import PathError, StrPath, atomic_write, fsync_directory, temporaries_of
from lpma.names.forms import Form
from lpma.time_view import TimeView

from .runtime.types import Workers

FORMAT = "lpma sharded parquet 1"
MANIFEST = "manifest.json"
TRIES, PAUSE_S = 5, 0.05  # of removing what an export has left


@dataclass(frozen=True)
class Manifest:
    """What `manifest.json` says: see the module."""

    format: str
    epoch: int
    time: int
    versions: list[int]
    directed: bool
    named: bool
    rows: int
    vertices: int
    edges: int
    files: list[dict[str, Any]]


def write(
    workers: Workers, directory: StrPath, form: Form | None, view: TimeView | None, **whole: Any
) -> None:
    """See ShardedSnapshot.write_parquet. form: of the columns of names; None without names. view:
    of the edges; None: all. whole: what the manifest says of the whole graph."""
    target = _empty(directory)
    names = [file_name(number, workers.size) for number in range(workers.size)]
    room = target / f".writing-{secrets.token_hex(8)}"
    moved: list[Path] = []
    try:
        room.mkdir()
        files = workers.call("write_parquet", os.fspath(room), whole["rows"], form, view)
        manifest = Manifest(FORMAT, named=form is not None, files=files, **whole)
        for name in names:
            if (target / name).exists():
                raise PathError(f"{target / name}: somebody else has put it there meanwhile")
            os.rename(room / name, target / name)
            moved.append(target / name)
        fsync_directory(target)
        _remove(room, names)
        with atomic_write(target / MANIFEST) as file:
            file.write(json.dumps(asdict(manifest), indent=2).encode())
    except BaseException:
        for path in moved:
            with suppress(OSError):
                path.unlink()
        _remove(room, names)
        raise


def _remove(room: Path, names: list[str]) -> None:
    """Remove a room and these files in it, complete or not. Another's file stays, and so does the
    room."""
    for _ in range(TRIES):  # a writer that is still at it may add one meanwhile
        try:
            for path in [room / name for name in names]:
                for own in (path, *temporaries_of(path)):
                    own.unlink(missing_ok=True)
            room.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(PAUSE_S)
        else:
            return


def _empty(directory: StrPath) -> Path:
    target = Path(directory)
    try:
        target.mkdir(exist_ok=True)
    except OSError as error:
        raise PathError(f"{target}: cannot be made a directory: {error}") from None
    if any(target.iterdir()):
        raise PathError(f"{target}: is not empty; choose another directory")
    return target.resolve()


def file_name(shard: int, shards: int) -> str:
    """The name of a shard's file."""
    return f"part-{shard:05}-of-{shards:05}.parquet"


def described(path: Path) -> dict[str, Any]:
    """A file's entry in the manifest. Raises pyarrow.ArrowInvalid if it is not Parquet."""
    parquet = optional_import("pyarrow.parquet", "pyarrow", "write_parquet()")
    edges = parquet.read_metadata(path).num_rows
    size = path.stat().st_size
    return {"name": path.name, "edges": edges, "bytes": size, "sha256": sha256_of(path)}


def sha256_of(path: Path) -> str:
    """The hash of a file's bytes, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(directory: StrPath) -> Manifest:
    """The manifest in a directory that `ShardedSnapshot.write_parquet` wrote, after checking all
    files against it. Raises FormatError if one is missing or differs, and OSError.

    >>> import tempfile
    >>> graph = lpma.from_edges([0, 1], [1, 2], device="cpu")
    >>> s = algorithms.ShardedSnapshot.of(algorithms.sharded.split(graph.snapshot(), shards=2))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     s.write_parquet(directory)
    ...     manifest = algorithms.sharded.read_manifest(directory)
    >>> manifest.edges, [file["name"] for file in manifest.files]
    (2, ['part-00000-of-00002.parquet', 'part-00001-of-00002.parquet'])
    """
    folder = Path(directory)
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FormatError(
            f"{folder}: has no {MANIFEST}: nothing was wholly written there"
        ) from None
    try:
        manifest = Manifest(**json.loads(text))
        files = [(one["name"], one["edges"]) for one in manifest.files]
        known = manifest.format == FORMAT and all(Path(name).name == name for name, _ in files)
    except (ValueError, TypeError, KeyError) as error:
        raise FormatError(f"{folder / MANIFEST}: is no manifest: {error}") from None
    if not known:
        raise FormatError(f"{folder / MANIFEST}: its format is not {FORMAT}")
    if sum(edges for _, edges in files) != manifest.edges:
        raise FormatError(f"{folder / MANIFEST}: its files have other edges than it says")
    for expected in manifest.files:
        path = folder / expected["name"]
        if not path.is_file():
            raise FormatError(f"{path}: is missing, and {MANIFEST} names it")
        if sha256_of(path) != expected.get("sha256"):
            raise FormatError(f"{path}: is not the file that {MANIFEST} describes")
    return manifest


def read_parquet(directory: StrPath) -> Any:
    """pyarrow.Table of all edges that `ShardedSnapshot.write_parquet` wrote, as
    `Snapshot.to_arrow` has them, shard by shard. Raises as `read_manifest`, and MissingPackage.

    >>> import tempfile
    >>> graph = lpma.from_edges([0, 1], [1, 2], device="cpu", times=False)
    >>> s = algorithms.ShardedSnapshot.of(algorithms.sharded.split(graph.snapshot(), shards=2))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     s.write_parquet(directory)
    ...     algorithms.sharded.read_parquet(directory).sort_by("src").to_pylist()
    [{'src': 0, 'dst': 1, 'weight': 1.0}, {'src': 1, 'dst': 2, 'weight': 1.0}]
    """
    parquet = optional_import("pyarrow.parquet", "pyarrow", "read_parquet()")
    pyarrow = optional_import("pyarrow", "pyarrow", "read_parquet()")
    manifest = read_manifest(directory)
    tables = [parquet.read_table(Path(directory) / one["name"]) for one in manifest.files]
    whole = pyarrow.concat_tables([table.replace_schema_metadata(None) for table in tables])
    if len(whole) != manifest.edges:
        raise FormatError(f"{directory}: its files have {len(whole)} edges, not {manifest.edges}")
    return whole
