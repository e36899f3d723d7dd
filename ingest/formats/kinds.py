"""The words of records. A kind of operation goes by the name of `lpma.Kind` in lower case, but
"append" for an insertion, the paper's word, which records keep."""

from __future__ import annotations

from typing import Any

from lpma import Kind
from lpma.batch.columns import UPDATES

WORDS: dict[int, str] = {k: "append" if k == Kind.INSERT else k.name.lower() for k in Kind}
UPDATE_KINDS = {WORDS[kind]: kind for kind in UPDATES}
QUERY_KINDS = {WORDS[kind]: kind for kind in Kind if kind not in UPDATES}
FIELDS = ("src", "dst", "weight", "time", "kind")  # of an update; a row array has the first four
ROW_FIELDS = frozenset({*FIELDS, "source", "seq"})  # of a map that is a row of ours
OF_OTHERS = frozenset({"query", "rows", "epoch"})  # a field of what is no row
# What mapped records and files may say, in any case: "insert" and the numbers of `lpma.Kind`, too.
MEANT = {
    **{word: word for word in UPDATE_KINDS}, "insert": WORDS[Kind.INSERT],
    **{str(int(kind)): word for word, kind in UPDATE_KINDS.items()},
}  # fmt: skip


def word_of(said: Any) -> Any:
    """The word of records for a word or number of others; what means none stays."""
    word = str(said) if type(said) is int else said
    return MEANT.get(word.lower(), word) if isinstance(word, str) else word
