"""A file's bytes, unpacked if they are packed: gzip, zstd, bzip2, and zip archives of one member,
whatever the file is called."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast
from weakref import WeakValueDictionary

from ...errors import SourceError

TOP_BYTES = 1 << 18  # read to detect what a file is
PACKED_NAMES = (".gz", ".zst", ".zstd", ".bz2", ".zip", ".bgz")
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"PK\3\4": "zip"}
WORKBOOK = (
    "a spreadsheet: save its sheet as .csv, or give lpma.from_dataframe what pandas.read_excel "
    "returns"
)
_TAR_MAGIC, _TAR_AT = b"ustar", 257
_opened: WeakValueDictionary[Path, IO[bytes]] = WeakValueDictionary()  # by path, the last time


def is_pipe(path: Path) -> bool:
    """Whether this is a pipe or a terminal, which can be read once alone."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def refuse_no_file(path: Path) -> None:
    """Raise SourceError for what is not there, or no file, with what to do."""
    if not path.exists():
        raise SourceError(f"{path}: no such file")
    if path.is_dir():
        raise SourceError(f"{path}: a directory, not a file of edges")
    if is_pipe(path):
        raise SourceError(
            f"{path}: a pipe, and a file is read more than once here: save what comes, or give it "
            "to `lpma load`, which does"
        )
    if path.is_socket():
        raise SourceError(f"{path}: a socket: pipe what it sends into `lpma load - STORE`")


def packing_of(path: Path) -> str | None:
    """How the file is packed, by its first bytes; None: it is not."""
    with open(path, "rb") as file:
        head = file.read(4)
    return next((packing for magic, packing in _PACKED.items() if head.startswith(magic)), None)


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """The file, open for reading its unpacked bytes. Raises SourceError on an archive of several
    files, and OSError."""
    packing = packing_of(path)
    with open(path, "rb") as raw:
        _opened[path] = raw
        if packing is None:
            yield raw
        elif packing == "zip":
            with _archive(path, raw) as archive, archive.open(member_of(path, archive)) as file:
                yield file
        else:
            import pyarrow

            yield cast(
                IO[bytes], pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, "r"), packing)
            )


def share_read(path: Path) -> float | None:
    """How much of a file of text has been read, from 0 to 1, by whoever opened it last; None: it is
    not open. For progress bars."""
    raw = _opened.get(path)
    with suppress(ValueError, OSError):  # the thread that reads closed it meanwhile
        if raw is not None and (size := path.stat().st_size):
            return min(1.0, raw.tell() / size)
    return None


def _archive(path: Path, raw: IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(raw)
    except zipfile.BadZipFile:
        raw.seek(0)
        if b"[Content_Types].xml" in raw.read(1 << 13):  # cut short
            raise SourceError(f"{path}: {WORKBOOK}") from None
        raise


def head_of(path: Path, size: int) -> bytes:
    """The first bytes, unpacked, at most so many."""
    with unpacked(path) as file:
        head = b""
        while len(head) < size and (more := file.read(size - len(head))):
            head += more
    if head[_TAR_AT : _TAR_AT + len(_TAR_MAGIC)] == _TAR_MAGIC:
        raise SourceError(
            f"{path}: an archive of files: unpack it with tar -xf, and give the file that has edges"
        )
    return head


def member_of(path: Path, archive: zipfile.ZipFile) -> Any:
    """The one file in a zip archive. Raises SourceError if there are others."""
    if _is_workbook(archive):
        raise SourceError(f"{path}: {WORKBOOK}")
    members = [info for info in archive.infolist() if not _is_beside(info)]
    if len(members) != 1:
        names = ", ".join(info.filename for info in members[:4]) or "nothing"
        raise SourceError(
            f"{path}: a zip archive of {len(members)} files ({names}): unpack it, and give the "
            "file that has edges"
        )
    return members[0]


def _is_beside(info: zipfile.ZipInfo) -> bool:
    """Whether this is no file, or one that macOS adds."""
    return info.is_dir() or info.filename.startswith("__MACOSX/")


def _is_workbook(archive: zipfile.ZipFile) -> bool:
    """Whether this is a spreadsheet: of Excel, or of OpenDocument."""
    names = archive.namelist()
    if "mimetype" in names:
        return b"opendocument.spreadsheet" in archive.read("mimetype")
    return any(name.startswith("xl/") for name in names)


def name_inside(path: Path) -> str:
    """The file's name without what says how it is packed; of a zip archive, that of its member."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            members = [info.filename for info in archive.infolist() if not _is_beside(info)]
        return members[0] if len(members) == 1 else path.name
    name = Path(path.name)
    return name.stem if name.suffix.lower() in PACKED_NAMES else path.name
