"""What vertices go by outside: their ids, or the names that came in.

Idea: vertices pass two doors. A word that somebody wrote becomes an id, and ids become what is
shown and written. `VertexNames` is both doors, with or without a dictionary of names behind them,
so that no other code needs to know which.

    word := an integer of 64 bits in decimals, without a sign or zeros it can do without
          | a JSON string, in its quotes        this text: the text "5" is '"5"', the integer is 5
          | anything else                       this very text

A table keeps names next to a file that has no place for them, and is named after it: `e.mtx` has
`e.mtx.names.csv`. Any reader of csv takes it.

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
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lpma.arguments.convert import MAX_NAME_BYTES
from lpma.arrays import first_not_below, to_host
from lpma.batch.columns import MAX_VERTEX
from lpma.errors import FormatError, VertexError
from lpma.file import container
from lpma.file.atomic import atomic_write, check_writable
from lpma.names.forms import flattened, form_of_keys
from lpma.snapshot.snapshot import Snapshot

from ..errors import RecordError, WordError
from ..formats.msgpack import text_name
from ..formats.names import DECIMALS, plain_name
from ..types import Array, Name

if TYPE_CHECKING:
    from lpma.names import Names


HEADER = "row,type,name\n"
CHUNK_ROWS = 1 << 16
_IN_STORE = "names"  # the entry of a store's header


def name_of(word: str) -> Name:
    """The name that a word means. Raises WordError."""
    try:
        return text_name(_unquoted(word), "") if word[:1] == '"' else plain_name(word)
    except RecordError:
        raise WordError(
            f"{word!r}: a vertex goes by an integer of 64 bits, or text of 1 to {MAX_NAME_BYTES} "
            "bytes"
        ) from None


def _unquoted(word: str) -> str:
    try:
        text = json.loads(word)
    except ValueError:
        return word  # it merely begins with a quote
    assert isinstance(text, str)
    return text


def word_of(name: Name) -> str:
    """The word for a name, in printable characters."""
    if isinstance(name, int):
        return str(name)
    quoted = DECIMALS.fullmatch(name) or name[0] == '"' or not name.isprintable()
    return json.dumps(name, ensure_ascii=not name.isprintable()) if quoted else name


class VertexNames:
    """Both doors. dictionary: None if vertices go by their ids."""

    def __init__(self, dictionary: Names | None = None) -> None:
        self.dictionary = dictionary

    @property
    def count(self) -> int | None:
        """How many names there are; None if vertices go by their ids."""
        return None if self.dictionary is None else len(self.dictionary)

    def of(self, ids: Array) -> Array:
        """What the vertices go by: the ids as they are, or names (see `lpma.names.Names.of`)."""
        return ids if self.dictionary is None else self.dictionary.of(ids)

    def id(self, name: Name) -> int:
        """The id behind a name, one that no vertex has if the name is not known. Raises
        WordError if vertices go by ids and this cannot be one."""
        if self.dictionary is not None:
            id = self.dictionary.find(name)
            return MAX_VERTEX if id is None else id
        if not (isinstance(name, int) and 0 <= name <= MAX_VERTEX):
            raise WordError(f"{word_of(name)}: vertices go by ids here, from 0 to {MAX_VERTEX}")
        return name

    def columns(self, end: str, ids: Array) -> dict[str, Array]:
        """What `ids` go by, as columns that a file of typed columns takes: see `flattened`. They
        have the same types whatever the ids."""
        if self.dictionary is None:
            return {end: ids}
        image = self.dictionary.image()
        return flattened(end, self.of(ids), form_of_keys(image.kinds, image.keys))


class Called:
    """A column of what vertices go by, which is found when a part of it is read: of most results
    the first few rows are shown."""

    def __init__(self, names: VertexNames, ids: Array) -> None:
        self._names, self._ids = names, ids

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, rows: Any) -> Array:
        return self._names.of(self._ids[rows])


class Vertices:
    """The vertices of a compact snapshot: what each row goes by."""

    def __init__(self, s: Snapshot, names: VertexNames) -> None:
        assert s.ids is not None, "rows have ids of their own"
        self.ids: Array = np.asarray(to_host(s.ids))  # uint32[n], rising
        self.names = names

    def __getitem__(self, rows: Any) -> Array:
        return self.names.of(self.ids[rows])

    def column(self, rows: Any = slice(None)) -> Called:
        """The same, found when it is read."""
        return Called(self.names, self.ids[rows])

    def one(self, row: int) -> Name:
        return self.list([row])[0]

    def list(self, rows: Any) -> list[Any]:
        """The same for several rows, as Python's integers and text."""
        found: list[Any] = self[rows].tolist()
        return found

    def row(self, name: Name) -> int:
        """The row of the vertex that goes by this. Raises VertexError if there is none."""
        id = self.names.id(name)
        row = first_not_below(self.ids, id)
        if row == len(self.ids) or self.ids[row] != id:
            raise VertexError(f"there is no vertex {word_of(name)}{self._hint(name)}")
        return row

    def _hint(self, name: Name) -> str:
        """A hint if the text is known, but not the integer."""
        if self.names.count is None or isinstance(name, str):
            return ""
        known = bool(np.isin(self.names.id(str(name)), self.ids))
        return f"; the text is written '{word_of(str(name))}'" if known else ""


# Tables -------------------------------------------------------------------------------------


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
    digest = container.Reader(path).header.get(_IN_STORE)
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
