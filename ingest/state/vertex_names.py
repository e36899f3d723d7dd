"""What vertices go by outside: their ids, or the names that came in.

Idea: vertices pass two doors. A word that somebody wrote becomes an id, and ids become what is
shown and written. `VertexNames` is both doors, with or without a dictionary of names behind them,
so that no other code needs to know which.

    word := an integer of 64 bits in decimals, without a sign or zeros it can do without
          | a JSON string, in its quotes        this text: the text "5" is '"5"', the integer is 5
          | anything else                       this very text

`name_table.py` keeps names next to files that have no place for them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lpma.arguments.convert import MAX_NAME_BYTES
from lpma.arrays import first_not_below, to_host
from lpma.batch.columns import MAX_VERTEX
from lpma.errors import VertexError
from lpma.names.forms import flattened, form_of_keys
from lpma.snapshot.snapshot import Snapshot

from ..errors import RecordError, WordError
from ..formats.msgpack import text_name
from ..formats.names import DECIMALS, plain_name
from ..types import Name

if TYPE_CHECKING:
    from lpma.names import Names

Array = npt.NDArray[Any]


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


class Vertices:
    """The vertices of a compact snapshot: what each row goes by."""

    def __init__(self, s: Snapshot, names: VertexNames) -> None:
        assert s.ids is not None, "rows have ids of their own"
        self.ids: Array = np.asarray(to_host(s.ids))  # uint32[n], rising
        self.names = names
        self.all = names.of(self.ids)

    def __getitem__(self, rows: Any) -> Array:
        """What the vertices of these rows go by."""
        return self.all[rows]

    def one(self, row: int) -> Name:
        """What the vertex of this row goes by."""
        return self.list([row])[0]

    def list(self, rows: Any) -> list[Any]:
        """The same for several rows, as Python's integers and text."""
        found: list[Any] = self.all[rows].tolist()
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
