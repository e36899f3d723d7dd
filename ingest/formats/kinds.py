"""What a record calls a kind of operation: the name of `lpma.Kind` in lower case, but "append" for
an insertion, the paper's word, which records keep."""

from __future__ import annotations

from lpma import Kind

WORDS = {kind: "append" if kind == Kind.INSERT else kind.name.lower() for kind in Kind}
UPDATE_KINDS = {word: kind for kind, word in WORDS.items() if kind < Kind.EDGE}
QUERY_KINDS = {word: kind for kind, word in WORDS.items() if kind >= Kind.EDGE}
