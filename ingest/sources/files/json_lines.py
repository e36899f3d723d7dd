"""Lines of JSON as operations: an object a line, its fields by name, as `docs/format.md` specifies.

Idea: each line is decoded as a record of a log would be; rows that follow each other become
columns, cut where one has a time and the next has none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import numpy as np

from lpma.batch import Columns

from ...errors import RecordError
from ...formats.json import JsonFields
from ...formats.names import names_of
from ...formats.records import decode_json
from ...types import Ids, Record, Rejected
from .edge_layout import Noticed
from .edge_text import Value


def read_json_lines(
    blocks: Iterator[list[bytes]], fields: JsonFields, ids: Ids, notice: Callable[[Noticed], object]
) -> Iterator[Value]:
    """The operations of the lines, and the bad ones, in order. `notice` gets what the first object
    has that is not read."""
    first = True
    for lines in blocks:
        run: list[Record] = []
        for line in lines:
            try:
                record = decode_json(line, fields, ids)
            except RecordError as error:
                yield from _columns(run)
                run = []
                malformed = error.kind == "malformed"
                reason = "not an object of JSON in UTF-8" if malformed else str(error)
                yield Rejected(line, reason)
                continue
            if first:
                notice(_noticed(line, fields))
                first = False
            if run and (run[-1].batch.time is None) != (record.batch.time is None):
                yield from _columns(run)
                run = []
            run.append(record)
        yield from _columns(run)


def _noticed(line: bytes, fields: JsonFields) -> Noticed:
    roles = fields.by_role()
    unused = tuple(name for name in json.loads(line) if name not in roles.values())
    free = [f"--{role}-field" for role in ("weight", "time", "kind") if roles[role] is None]
    return Noticed(unused, f"{', '.join(free)} use more" if unused and free else None)


def _columns(run: list[Record]) -> Iterator[Columns]:
    """Rows that all have a time, or all have none."""
    if not run:
        return
    batches = [record.batch for record in run]
    weights = [batch.weight for batch in batches]
    times = [batch.time for batch in batches if batch.time is not None]
    ends = [record.names or record.batch for record in run]
    src, dst = ([getattr(end, name)[0] for end in ends] for name in ("src", "dst"))
    yield Columns(
        np.concatenate([batch.kind for batch in batches]),
        names_of(src, "src"),
        names_of(dst, "dst"),
        None
        if all(weight is None for weight in weights)
        else np.array([1.0 if weight is None else weight[0] for weight in weights]),
        np.concatenate(times) if times else None,
    )
