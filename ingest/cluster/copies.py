"""Where copies of checkpoints lie in kept storage, and which of them are whole.

<place>/shard-0003/keeper                            a random token of the last mirror to begin
<place>/shard-0003/checkpoint-0000000012-9f3a61c2/   the files of checkpoint 12, its manifest
                                                     written last: with it the copy is whole
"""

from __future__ import annotations

import re

from ..state.checkpoint import MANIFEST
from .storage import Storage

TOKEN = "keeper"
_COPY = re.compile(r"checkpoint-(\d{10})-[0-9a-f]{8}")


def folder_of(number: int, part: str = "") -> str:
    """Where a shard's checkpoints lie, here and in kept storage. part: "out" or "in", if it has a
    pipeline for each direction.

    >>> from ingest.cluster.copies import folder_of
    >>> folder_of(3), folder_of(3, "in")
    ('shard-0003', 'shard-0003/in')
    """
    return f"shard-{number:04d}/{part}".rstrip("/")


def place_of(keep: str | Storage, number: int, part: str) -> Storage:
    """The place of a shard's copies in `keep`: a path, a URI, or a `Storage`."""
    place = Storage.of(keep) if isinstance(keep, str) else keep
    return place.within(folder_of(number, part))


def number_of(copy: str) -> int:
    """Of the checkpoint. REQUIRES: the name of a copy."""
    match = _COPY.fullmatch(copy)
    assert match is not None
    return int(match[1])


def copies_in(place: Storage) -> tuple[list[str], set[str]]:
    """The copies that are whole, by number, and all that are there."""
    names = place.list()
    there = {name.partition("/")[0] for name in names}
    copies = {name for name in there if _COPY.fullmatch(name)}
    return sorted(copy for copy in copies if f"{copy}/{MANIFEST}" in names), copies
