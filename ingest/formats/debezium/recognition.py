"""Whether a record looks like a change event of Debezium, though nobody said that it is one.

An event tells its operation, `op`, and beside it its `source`, and the row before or after. A row
that was flattened may have `__op` or `__deleted`; without them nothing tells it from any other row.
"""

from __future__ import annotations

import msgspec

from ...errors import RecordError
from ..mapped import REFUSED
from .changes import FLAT_DELETED, FLAT_OP, parts_of

_MARKS = tuple(f'"{name}"'.encode() for name in ("op", FLAT_OP, FLAT_DELETED))
_OPERATIONS = ("c", "r", "u", "d", "t")
_ANYTHING = msgspec.json.Decoder()


def is_change_event(data: bytes) -> bool:
    """Whether this is an object of JSON, maybe beside its schema, with what events have."""
    if not any(mark in data for mark in _MARKS):
        return False
    try:
        parts = parts_of(data)
        if parts.keys() == {"schema", "payload"}:
            parts = parts_of(parts["payload"])
        if FLAT_DELETED in parts and _value(parts[FLAT_DELETED]) in (True, False, "true", "false"):
            return True
        if FLAT_OP in parts:
            return _value(parts[FLAT_OP]) in _OPERATIONS
        has_source = parts.get("source", b"")[:1] == b"{"
        has_row = "before" in parts or "after" in parts
        return has_source and has_row and _value(parts.get("op", b"null")) in _OPERATIONS
    except (RecordError, *REFUSED):
        return False


def _value(raw: bytes) -> object:
    """That of a scalar; None of anything else."""
    return None if raw[:1] in (b"{", b"[") else _ANYTHING.decode(raw)
