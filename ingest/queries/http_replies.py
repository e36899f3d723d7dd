"""What the HTTP service answers, read: columns of one version, or a problem document.

The service writes them in `ingest/service/codecs.py` and `problems.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma import Edges, Kind, Neighbors

from ..errors import RecordError, SourceError
from ..formats.msgpack import binary, integer, unpack
from ..formats.names import joined, read_names
from ..types import Answer, clipped

Array = npt.NDArray[Any]

MAX_BYTES = 1 << 30  # of a response

_ERRORS = {
    "urn:lpma:hops": "hops",
    "urn:lpma:unsupported": "unsupported",
    "urn:lpma:too-large": "memory",
    "urn:lpma:deadline": "deadline",
}


@dataclass(frozen=True)
class Rows:
    """The answers to the queries of one request."""

    version: int
    time: int
    answer: Answer
    cursor: str | None = None  # of the next page

    def parts(self) -> list[Answer]:
        """The answer to each query."""
        joint = self.answer
        if isinstance(joint, Neighbors):
            ends = joint.indptr.tolist()
            return [joint.rows(lo, hi) for lo, hi in pairwise(ends)]
        if isinstance(joint, Edges):
            return [joint.rows(i, i + 1) for i in range(len(joint.found))]
        return [joint[i : i + 1] for i in range(len(joint))]

    @staticmethod
    def joined(pages: list[Rows]) -> Rows:
        """All pages of an answer as one."""
        found = [page.answer for page in pages if isinstance(page.answer, Neighbors)]
        if len(pages) == 1 or len(found) != len(pages):
            return pages[0]
        counts = sum(np.diff(part.indptr) for part in found)
        starts = np.concatenate([[0], np.cumsum(counts)])
        # Rows of a vertex may lie in several pages, always in their order.
        columns = [
            _concatenated([getattr(part, name) for part in found])
            for name in ("ids", "weights", "times")
        ]
        joint = Neighbors(starts, *columns)  # type: ignore[arg-type]
        return Rows(pages[0].version, pages[0].time, joint)


def _concatenated(columns: list[Array | None]) -> Array | None:
    present = [column for column in columns if column is not None]
    return joined(present) if present else None


def rows_in(data: bytes, kind: Kind, url: str) -> Rows:
    """The answers in a response. Raises SourceError if it has none."""
    try:
        return _rows(data, kind)
    except RecordError as error:
        raise SourceError(f"{url} answers what no service of this release does: {error}") from None


def _rows(data: bytes, kind: Kind) -> Rows:
    fields = unpack(data, MAX_BYTES)
    if not isinstance(fields, dict):
        raise RecordError("an answer is a map")
    version = integer(fields, "version", 0, 2**63 - 1)
    time = integer(fields, "time", -(2**63), 2**63 - 1)
    if kind is Kind.DEGREE:
        return Rows(version, time, binary(fields, "degree", "<i8", _size(fields, "degree") // 8))
    if kind in (Kind.VERTEX, Kind.EDGE):
        name = "found" if kind is Kind.EDGE else "present"
        count = _size(fields, name)
        found = binary(fields, name, "u1", count).astype(bool)
        if kind is Kind.VERTEX:
            return Rows(version, time, found)
        return Rows(version, time, Edges(found, *_edge_columns(fields, count)))
    indptr = binary(fields, "indptr", "<i8", _size(fields, "indptr") // 8)
    rows = integer(fields, "rows", 0, MAX_BYTES)
    if not len(indptr) or indptr[0] != 0 or indptr[-1] != rows or bool((np.diff(indptr) < 0).any()):
        raise RecordError("indptr: it goes from 0 to the number of rows")
    cursor = fields.get("cursor")
    if cursor is not None and not isinstance(cursor, str):
        raise RecordError("cursor: expected text")
    ids = read_names(fields, "ids", rows, rows)
    return Rows(version, time, Neighbors(indptr, ids, *_edge_columns(fields, rows)), cursor)


def _size(fields: dict[Any, Any], name: str) -> int:
    value = fields.get(name)
    return len(value) if isinstance(value, bytes) else 0


def _edge_columns(fields: dict[Any, Any], rows: int) -> tuple[Array | None, Array | None]:
    weight = binary(fields, "weight", "f", rows) if "weight" in fields else None
    return weight, binary(fields, "times", "<i8", rows) if "times" in fields else None


@dataclass(frozen=True)
class Problem:
    """A problem document (RFC 9457). error: as `Reply.error` has it, or "invalid"."""

    status: int
    error: str
    detail: str
    retry_after_s: float | None = None


def problem_in(status: int, headers: Any, data: bytes) -> Problem:
    """What a response that is no answer says; from anything in between it may be in any form."""
    kind, detail = "", ""
    try:
        document = json.loads(data[: 64 << 10])
        if isinstance(document, dict):
            kind, detail = str(document.get("type", "")), str(document.get("detail", ""))
    except (ValueError, RecursionError):
        pass
    detail = clipped(detail, 1024) or f"HTTP status {status}"
    later = None
    if status in (429, 503):
        said = headers.get("Retry-After", "")
        later = min(float(said), 3600.0) if said.isascii() and said.isdigit() else 1.0
    error = "retry" if later is not None else _ERRORS.get(kind, "invalid")
    return Problem(status, error, detail, later)
