"""Tables of vertex names next to files that have no place for them.

A table is named after its file: `e.mtx` has `e.mtx.names.csv`. Any reader of csv takes it.

    table := "row,type,name" LF line*              UTF-8; row as the file next to it counts rows
    line  := row ",integer," decimals LF
           | row ",text," QUOTE text QUOTE LF      a quote within the text is doubled

Releases before names were in a store's own file kept them in such a table beside it: the
dictionary, row for row in the order of the ids, whose digest the store's header holds. These are
still read.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from lpma.errors import FormatError
from lpma.file import container
from lpma.file.atomic import atomic_write, check_writable

from .vertex_names import VertexNames

if TYPE_CHECKING:
    from lpma.names import Names

Array = npt.NDArray[Any]

HEADER = "row,type,name\n"
CHUNK_ROWS = 1 << 16
_IN_STORE = "names"  # the entry of a store's header


def table_path(path: Path) -> Path:
    """Where the names for the file `path` are, if it has any."""
    return path.with_name(f"{path.name}.names.csv")


def check_table_writable(path: Path, names: VertexNames) -> None:
    """Raise PathError if the table of `path` is needed, and no file can be put there."""
    if names.count is not None:
        check_writable(table_path(path))


def write_table(path: Path, names: VertexNames, ids: Array, first: int = 0) -> str:
    """Write what `ids` go by next to `path`, rows counted from `first`; the table's digest. Raises
    PathError."""
    digest = hashlib.blake2b(digest_size=32)
    with atomic_write(table_path(path)) as file:
        for chunk in _chunks(names, ids, first):
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def _chunks(names: VertexNames, ids: Array, first: int) -> Iterator[bytes]:
    yield HEADER.encode()
    for start in range(0, len(ids), CHUNK_ROWS):
        some = names.of(ids[start : start + CHUNK_ROWS]).tolist()
        yield "".join(
            f"{row},integer,{name}\n" if isinstance(name, int) else f"{row},text,{_quoted(name)}\n"
            for row, name in enumerate(some, first + start)
        ).encode()


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def names_of_store(path: Path) -> Names | None:
    """The names of a store whose file does not hold them; None of any other. Raises FormatError if
    its table is missing or is not the one saved with it."""
    digest = container.read_header(path).get(_IN_STORE)
    if not isinstance(digest, str):
        return None
    table = table_path(path)
    try:
        data = table.read_bytes()
    except FileNotFoundError:
        raise FormatError(
            f"{path}: its vertices have names, which belong next to it, in {table}, but are not "
            "there: keep the two files together"
        ) from None
    if hashlib.blake2b(data, digest_size=32).hexdigest() != digest:
        raise FormatError(
            f"{table}: not the names that {path} was saved with: restore both from one copy"
        )
    return _dictionary(data.decode())


def _dictionary(table: str) -> Names:
    """REQUIRES: the whole of what `write_table` wrote."""
    from lpma.names import Names, column_of

    lines = csv.reader(io.StringIO(table, newline=""))
    next(lines)
    given = [name if type == "text" else int(name) for _, type, name in lines]
    names = Names()
    names.assign(column_of(given, "name"))
    return names
