"""The words of records. A kind of operation goes by the name of `lpma.Kind` in lower case, but
"append" for an insertion, the paper's word, which records keep."""

from __future__ import annotations

from lpma import Kind
from lpma.batch.columns import UPDATES

WORDS: dict[int, str] = {k: "append" if k == Kind.INSERT else k.name.lower() for k in Kind}
UPDATE_KINDS = {WORDS[kind]: kind for kind in UPDATES}
QUERY_KINDS = {WORDS[kind]: kind for kind in Kind if kind not in UPDATES}
FIELDS = ("src", "dst", "weight", "time", "kind")  # of an update; a row array has the first four
ROW_FIELDS = frozenset({*FIELDS, "source", "seq"})  # of a map that is a row of ours
OF_OTHERS = frozenset({"query", "rows", "epoch"})  # a field of what is no row
